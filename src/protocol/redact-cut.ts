/** Secrets that a text breaks off in: too short for their rule, and a part of them all the same. */
import type { Edit } from './redact-edits.ts';
import type { Search } from './redact-search.ts';

/** How far back from the end a secret is looked for that has no end itself. */
const LAST_BYTES = 8192;
/** From a name on to the end of the text: its value, the quotation still open. */
const OPEN_VALUE = /^[\w.-]*(?:\\*["'])?[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}(?:\\*["'])?([^"'\r\n]+)$/d;
const OPEN_TOKEN = /^[^\s"'<>,;]+$/;
const BASE64_BEFORE = /[A-Za-z0-9+/_-]*$/;

/** `edits`: what was found by the rules. */
export function cutEdits(bytes: Buffer, edits: readonly Edit[], search: Search): Edit[] {
  const from = Math.max(0, bytes.length - LAST_BYTES);
  const text = bytes.toString('latin1', from);
  for (const { at, kind, rule } of search.signs.find(bytes.subarray(from))) {
    const id = rule?.id ?? 'secret-value';
    const start = kind === 'base64' ? at - (BASE64_BEFORE.exec(text.slice(0, at))?.[0].length ?? 0) : at;
    const rest = text.slice(start);
    const open =
      kind === 'name' ? OPEN_VALUE.exec(rest)?.indices?.[1]?.[0] : OPEN_TOKEN.test(rest) ? 0 : undefined;
    if (open === undefined) continue;
    const begin = from + start + open;
    if (edits.some((edit) => (edit.start < begin ? edit.end > begin : edit.end === bytes.length))) continue;
    return [search.edit(id, begin, bytes.length, text.slice(begin - from))];
  }
  return [];
}
