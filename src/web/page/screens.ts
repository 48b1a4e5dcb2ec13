/** All screens: a path, what to show there, and its place in the bar at the top. A screen with `load` comes when it is first opened. */
import type { ComponentType } from 'preact';
import type { About } from '../api.ts';
import { LiveScreen } from './live/live.tsx';
import { ConversationScreen } from './session/conversation.tsx';
import { SessionsScreen } from './sessions/sessions.tsx';

/** The values of the `:names` of its path. */
export type ScreenProps = { params: Readonly<Record<string, string>> };

type View = ComponentType<ScreenProps>;

export type Screen = {
  path: string;
  title: string;
  /** Stands in the bar; `key` goes there after `g`. */
  bar?: { label: string; key: string };
  /** Left out where the other end cannot do it. */
  needs?: keyof About['can'];
} & ({ view: View } | { load(): Promise<View> });

export const SCREENS: readonly Screen[] = [
  { path: '/', title: 'Sessions', bar: { label: 'Sessions', key: 's' }, view: SessionsScreen },
  { path: '/live', title: 'Live', bar: { label: 'Live', key: 'l' }, needs: 'live', view: LiveScreen },
  {
    ...{ path: '/search', title: 'Search', bar: { label: 'Search', key: 'f' }, needs: 'search' },
    load: async () => (await import('./search/search.tsx')).SearchScreen,
  },
  {
    ...{ path: '/stats', title: 'Statistics', bar: { label: 'Statistics', key: 't' }, needs: 'stats' },
    load: loadStats,
  },
  {
    path: '/diff/:a/:b',
    title: 'Compare',
    needs: 'compare',
    load: async () => (await import('./compare/compare.tsx')).CompareScreen,
  },
  { path: '/s/:id', title: 'Conversation', view: ConversationScreen },
  { path: '/s/:id/stats', title: 'Statistics', needs: 'stats', load: loadStats },
  {
    path: '/s/:id/check',
    title: 'Findings',
    load: async () => (await import('./findings/findings.tsx')).FindingsScreen,
  },
  { path: '/s/:id/http', title: 'HTTP exchanges', load: loadHttp },
  { path: '/s/:id/h/:number', title: 'HTTP exchange', load: loadHttp },
  { path: '/s/:id/f/:seq', title: 'Frame', view: ConversationScreen },
  {
    path: '/run/:id',
    title: 'Run',
    needs: 'runs',
    load: async () => (await import('./run/run.tsx')).RunScreen,
  },
];

/** The charts come with it. */
async function loadStats(): Promise<View> {
  return (await import('./stats/stats.tsx')).StatsScreen;
}

async function loadHttp(): Promise<View> {
  return (await import('./http/http.tsx')).HttpScreen;
}
