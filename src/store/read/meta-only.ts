/** Frames without payloads: of these a session has sizes, times and hashes (`record --meta-for`, `--capture meta`). */

import { META_RULE } from '../../protocol/redact/redactor.ts';
import { commandLine } from '../../protocol/text.ts';
import type { Frame } from '../../protocol/wire/frame.ts';
import type { Store } from '../file/open.ts';
import type { SessionRow } from './sessions.ts';

/** Whether a frame is kept without its payload. */
export function isMetaOnly({ redacted }: Pick<Frame, 'redacted'>): boolean {
  return redacted?.includes(META_RULE) === true;
}

/** Whether calls may be missing in a session because frames of it have no payload. */
export function mayLackPayloads({ capture, metaFor }: Pick<SessionRow, 'capture' | 'metaFor'>): boolean {
  return capture === 'meta' || metaFor !== null;
}

/** In so many sessions of the store frames have no payload. */
export function countLackingPayloads(store: Store): number {
  const sql = `SELECT count(*) FROM session WHERE redaction ->> '$.capture' = 'meta' OR redaction ->> '$.metaFor' IS NOT NULL`;
  return store.prepare<[], number>(sql).pluck().get() ?? 0;
}

/** The frames of which filters of `record --meta-for` have kept no payload, and these filters, of which one held. */
export type MetaOnly = { frames: number; filters: readonly string[] };

/** Null: the session was recorded without such filters. */
export function metaOnlyOf(
  store: Store,
  { number, metaFor }: Pick<SessionRow, 'number' | 'metaFor'>,
): MetaOnly | null {
  if (metaFor === null) return null;
  const count = store.prepare<[number], number>(
    `SELECT count(*) FROM frame_redaction WHERE session = ? AND instr(' ' || rules || ' ', ' ${META_RULE} ') > 0`,
  );
  return { frames: count.pluck().get(number) ?? 0, filters: JSON.parse(metaFor) as string[] };
}

/** `3 frames without payload, only sizes, times and hashes (--meta-for tool=read_file)`. Nothing is escaped. */
export function metaOnlyText({ frames, filters }: MetaOnly): string {
  const options = commandLine(filters.flatMap((filter) => ['--meta-for', filter]));
  const count = frames === 1 ? '1 frame' : `${frames} frames`;
  return `${count} without payload, only sizes, times and hashes (${options})`;
}
