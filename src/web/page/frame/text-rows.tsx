import type { VNode } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { RowList } from '../list/row-list.tsx';
import { Recorded } from '../look/text.tsx';
import css from './frame.module.css';

/** So much is laid out as text that can be selected; more as rows of which those in sight exist. */
const PLAIN = 64 * 1024;

const COLUMNS = [{ label: 'Text', width: '1fr' }];

/** Any text, whatever its size. */
export function TextRows({ text, label }: { text: string; label: string }): VNode {
  if (text.length > PLAIN) return <LargeText text={text} label={label} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <pre class={css.raw} tabIndex={0} aria-label={label} role="region">
      <Lines text={text} />
    </pre>
  );
}

/** A line break shows its mark and breaks the line. */
function Lines({ text }: { text: string }): VNode {
  const lines = text.split(/(?<=\n)/);
  return (
    <>
      {lines.map((line, i) => (
        <span key={`${i} ${line.length}`} class={css.rawLine}>
          <Recorded text={line} />
        </span>
      ))}
    </>
  );
}

function LargeText({ text, label }: { text: string; label: string }): VNode {
  const [active, setActive] = useState(-1);
  const place = useRef<HTMLDivElement>(null);
  const width = Math.max(40, Math.floor(((place.current?.clientWidth ?? 560) - 40) / 7.3));
  const starts = useMemo(() => rowStarts(text, width), [text, width]);
  const rowAt = (index: number) => {
    const line = text.slice(starts[index] ?? 0, starts[index + 1] ?? text.length);
    return {
      cells: [
        <code key="text" class={css.chars}>
          <Recorded text={line} />
        </code>,
      ],
    };
  };
  return (
    <div class={css.large} ref={place}>
      <RowList
        label={label}
        columns={COLUMNS}
        count={starts.length}
        rowAt={rowAt}
        version={starts}
        active={active}
        onActive={setActive}
        isBare
      />
    </div>
  );
}

/** Where each row begins: after a line break, or where the width ends. */
function rowStarts(text: string, width: number): Int32Array {
  let starts = new Int32Array(Math.ceil(text.length / width) + 64);
  let count = 0;
  for (let at = 0; at < text.length; ) {
    if (count === starts.length) {
      const larger = new Int32Array(count * 2);
      larger.set(starts);
      starts = larger;
    }
    starts[count] = at;
    count += 1;
    const line = text.slice(at, at + width).indexOf('\n');
    at += line < 0 ? width : line + 1;
    const isSplit = at < text.length && /[\ud800-\udbff]/.test(text[at - 1] ?? '');
    if (isSplit && line < 0) at -= 1;
  }
  return starts.subarray(0, count);
}
