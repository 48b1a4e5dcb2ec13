/** What is against the rules of the protocol in a session: by rule, each finding with its frame. */
import type { ComponentChildren, VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { CheckAnswer, FindingView, RuleFindings } from '../../api.ts';
import { Narrowing } from '../list/narrowing.tsx';
import { type ListColumn, type ListRow, RowList } from '../list/row-list.tsx';
import { type SelectedFrames, useSelection } from '../list/use-selection.ts';
import { counted, showCount } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { Button, type IconName, LinkButton, NoticeBox, Status, Unseen } from '../look/parts.tsx';
import { Words } from '../look/text.tsx';
import { address, go, setQuery } from '../shell/router.ts';
import { about, useAnswer } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import css from './findings.module.css';

type Severity = FindingView['severity'];

type Row = { type: 'rule'; rule: RuleFindings } | { type: 'finding'; finding: FindingView; number: number };

const TONES: Record<Severity, { tone: 'error' | 'warn' | 'quiet'; icon: IconName }> = {
  error: { tone: 'error', icon: 'circle-x' },
  warning: { tone: 'warn', icon: 'triangle-alert' },
  note: { tone: 'quiet', icon: 'circle-help' },
};

const SEVERITIES: readonly Severity[] = ['error', 'warning', 'note'];

const SIDES = ['client', 'server'] as const;

export function FindingsScreen({ params }: { params: Readonly<Record<string, string>> }): VNode {
  const id = params['id'] ?? '';
  const { value, failure } = useAnswer<CheckAnswer>(`sessions/${encodeURIComponent(id)}/check`);
  const { query } = address.value;
  const selected = useSelection(id, query.get('filter') ?? '', 0);
  const marked = useSelection(id, query.get('hl') ?? '', 0);
  if (failure !== null) return <TroubleBox failure={failure} />;
  // Only a server understands filters.
  const narrowing = about.value?.can.search && (
    <Narrowing
      what="findings"
      session={id}
      failure={selected.failure ?? marked.failure}
      anew={{ at: null }}
    />
  );
  return (
    <div class={parts.screen}>
      <header class={parts.tools}>
        <LinkButton href={`/s/${id}`} icon="arrow-left">
          Conversation
        </LinkButton>
        <h1>Findings</h1>
        {value === null ? (
          <p class={css.summary}>Checking against the rules …</p>
        ) : (
          <Tools answer={value} narrowing={narrowing} />
        )}
      </header>
      {value !== null && <Found id={id} answer={value} selected={selected} marked={marked} />}
    </div>
  );
}

type ToolsProps = { answer: CheckAnswer; narrowing: ComponentChildren };

function Tools({ answer: { rules, summary }, narrowing }: ToolsProps): VNode {
  const { query } = address.value;
  const [severity, side] = [query.get('severity'), query.get('side')];
  const countOf = (one: Severity) =>
    rules.filter((rule) => rule.severity === one).reduce((sum, { count }) => sum + count, 0);
  const present = SEVERITIES.filter((one) => countOf(one) > 0);
  return (
    <>
      <div class={css.choices}>
        {present.map((one) => (
          <Button
            key={one}
            kind="framed"
            icon={TONES[one].icon}
            pressed={severity === one}
            onClick={() => setQuery({ severity: severity === one ? null : one, at: null })}
          >
            {counted(countOf(one), one)}
          </Button>
        ))}
        {present.length > 0 &&
          SIDES.map((one) => (
            <Button
              key={one}
              kind="framed"
              pressed={side === one}
              onClick={() => setQuery({ side: side === one ? null : one, at: null })}
            >
              by the {one}
            </Button>
          ))}
      </div>
      {rules.length > 0 && narrowing}
      <Unseen live="count">{summary}</Unseen>
    </>
  );
}

const COLUMNS: readonly ListColumn[] = [
  { label: 'Where', width: '72px' },
  { label: 'Side', width: '56px', isExtra: true },
  { label: 'Rule, and what was found', width: 'minmax(160px, 1fr)' },
];

type FoundProps = { id: string; answer: CheckAnswer; selected: SelectedFrames; marked: SelectedFrames };

function Found({ id, answer, selected, marked }: FoundProps): VNode {
  const { query } = address.value;
  const [severity, side] = [query.get('severity'), query.get('side')];
  const isIn = ({ has }: SelectedFrames, { seq }: FindingView) => has !== null && seq !== null && has(seq);
  const isWanted = (one: FindingView) =>
    (side === null || one.side === side) && (selected.has === null || isIn(selected, one));
  const rows = rowsOf(answer, severity, isWanted);
  const drawn = useMemo(() => ({}), [severity, side, selected, marked]);
  const active = Number(query.get('at') ?? -1);
  const remarks = answer.remarks.map((remark) => (
    <p key={remark} class={css.remark}>
      {remark}
    </p>
  ));
  if (answer.rules.length === 0)
    return (
      <NoticeBox title="Nothing found" icon="check">
        <p>
          All that passed is as the protocol wants it, as far as the rules of <code>tapedeck check</code> can
          tell.
        </p>
        {remarks}
      </NoticeBox>
    );
  const open = (index: number) => {
    const row = rows[index];
    if (row?.type === 'finding') go(linkOf(id, row.finding) ?? `/s/${id}`);
  };
  const chosen = rows[active];
  return (
    <div class={css.panes} data-detail={chosen?.type === 'finding' ? '' : undefined}>
      <div class={css.list}>
        {remarks}
        <RowList
          label="Findings"
          columns={COLUMNS}
          count={rows.length}
          rowAt={(index) => rowOf(rows[index], (one) => isIn(marked, one))}
          version={drawn}
          active={active}
          onActive={(index) => setQuery({ at: String(index) }, 'replace')}
          onOpen={open}
          isMain
        />
      </div>
      <aside class={css.side} aria-label="Finding">
        {chosen?.type === 'finding' ? (
          <Detail id={id} finding={chosen.finding} about={ruleOf(answer, chosen.finding)?.about ?? ''} />
        ) : (
          <p class={css.hint}>Choose a finding to see all of it, and the frame that it is about.</p>
        )}
      </aside>
    </div>
  );
}

function ruleOf({ rules }: CheckAnswer, { rule }: FindingView): RuleFindings | undefined {
  return rules.find((one) => one.rule === rule);
}

type Test = (finding: FindingView) => boolean;

function rowsOf({ rules, findings }: CheckAnswer, severity: string | null, isWanted: Test): Row[] {
  return rules
    .filter((rule) => severity === null || rule.severity === severity)
    .flatMap((rule) => {
      const own = findings.filter((one) => one.rule === rule.rule && isWanted(one));
      const rows = own.map((finding, number): Row => ({ type: 'finding', finding, number }));
      return own.length === 0 ? [] : [{ type: 'rule', rule } as Row, ...rows];
    });
}

function rowOf(row: Row | undefined, isMarked: Test): ListRow {
  if (row === undefined) return { cells: [] };
  if (row.type === 'rule') {
    const { severity, rule, count, about } = row.rule;
    return {
      tone: 'group',
      isOpen: true,
      cells: [
        <Status tone={TONES[severity].tone} icon={TONES[severity].icon}>
          {severity}
        </Status>,
        '',
        <span class={css.rule}>
          {rule}{' '}
          <span class={css.muted}>
            {showCount(count)} × · <Words text={about} />
          </span>
        </span>,
      ],
    };
  }
  const { finding } = row;
  return {
    level: 2,
    tone: isMarked(finding) ? 'marked' : undefined,
    cells: [<span class={css.muted}>{placeOf(finding)}</span>, finding.side, <Words text={finding.text} />],
  };
}

function placeOf({ seq, n, http }: FindingView): string {
  if (seq !== null) return n === null || n === 0 ? `#${seq}` : `#${seq}.${n}`;
  return http === null ? 'session' : `HTTP ${http}`;
}

function linkOf(id: string, { seq, http }: FindingView): string | null {
  if (seq !== null) return `/s/${id}/f/${seq}`;
  return http === null ? null : `/s/${id}/h/${http}`;
}

function Detail({ id, finding, about }: { id: string; finding: FindingView; about: string }): VNode {
  const { rule, severity, side, expected, seen, url } = finding;
  const link = linkOf(id, finding);
  return (
    <section class={css.detail}>
      <h2>{rule}</h2>
      <p class={css.blame}>
        <Status tone={TONES[severity].tone} icon={TONES[severity].icon}>
          {severity}
        </Status>{' '}
        by the {side}
      </p>
      <p>
        <Words text={about} />
      </p>
      <dl>
        <dt>Expected</dt>
        <dd>
          <Words text={expected} />
        </dd>
        <dt>Saw</dt>
        <dd>
          <Words text={seen} />
        </dd>
        <dt>Rule</dt>
        <dd>
          <a href={url} target="_blank" rel="noreferrer">
            {url.replace('https://', '')}
          </a>
        </dd>
      </dl>
      {link !== null && <LinkButton href={link}>Go to {placeOf(finding)}</LinkButton>}
    </section>
  );
}
