/** What was recorded is shown as text and nothing else; what would not be seen, or would reorder its surroundings, as a mark. */
import type { ComponentChildren, VNode } from 'preact';
import { counted } from './format.ts';
import css from './parts.module.css';

/** Controls, format characters, directions of writing, byte order marks, lone surrogates. */
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Most texts: a test that costs next to nothing, for rows are drawn by the hundred. */
const PLAIN = /^[ -~]*$/;

const NAMES: Record<string, string> = { '\n': '↵', '\r': '␍', '\t': '⇥', '\u001b': '␛', '\u0000': '␀' };

function nameOf(character: string): string {
  const code = character.charCodeAt(0);
  // What `decode` makes of a byte that is not UTF-8.
  if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16).toUpperCase()}`;
  return NAMES[character] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Text of a recording. With `keep`, these characters stay as they are (a line break in a block of text). */
export function Recorded({ text, keep = '' }: { text: string; keep?: string }): VNode {
  if (PLAIN.test(text)) return <>{text}</>;
  const parts: ComponentChildren[] = [];
  let last = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (keep.includes(match[0])) continue;
    if (match.index > last) parts.push(text.slice(last, match.index));
    parts.push(
      <span class={css.control} key={match.index}>
        {nameOf(match[0])}
      </span>,
    );
    last = match.index + match[0].length;
  }
  if (last < text.length) parts.push(text.slice(last));
  return <>{parts}</>;
}

/** More characters of a name or a line nobody reads, and a browser lays a line of a megabyte out for seconds. */
const BRIEF = 2000;

/** The beginning of a text of any length, where its frame has the rest. */
export function Brief({ text, most = BRIEF }: { text: string; most?: number }): VNode {
  if (text.length <= most) return <Recorded text={text} />;
  // A pair of surrogates is one character.
  const end = /[\ud800-\udbff]/.test(text[most - 1] ?? '') ? most - 1 : most;
  return (
    <>
      <Recorded text={text.slice(0, end)} />
      <span class={css.quiet}>… {counted(text.length, 'character')} in all</span>
    </>
  );
}

/** A sentence of ours about what was recorded, with code between backticks. */
export function Words({ text }: { text: string }): VNode {
  const parts = text.split('`').map((part, i) => {
    const shown = <Recorded text={part} key={i} />;
    return i % 2 === 1 ? <code key={i}>{shown}</code> : shown;
  });
  return <>{parts}</>;
}

/** The same where no element can stand: in a title or a label. */
export function plainText(text: string): string {
  return text.replace(UNSEEN, nameOf);
}
