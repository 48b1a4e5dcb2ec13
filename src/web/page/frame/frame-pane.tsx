/** One frame to its last byte. */
import type { VNode } from 'preact';
import type { FindingView, FrameDetail } from '../../api.ts';
import { counted, showLasting, showMoment, showSize } from '../look/format.ts';
import { Button, Status } from '../look/parts.tsx';
import { Recorded, Words } from '../look/text.tsx';
import { CopyMenu } from '../menus/copy-menu.tsx';
import { useKeys } from '../shell/keys.ts';
import { address, go, setQuery, withQuery } from '../shell/router.ts';
import { useAnswer } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import { BytesTab } from './bytes-tab.tsx';
import css from './frame.module.css';
import { HeadersTab } from './headers-tab.tsx';
import { HexTab } from './hex-tab.tsx';
import { PrettyTab } from './pretty-tab.tsx';
import { RawTab } from './raw-tab.tsx';

type Tab = {
  name: string;
  label: string;
  view(props: { frame: FrameDetail }): VNode | null;
  isFor?(frame: FrameDetail): boolean;
};

/** The tabs of a frame; a further one is a further row. */
const TABS: readonly Tab[] = [
  { name: 'pretty', label: 'Pretty', view: PrettyTab },
  { name: 'raw', label: 'Raw', view: RawTab },
  { name: 'hex', label: 'Hex', view: HexTab },
  { name: 'bytes', label: 'Bytes', view: BytesTab },
  { name: 'headers', label: 'Headers', view: HeadersTab, isFor: ({ http }) => http !== null },
];

type FramePaneProps = { session: string; seq: number; findings: readonly FindingView[] };

export function FramePane({ session, seq, findings }: FramePaneProps): VNode | null {
  const { value: frame, failure } = useAnswer<FrameDetail>(`sessions/${session}/frames/${seq}`);
  const chosen = address.value.query.get('tab') ?? TABS[0]?.name;
  const tabs = TABS.filter(({ isFor }) => frame === null || (isFor?.(frame) ?? true));
  const tab = tabs.find(({ name }) => name === chosen) ?? tabs[0];
  const choose = (name: string) => setQuery({ tab: name === TABS[0]?.name ? null : name }, 'replace');
  const other = frame?.answeredBy ?? frame?.messages[0]?.replyTo ?? null;
  useKeys({
    ...Object.fromEntries(tabs.map(({ name }, i) => [String(i + 1), () => choose(name)])),
    ']': () => frame?.answeredBy != null && goTo(session, frame.answeredBy),
    '[': () => frame?.messages[0]?.replyTo != null && goTo(session, frame.messages[0].replyTo),
  });
  if (failure !== null) return <TroubleBox failure={failure} />;
  return (
    <section class={css.pane}>
      <FrameHead session={session} seq={seq} frame={frame} other={other} />
      <Findings findings={findings} />
      <div class={css.tabs} role="tablist" aria-label="Views of the frame">
        {tabs.map(({ name, label }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={name === tab?.name}
            aria-controls="frame-view"
            tabIndex={name === tab?.name ? 0 : -1}
            onClick={() => choose(name)}
            onKeyDown={(event) => stepTab(event, tabs, name, choose)}
          >
            {label}
          </button>
        ))}
      </div>
      <div class={css.view} id="frame-view" role="tabpanel" aria-labelledby={`tab-${tab?.name}`}>
        {frame && tab && <tab.view key={`${tab.name} ${seq}`} frame={frame} />}
      </div>
    </section>
  );
}

function goTo(session: string, seq: number): true {
  go(withQuery({}, `/s/${session}/f/${seq}`));
  return true;
}

function stepTab(
  event: KeyboardEvent,
  tabs: readonly Tab[],
  name: string,
  choose: (name: string) => void,
): void {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (by === undefined) return;
  const at = tabs.findIndex((tab) => tab.name === name);
  const next = tabs[(at + by + tabs.length) % tabs.length];
  if (next === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  choose(next.name);
  document.getElementById(`tab-${next.name}`)?.focus();
}

type HeadProps = { session: string; seq: number; frame: FrameDetail | null; other: number | null };

function FrameHead({ session, seq, frame, other }: HeadProps): VNode {
  const message = frame?.messages[0];
  const fate = frame?.messages.find(({ fate }) => fate?.text)?.fate;
  const title = message?.method ?? message?.kind ?? frame?.channel ?? '';
  return (
    <header class={css.head}>
      <div class={css.title}>
        <h2>
          <span class={css.muted}>#{seq}</span> <Recorded text={title} />
        </h2>
        <span class={css.acts}>
          {frame && <CopyMenu frame={frame} />}
          <Button icon="x" label="Close the detail" onClick={() => go(withQuery({}, `/s/${session}`))} />
        </span>
      </div>
      {frame && (
        <p class={css.facts}>
          <span>{frame.direction === 'client-to-server' ? 'client → server' : 'server → client'}</span>
          <span>{frame.channel}</span>
          <time dateTime={frame.at}>{showMoment(frame.at)}</time>
          <span>{showSize(frame.size)}</span>
          {frame.messages.length > 1 && <span>{counted(frame.messages.length, 'message')}</span>}
          {message?.latencyMs != null && <span>after {showLasting(message.latencyMs * 1000)}</span>}
          {frame.fault && (
            <Status tone="warn">
              fault {frame.fault.number} on purpose: {frame.fault.action}
            </Status>
          )}
          {frame.edited && <Status tone="warn">edited</Status>}
          {frame.redacted && <Status tone="warn">redacted</Status>}
          {frame.truncated && <Status tone="warn">cut by the recorder</Status>}
          {frame.reserialised && <Status tone="warn">written anew: not the bytes that passed</Status>}
          {frame.unfinished && <Status tone="warn">unfinished</Status>}
          {message?.problem != null && <Status tone="error">{message.problem.replaceAll(',', ', ')}</Status>}
          {other !== null && (
            <a href={withQuery({}, `/s/${session}/f/${other}`)}>
              {frame.answeredBy === null ? `answers #${other}` : `answered by #${other}`}
            </a>
          )}
        </p>
      )}
      {fate && (
        <p class={css.facts}>
          <Status tone="warn" icon="triangle-alert">
            <Recorded text={fate.text} />
          </Status>
        </p>
      )}
    </header>
  );
}

/** What `check` says of the frame. */
function Findings({ findings }: { findings: readonly FindingView[] }): VNode | null {
  if (findings.length === 0) return null;
  return (
    <ul class={css.findings} aria-label="Findings">
      {findings.map(({ rule, side, severity, text, url }) => (
        <li key={`${rule} ${text}`}>
          <Status tone={severity === 'error' ? 'error' : 'warn'} icon="triangle-alert">
            {severity}
          </Status>{' '}
          <a href={url} target="_blank" rel="noreferrer" title={url}>
            {rule}
          </a>{' '}
          <span class={css.muted}>({side})</span> <Words text={text} />
        </li>
      ))}
    </ul>
  );
}
