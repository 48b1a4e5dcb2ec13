/** A message, or a call with its answer, as the cells of a row. */
import type { ComponentChildren, VNode } from 'preact';
import type { FateView, FindingView } from '../../api.ts';
import type { ListColumn, ListRow } from '../list/row-list.tsx';
import { showLasting, showOffset, showSize } from '../look/format.ts';
import { Icon, Sender, Status, Unseen } from '../look/parts.tsx';
import { Brief, plainText } from '../look/text.tsx';
import { isError, OUTCOMES, outcomeOf } from './outcome.ts';
import { MARKS, type SessionOutline } from './outline.ts';
import type { TimeScale } from './scale.ts';
import css from './session.module.css';

export const COLUMNS = {
  seq: { label: '#', width: '44px', align: 'end', isExtra: 'phone', isMuted: true },
  at: { label: 'Time', width: '60px', align: 'end', isExtra: true, isMuted: true },
  message: { label: 'Message', width: 'minmax(140px, 2fr)' },
  status: { label: 'Status', width: '92px' },
  latency: { label: 'Latency', width: '64px', align: 'end' },
  size: { label: 'Size', width: '56px', align: 'end', isExtra: true, isMuted: true },
} as const satisfies Record<string, ListColumn>;

export type MessageRowOptions = {
  isRaw: boolean;
  level: number;
  isOpen: boolean;
  /** Whether the session is still recorded: a call without an answer is then in flight. */
  isLive: boolean;
  /** Of the waterfall; null without one. */
  scale: TimeScale | null;
  tone: ListRow['tone'];
  /** What `check` finds against it, each with whose fault it is. */
  findings: readonly FindingView[];
  /** What became of it, where its asker has no answer of use. */
  fate?: FateView | undefined;
};

export function messageRow(outline: SessionOutline, i: number, options: MessageRowOptions): ListRow {
  const { isRaw, level, isOpen, isLive, scale, findings, fate } = options;
  const partner = outline.partner[i] ?? -1;
  const answer = isRaw ? -1 : (outline.lastAnswer.get(i) ?? (partner > i ? partner : -1));
  const hasInner = !isRaw && (outline.children.get(i)?.length ?? 0) > 0;
  const size = outline.number('size', i) + (answer >= 0 ? outline.number('size', answer) : 0);
  const outcome = outcomeOf(outline, i, answer, isLive);
  const latency = latencyOf(outline, i, answer);
  const cells: ComponentChildren[] = [
    outline.number('seq', i),
    showOffset(outline.number('at', i)),
    <Title key="title" {...{ outline, i, findings }} isOpen={hasInner ? isOpen : null} />,
    fate ? <Fate key="fate" fate={fate} /> : outcome && <Outcome key="outcome" outcome={outcome} />,
    latency >= 0 ? showLasting(latency) : '',
    showSize(size),
  ];
  if (scale !== null) cells.push(<Bar key="bar" {...{ outline, i, answer, scale, outcome }} />);
  const isQuiet = outline.text('kind', i) === '';
  return {
    cells,
    level,
    isOpen: hasInner ? isOpen : null,
    tone: options.tone ?? (isQuiet ? 'quiet' : undefined),
  };
}

function latencyOf(outline: SessionOutline, i: number, answer: number): number {
  if (answer >= 0 && outline.lastAnswer.has(i)) return outline.number('at', answer) - outline.number('at', i);
  return outline.number('latency', answer >= 0 ? answer : i);
}

function Outcome({ outcome }: { outcome: string }): VNode {
  const { tone, icon, word } = OUTCOMES[outcome] ?? { tone: 'warn', icon: 'triangle-alert' };
  return (
    <Status tone={tone} icon={icon}>
      {word ?? outcome.replaceAll('-', ' ')}
    </Status>
  );
}

/** Who lost the call; the frame has the same sentence. */
function Fate({ fate: { verdict, text } }: { fate: FateView }): VNode {
  return (
    <span title={plainText(text)}>
      <Status tone="warn" icon={verdict === 'cancelled' ? 'x' : 'triangle-alert'}>
        {verdict.replaceAll('-', ' ')}
      </Status>
    </span>
  );
}

type BarProps = { outline: SessionOutline; i: number; answer: number; scale: TimeScale; outcome: string };

