/** Two JSON texts side by side, with what differs marked. */
import { diffWordsWithSpace } from 'diff';
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { counted } from '../look/format.ts';
import { Recorded } from '../look/text.tsx';
import css from './compare.module.css';
import { type JsonLine, type LinePair, pairedLines, piecesOf } from './json-lines.ts';

export function SplitDiff({ a, b }: { a: string; b: string }): VNode {
  const pairs = useMemo(() => pairedLines(a, b), [a, b]);
  const [isWhole, setWhole] = useState(false);
  if (pairs === null)
    return (
      <p class={css.quiet}>
        The answers are too long to stand side by side. The list above has what differs.
      </p>
    );
  const pieces = isWhole || pairs.every(({ isEqual }) => isEqual) ? [pairs] : piecesOf(pairs);
  return (
    <div class={css.split}>
      {pieces.map((piece, i) =>
        typeof piece === 'number' ? (
          <button key={i} type="button" class={css.more} onClick={() => setWhole(true)}>
            {counted(piece, 'equal line')}
          </button>
        ) : (
          <table key={i} class={css.lines}>
            <tbody>
              {piece.map((pair, k) => (
                <PairRow key={k} pair={pair} />
              ))}
            </tbody>
          </table>
        ),
      )}
    </div>
  );
}

function PairRow({ pair: { a, b, isEqual } }: { pair: LinePair }): VNode {
  const words = !isEqual && a !== null && b !== null ? wordsOf(a.text, b.text) : null;
  return (
    <tr>
      <Side line={a} change={isEqual ? '' : 'removed'} words={words?.filter(({ added }) => !added) ?? null} />
      <Side
        line={b}
        change={isEqual ? '' : 'added'}
        words={words?.filter(({ removed }) => !removed) ?? null}
      />
    </tr>
  );
}

type Words = readonly { value: string; added?: boolean; removed?: boolean }[];

/** Longer texts are shown without what differs in them. */
const MOST_CHARACTERS = 20_000;

function wordsOf(a: string, b: string): Words | null {
  return a.length + b.length > MOST_CHARACTERS ? null : diffWordsWithSpace(a, b);
}

type SideProps = { line: JsonLine | null; change: '' | 'added' | 'removed'; words: Words | null };

const SIGNS = { '': ' ', added: '+', removed: '−' } as const;

/** What is longer is cut, and says so. */
const MOST_SHOWN = 2000;

function Side({ line, change, words }: SideProps): VNode {
  if (line === null) return <td class={css.absent} />;
  return (
    <td class={change === '' ? '' : css[change]}>
      <div class={css.code} style={{ '--depth': line.depth }}>
        <span class={css.sign}>{SIGNS[change]}</span>
        <span class={css.value}>
          {words === null ? (
            <Recorded text={line.text.slice(0, MOST_SHOWN)} />
          ) : (
            words.map(({ value, added, removed }, i) =>
              added || removed ? (
                <mark key={i}>
                  <Recorded text={value.slice(0, MOST_SHOWN)} />
                </mark>
              ) : (
                <Recorded key={i} text={value.slice(0, MOST_SHOWN)} />
              ),
            )
          )}
          {line.text.length > MOST_SHOWN && ' …'}
        </span>
      </div>
    </td>
  );
}
