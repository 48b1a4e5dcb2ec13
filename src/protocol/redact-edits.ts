/** Places of a text that are replaced, and what stands there instead. */

/** Bytes `start` up to, not including, `end` become `text`, which is ASCII. `rule` says why. */
export type Edit = { start: number; end: number; text: string; rule: string };

/** Of edits that overlap, the one that begins first, and of these the longest. */
export function withoutOverlaps(edits: readonly Edit[]): Edit[] {
  const sorted = edits.toSorted((a, b) => a.start - b.start || b.end - a.end);
  let end = -1;
  return sorted.filter((edit) => {
    if (edit.start < end) return false;
    end = edit.end;
    return true;
  });
}

/** The bytes with the edits made, which are in order and do not overlap. */
export function applyEdits(bytes: Buffer, edits: readonly Edit[]): Buffer {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const { start, end, text } of edits) {
    pieces.push(bytes.subarray(from, start), Buffer.from(text, 'latin1'));
    from = end;
  }
  pieces.push(bytes.subarray(from));
  return Buffer.concat(pieces);
}

/** The edits of a piece as edits of what it stands in. `at` says where each of its bytes stands there. */
export function movedBy(edits: readonly Edit[], at: (i: number) => number): Edit[] {
  return edits.map((edit) => ({ ...edit, start: at(edit.start), end: at(edit.end) }));
}

/** Adds edits one by one: a text may have more of them than a call can have arguments. */
export function addEdits(edits: Edit[], more: readonly Edit[]): void {
  for (const edit of more) edits.push(edit);
}