/** From the request to the answer; a message alone is a point. The latency beside it says the same. */
function Bar({ outline, i, answer, scale, outcome }: BarProps): VNode {
  const isCall = outline.text('kind', i) === 'request';
  const end =
    answer >= 0
      ? outline.number('at', answer)
      : isCall
        ? outline.endOf(i) || scale.to
        : outline.number('at', i);
  const [from, to] = [scale.x(outline.number('at', i)), scale.x(end)];
  const kind = isCall ? (answer < 0 ? css.barOpen : css.bar) : css.point;
  const side = outline.isByClient(i) ? '' : css.ofServer;
  const failed = isError(outcome) ? css.ofError : '';
  return (
    <span class={css.waterfall} aria-hidden="true">
      <span
        class={`${kind} ${side} ${failed}`}
        style={{ left: `${from * 100}%`, width: isCall ? `${(to - from) * 100}%` : undefined }}
      />
    </span>
  );
}

type TitleProps = {
  outline: SessionOutline;
  i: number;
  isOpen: boolean | null;
  findings: readonly FindingView[];
};

/** What most methods of notifications begin with: on a phone there is no room for it. */
const NOTIFICATIONS = 'notifications/';

function Title({ outline, i, isOpen, findings }: TitleProps): VNode {
  const kind = outline.text('kind', i);
  const [method, target] = [outline.text('method', i), outline.text('target', i)];
  const text = besides(outline.text('text', i), `${method} ${target}`.trim());
  const isByClient = outline.isByClient(i);
  const marks = outline.number('marks', i);
  return (
    <span class={css.message}>
      {isOpen !== null && (
        <span class={css.twist} data-twist="">
          <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} />
        </span>
      )}
      <Sender isByClient={isByClient} title={isByClient ? 'from the client' : 'from the server'} />
      {kind === '' && <span class={css.tag}>{outline.text('channel', i)}</span>}
      {(kind === 'result' || kind === 'error') && <span class={css.tag}>{kind}</span>}
      {method !== '' && (
        <span class={`${kind === 'notification' ? '' : css.method} ${target === '' ? css.alone : ''}`}>
          {method.startsWith(NOTIFICATIONS) && <span class={css.prefix}>{NOTIFICATIONS}</span>}
          <Brief text={method.startsWith(NOTIFICATIONS) ? method.slice(NOTIFICATIONS.length) : method} />
        </span>
      )}
      {target !== '' && (
        <span class={css.target}>
          <Brief text={target} />
        </span>
      )}
      {findings.length > 0 && <FindingMark findings={findings} />}
      {marks !== 0 && <span class={css.mark}>{marksIn(marks)}</span>}
      {text !== '' && (
        <span class={css.text}>
          <Brief text={text} />
        </span>
      )}
    </span>
  );
}

/** Of the line that says most, what is not said yet. */
function besides(text: string, said: string): string {
  return said !== '' && text.startsWith(said) ? text.slice(said.length).trim() : text;
}

const MARK_WORDS: readonly (readonly [mark: number, word: string])[] = [
  [MARKS.edited, 'edited'],
  [MARKS.redacted, 'redacted'],
  [MARKS.cut, 'cut'],
  [MARKS.unfinished, 'unfinished'],
  [MARKS.early, 'came early'],
];

function marksIn(marks: number): string {
  return MARK_WORDS.filter(([mark]) => (marks & mark) !== 0)
    .map(([, word]) => word)
    .join(', ');
}

/** The rule that was broken and whose fault it is; the frame tells the rest. */
function FindingMark({ findings }: { findings: readonly FindingView[] }): VNode {
  const [first] = findings;
  const worst = findings.some(({ severity }) => severity === 'error') ? css.findingError : css.finding;
  return (
    <span class={worst} title={findings.map(({ text }) => plainText(text)).join('\n')}>
      <Icon name="triangle-alert" />
      <span class={css.findingWords}>
        {first?.rule} ({first?.side}){findings.length > 1 && ` +${findings.length - 1}`}
      </span>
    </span>
  );
}

/** The column of the waterfall, with its times at the head. */
export function waterfallColumn(scale: TimeScale): ListColumn {
  const head = (
    <span class={css.ticks}>
      <Unseen>Waterfall</Unseen>
      <span aria-hidden="true">{showOffset(scale.from)}</span>
      <span aria-hidden="true">{showOffset(scale.at(0.5))}</span>
      <span aria-hidden="true">{showOffset(scale.to)}</span>
    </span>
  );
  return { label: 'Waterfall', width: 'minmax(96px, 1fr)', isExtra: true, head };
}
