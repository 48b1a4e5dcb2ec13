/** What stands around every screen: the bar, the help, and what is said when there is no screen to show. */
import { useSignal } from '@preact/signals';
import type { ComponentType, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ReportFacts } from '../api.ts';
import css from './app.module.css';
import { showMoment } from './look/format.ts';
import { Button, NoticeBox, Status } from './look/parts.tsx';
import { Recorded } from './look/text.tsx';
import { SCREENS, type Screen, type ScreenProps } from './screens.ts';
import { useFullIds } from './shell/full-ids.ts';
import { HelpDialog } from './shell/help.tsx';
import { useKeys } from './shell/keys.ts';
import { cutOff } from './shell/live.ts';
import { address, go, matchPath } from './shell/router.ts';
import { about, failureOf, troubleAtStart, UNAUTHORIZED } from './shell/source.ts';
import { nextTheme, theme } from './shell/theme.ts';
import { TroubleBox } from './shell/trouble.tsx';

export function App(): VNode {
  const isHelpOpen = useSignal(false);
  const { path } = address.value;
  const report = about.value?.report;
  // A report has one session, and nothing to choose.
  const found = screenAt(report && path === '/' ? `/s/${report.session}` : path);
  const title = found?.screen.title ?? 'Not found';
  useFullIds();
  const barKeys = SCREENS.flatMap(({ bar, path }) =>
    bar ? [[`g ${bar.key}`, () => go(path)] as const] : [],
  );
  useKeys({
    ...Object.fromEntries(barKeys),
    '?': () => {
      isHelpOpen.value = true;
    },
    '/': () => {
      const box = document.querySelector<HTMLInputElement>('[data-filter]');
      box?.focus();
      box?.select();
      return box !== null;
    },
  });
  useEffect(() => {
    document.title = `${title} · tapedeck`;
  }, [title]);
  return (
    <div class={css.app}>
      <Bar path={path} onHelp={() => (isHelpOpen.value = true)} />
      {about.value?.report && <ReportNote report={about.value.report} />}
      <CutOffNote />
      <main class={css.main}>
        {troubleAtStart.value ? <TroubleBox failure={troubleAtStart.value} /> : <Content found={found} />}
      </main>
      {isHelpOpen.value && <HelpDialog onClose={() => (isHelpOpen.value = false)} />}
    </div>
  );
}

type Found = { screen: Screen; params: Record<string, string> };

function screenAt(path: string): Found | null {
  for (const screen of SCREENS) {
    const params = matchPath(screen.path, path);
    if (params !== null) return { screen, params };
  }
  return null;
}

function Content({ found }: { found: Found | null }): VNode | null {
  const { needs } = found?.screen ?? {};
  // A screen begins to ask before it is known what the other end can do.
  if (found === null || (needs && about.value?.can[needs] === false)) {
    return (
      <NoticeBox title="There is no such page" icon="circle-help">
        <p>
          The address names no screen of the viewer. <a href="/">See all sessions.</a>
        </p>
      </NoticeBox>
    );
  }
  const { screen, params } = found;
  if ('view' in screen) return <screen.view params={params} />;
  return <Loaded key={screen.path} load={screen.load} params={params} />;
}

function Loaded({
  load,
  params,
}: ScreenProps & { load(): Promise<ComponentType<ScreenProps>> }): VNode | null {
  const [view, setView] = useState<{ View: ComponentType<ScreenProps> } | { error: unknown } | null>(null);
  useEffect(() => {
    load().then(
      (View) => setView({ View }),
      (error) => setView({ error }),
    );
  }, [load]);
  if (view !== null && 'error' in view) return <TroubleBox failure={failureOf(view.error)} />;
  return view && <view.View params={params} />;
}

const THEMES = {
  system: { icon: 'sun-moon', label: 'Colours: as the system says' },
  light: { icon: 'sun', label: 'Colours: light' },
  dark: { icon: 'moon', label: 'Colours: dark' },
} as const;

function Bar({ path, onHelp }: { path: string; onHelp(): void }): VNode {
  const can = about.value?.can;
  const links = SCREENS.filter(
    ({ bar, needs }) => bar !== undefined && !about.value?.report && (needs === undefined || can?.[needs]),
  );
  const { icon, label } = THEMES[theme.value];
  return (
    <header class={css.bar}>
      <a
        class={css.brand}
        href="/"
        aria-label={about.value?.report ? 'tapedeck, the session' : 'tapedeck, all sessions'}
      >
        <Reels />
        <span>tapedeck</span>
      </a>
      <nav class={css.links} aria-label="Screens">
        {links.map((screen) => (
          <a key={screen.path} href={screen.path} aria-current={screen.path === path ? 'page' : undefined}>
            {screen.bar?.label}
          </a>
        ))}
      </nav>
      <span class={css.store}>{about.value?.store}</span>
      <Button icon={icon} label={label} onClick={nextTheme} />
      <Button icon="circle-help" label="Keys and help" onClick={onHelp} />
    </header>
  );
}

/** No day that a report is made on: its date is always told. */
const NEVER = new Date(0);

/** What a report is: that it is one, of when, and what of the session it has. */
function ReportNote({ report }: { report: ReportFacts }): VNode {
  const { madeAt, version, redacted, filter } = report;
  return (
    <aside class={css.report} aria-label="About this report">
      <strong>A report, not a live view</strong>
      <span>
        made {showMoment(madeAt, NEVER)} by tapedeck {version}
      </span>
      <span>
        {filter === null ? (
          'the whole session'
        ) : (
          <>
            only what matches{' '}
            <code>
              <Recorded text={filter} />
            </code>
          </>
        )}
      </span>
      <span>{redacted ? 'secrets are redacted' : 'nothing is redacted'}</span>
      <span>
        <code>{about.value?.typed} import</code> makes a recording of this file again
      </span>
    </aside>
  );
}

/** What is shown may be old: that is said as long as it is so. */
function CutOffNote(): VNode {
  const failure = cutOff.value;
  return (
    <div role="status">
      {failure !== null && (
        <p class={css.cutOff}>
          <Status tone="warn" icon="triangle-alert">
            Cut off
          </Status>
          <span>
            {failure.code === UNAUTHORIZED
              ? 'The viewer was started anew. Open the link that it printed.'
              : 'The viewer does not answer; this page asks again. What it shows may be old.'}
          </span>
        </p>
      )}
    </div>
  );
}

/** Two reels of tape. */
function Reels(): VNode {
  return (
    <svg class={css.reels} viewBox="0 0 24 24" aria-hidden="true">
      <rect x="2" y="5" width="20" height="14" rx="3" />
      <circle cx="8" cy="12" r="2.5" />
      <circle cx="16" cy="12" r="2.5" />
      <path d="M8 14.5h8" />
    </svg>
  );
}
