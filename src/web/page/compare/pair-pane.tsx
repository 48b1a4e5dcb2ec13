/** One difference, whole: where the two sides differ, and both answers side by side. */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { DifferenceView, DiffLine, FrameDetail } from '../../api.ts';
import { showCount } from '../look/format.ts';
import { Button, Status } from '../look/parts.tsx';
import { Recorded } from '../look/text.tsx';
import { source } from '../shell/source.ts';
import css from './compare.module.css';
import { addRule, pathOfPointer } from './ignore-rules.tsx';
import { SplitDiff } from './split-diff.tsx';

export type ComparedCall = Extract<DiffLine, { type: 'call' }>;

export type ComparedOffer = Extract<DiffLine, { type: 'list' }>;

type Sides = { a: string; b: string };

export function CallPane({ call, sides }: { call: ComparedCall; sides: Sides }): VNode {
  const { method, target, why, differences, moreDifferences, verdict, a, b } = call;
  const isOfParams = verdict === 'other arguments';
  return (
    <section class={css.detail}>
      <h2>
        <Recorded text={[method, target ?? ''].join(' ').trim()} />
      </h2>
      <p class={css.facts}>
        <span>{verdict}</span>
        {a !== null && <a href={`/s/${sides.a}/f/${a}`}>a #{a}</a>}
        {b !== null && <a href={`/s/${sides.b}/f/${b}`}>b #{b}</a>}
      </p>
      {why !== null && (
        <p>
          <Recorded text={why} />
        </p>
      )}
      {differences.length > 0 && (
        <Differences
          title={isOfParams ? 'Other arguments' : 'Where the answers differ'}
          differences={differences}
          more={moreDifferences}
          onIgnore={isOfParams ? null : (pointer) => addRule('ignore-result', resultPath(call, pointer))}
        />
      )}
      {a !== null && b !== null && (
        <Answers sides={sides} a={a} b={b} part={isOfParams ? 'params' : 'answer'} />
      )}
    </section>
  );
}

/** For one tool alone, where it is one. */
function resultPath({ method, target }: ComparedCall, pointer: string): string {
  const path = pathOfPointer(pointer);
  return method === 'tools/call' && target !== null ? `${target}:${path}` : path;
}

export function OfferPane({ offer }: { offer: ComparedOffer }): VNode {
  const { kind, name, change, reasons, differences } = offer;
  return (
    <section class={css.detail}>
      <h2>
        {kind} <Recorded text={name} />
      </h2>
      <p class={css.facts}>
        <span>{change}</span>
        <span>{reasons.length > 0 ? 'breaking' : 'not breaking'}</span>
      </p>
      {reasons.map((reason) => (
        <Status key={reason} tone="error" icon="triangle-alert">
          <Recorded text={reason} />
        </Status>
      ))}
      {differences.length > 0 && (
        <Differences title="What changed" differences={differences} more={0} onIgnore={null} />
      )}
    </section>
  );
}

type DifferencesProps = {
  title: string;
  differences: readonly DifferenceView[];
  more: number;
  onIgnore: ((pointer: string) => void) | null;
};

/** The beginnings of long values are enough to tell them apart; the whole ones stand below. */
const SHOWN = 200;

function Differences({ title, differences, more, onIgnore }: DifferencesProps): VNode {
  return (
    <table class={css.differences}>
      <caption>{title}</caption>
      <thead>
        <tr>
          <th scope="col">At</th>
          <th scope="col">a</th>
          <th scope="col">b</th>
          {onIgnore !== null && <th scope="col" aria-label="Ignore" />}
        </tr>
      </thead>
      <tbody>
        {differences.map(({ pointer, change, a, b }) => (
          <tr key={`${pointer} ${change}`}>
            <th scope="row">
              <Recorded text={pointer === '' ? '(all of it)' : pointer} />
            </th>
            <td class={a === null ? css.absent : css.removed}>
              <Recorded text={(a ?? '').slice(0, SHOWN)} />
            </td>
            <td class={b === null ? css.absent : css.added}>
              <Recorded text={(b ?? '').slice(0, SHOWN)} />
            </td>
            {onIgnore !== null && (
              <td>
                <Button label={`Ignore ${pointer} in results`} icon="x" onClick={() => onIgnore(pointer)} />
              </td>
            )}
          </tr>
        ))}
        {more > 0 && (
          <tr>
            <td colSpan={4}>and {showCount(more)} more</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

type AnswersProps = { sides: Sides; a: number; b: number; part: 'params' | 'answer' };

function Answers({ sides, a, b, part }: AnswersProps): VNode | null {
  const before = useMessage(sides.a, a, part);
  const after = useMessage(sides.b, b, part);
  if (before === null || after === null) return null;
  return (
    <>
      <h3 class={css.sub}>{part === 'params' ? 'The requests' : 'The answers'}, a to the left</h3>
      <SplitDiff a={before} b={after} />
    </>
  );
}

/** The text of a request's frame, or of the frame that answers it; null until it is there. */
function useMessage(session: string, seq: number, part: 'params' | 'answer'): string | null {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const frameAt = (at: number) =>
      source().json<FrameDetail>(`sessions/${encodeURIComponent(session)}/frames/${at}`, abort.signal);
    const load = async () => {
      const asking = await frameAt(seq);
      if (part === 'params') return textOf(asking);
      return asking.answeredBy === null ? '' : textOf(await frameAt(asking.answeredBy));
    };
    // Without the frames the list of differences stands alone.
    load().then(setText, () => {});
    return () => abort.abort();
  }, [session, seq, part]);
  return text;
}

function textOf({ text, sse }: FrameDetail): string {
  return sse?.data ?? text ?? '';
}
