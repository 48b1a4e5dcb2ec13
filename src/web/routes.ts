/** The API of the viewer: which path is answered by which work, and on which thread. */

import type { Form, Params } from './work.ts';

type Route = {
  /** A segment that begins with a colon is a parameter. */
  path: string;
  work: string;
  /** `fast`: at once. `slow`: on a thread of its own, which may be ended. */
  thread: 'fast' | 'slow';
  form: Form;
  /** What is read of the query; all else in it counts for nothing. */
  takes: readonly string[];
  /** What makes a fast work slow. */
  slowWith?: string;
};

const SESSION = '/api/sessions/:session';

const ROUTES: readonly Route[] = [
  { path: '/api/about', work: 'about', thread: 'fast', form: 'json', takes: [] },
  {
    ...{ path: '/api/sessions', work: 'sessions', thread: 'fast', form: 'json' },
    ...{ takes: ['filter', 'sort', 'after', 'limit'], slowWith: 'filter' },
  },
  {
    ...{ path: SESSION, work: 'session', thread: 'fast', form: 'json' },
    ...{ takes: ['findings'], slowWith: 'findings' },
  },
  { path: `${SESSION}/outline`, work: 'outline', thread: 'fast', form: 'json', takes: ['after', 'limit'] },
  { path: `${SESSION}/frames`, work: 'frames', thread: 'fast', form: 'json', takes: ['after', 'limit'] },
  { path: `${SESSION}/frames/:seq`, work: 'frame', thread: 'fast', form: 'json', takes: [] },
  { path: `${SESSION}/frames/:seq/bytes`, work: 'bytes', thread: 'fast', form: 'bytes', takes: [] },
  { path: `${SESSION}/frames/:seq/original`, work: 'original', thread: 'fast', form: 'bytes', takes: [] },
  {
    path: `${SESSION}/http`,
    work: 'http-exchanges',
    thread: 'fast',
    form: 'json',
    takes: ['after', 'limit', 'filter'],
    slowWith: 'filter',
  },
  { path: `${SESSION}/http/:number`, work: 'http-exchange', thread: 'fast', form: 'json', takes: [] },

  { path: `${SESSION}/select`, work: 'select', thread: 'slow', form: 'ndjson', takes: ['filter', 'after'] },
  { path: `${SESSION}/check`, work: 'check', thread: 'slow', form: 'json', takes: [] },
  { path: `${SESSION}/stats`, work: 'stats', thread: 'slow', form: 'ndjson', takes: ['by', 'filter'] },
  { path: '/api/stats', work: 'stats', thread: 'slow', form: 'ndjson', takes: ['by', 'filter'] },
  {
    ...{ path: '/api/search', work: 'search', thread: 'slow', form: 'ndjson' },
    ...{ takes: ['q', 'filter', 'limit', 'index'] },
  },
  {
    ...{ path: '/api/diff', work: 'diff', thread: 'slow', form: 'ndjson' },
    ...{ takes: ['a', 'b', 'ignore', 'ignore-tool', 'ignore-result'] },
  },
  {
    ...{ path: '/api/complete', work: 'complete', thread: 'slow', form: 'json' },
    ...{ takes: ['filter', 'at', 'session'] },
  },
  { path: '/api/snippet/:session/:seq', work: 'snippet', thread: 'slow', form: 'json', takes: ['as'] },
  {
    ...{ path: '/api/snippet/:session/http/:number', work: 'http-snippet' },
    ...{ thread: 'slow', form: 'json', takes: [] },
  },
  {
    ...{ path: '/api/export/:session', work: 'export', thread: 'slow', form: 'bytes' },
    ...{ takes: ['format', 'filter'] },
  },
  { path: '/api/runs', work: 'runs', thread: 'slow', form: 'json', takes: ['limit'] },
  {
    ...{ path: '/api/runs/:run', work: 'run', thread: 'slow', form: 'json' },
    ...{ takes: ['stretch', 'gap', 'offset', 'filter', 'after', 'limit'] },
  },
];

/** What a URL asks for. */
export type Asked = { route: Route; thread: Route['thread']; params: Params };

const TABLE = ROUTES.map((route) => ({ route, segments: route.path.split('/') }));

/** Undefined where no route has this path. */
export function findRoute({ pathname, searchParams }: URL): Asked | undefined {
  const segments = segmentsOf(pathname);
  if (segments === null) return undefined;
  for (const { route, segments: expected } of TABLE) {
    const params = paramsOf(expected, segments);
    if (params === null) continue;
    for (const name of route.takes) params[name] = searchParams.get(name) ?? undefined;
    const isSlow = route.slowWith !== undefined && params[route.slowWith] !== undefined;
    return { route, thread: isSlow ? 'slow' : route.thread, params };
  }
  return undefined;
}

/** Null for what is no encoding of a text. */
function segmentsOf(path: string): string[] | null {
  try {
    return path.split('/').map(decodeURIComponent);
  } catch {
    return null;
  }
}

function paramsOf(
  expected: readonly string[],
  segments: readonly string[],
): Record<string, string | undefined> | null {
  if (expected.length !== segments.length) return null;
  const params: Record<string, string | undefined> = {};
  for (const [i, name] of expected.entries()) {
    const segment = segments[i] ?? '';
    if (name.startsWith(':') && segment !== '') params[name.slice(1)] = segment;
    else if (name !== segment) return null;
  }
  return params;
}
