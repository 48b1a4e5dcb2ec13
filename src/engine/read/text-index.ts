/** The index of texts that `engine maintain --text-index` makes of weeks that are over: which sessions may have what a filter is about. */

import type { Client } from 'pg';
import type { Filter } from '../../inspect/filter/filter.ts';
import { INDEXED_BYTES } from '../schema.ts';
import { type IndexedTexts, isInRanges, payloadHasSql, textsIn } from './candidates.ts';

/** A text that is in more frames than that is soon found without an index, from the newest session on. */
const MOST_FRAMES = 10_000;

/** Asks the index for the texts of a filter. Without one, or where the filter is about no text, nothing is said of any. */
export async function askTextIndex(client: Client, filter: Filter): Promise<IndexedTexts> {
  const texts = textsIn(filter);
  const ranges = texts.size === 0 ? [] : await indexedRanges(client);
  const sessions = new Map<string, string[]>();
  if (ranges.length === 0) return { ranges, sessions };
  for (const [key, needles] of texts) {
    const found = await sessionsWith(client, needles, ranges);
    if (found !== null) sessions.set(key, found);
  }
  return { ranges, sessions };
}

/** Weeks that follow one another are one range. */
async function indexedRanges(client: Client): Promise<[string, string][]> {
  const { rows } = await client.query<{ from: string; before: string }>(
    `SELECT w.week::text AS "from", (w.week + 7)::text AS before FROM (
       SELECT to_date(right(t.relname, 8), 'YYYYMMDD') AS week
       FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS t ON t.oid = x.indrelid
       WHERE t.relnamespace = to_regnamespace('tapedeck') AND t.relname ~ '^frame_[0-9]{8}$' AND x.indisvalid
         AND i.relname IN (t.relname || '_text', t.relname || '_large')
       GROUP BY t.relname HAVING count(*) = 2) AS w ORDER BY w.week`,
  );
  const ranges: [string, string][] = [];
  for (const { from, before } of rows) {
    const last = ranges.at(-1);
    if (last?.[1] === from) last[1] = before;
    else ranges.push([from, before]);
  }
  return ranges;
}

/** Null: too many frames may have it. */
async function sessionsWith(
  client: Client,
  needles: readonly string[],
  ranges: IndexedTexts['ranges'],
): Promise<string[] | null> {
  // However often the planner takes the text to be there, it must not read all payloads of a week.
  await client.query('SET LOCAL enable_seqscan = off');
  const { rows } = await client.query<{ session: string; frames: number }>({
    text: textIndexSql(needles.length, ranges),
    values: [...needles.map(likePattern), ...needles],
  });
  await client.query('SET LOCAL enable_seqscan = on');
  const frames = rows.reduce((sum, one) => sum + one.frames, 0);
  return frames > MOST_FRAMES ? null : rows.map(({ session }) => session);
}

/** Parameters: the needles as patterns of LIKE, then the needles. */
export function textIndexSql(needles: number, ranges: IndexedTexts['ranges']): string {
  const places = (after: number) => Array.from({ length: needles }, (_, i) => `$${after + i + 1}::text`);
  const likes = places(0).map((pattern) => `tapedeck.payload_text(f.payload) LIKE ${pattern}`);
  const days = isInRanges('f.day', ranges);
  return `SELECT session::text AS session, count(*) AS frames FROM (
      SELECT f.session FROM tapedeck.frame AS f WHERE ${days} AND (${likes.join(' OR ')})
      UNION ALL
      SELECT f.session FROM tapedeck.frame AS f
        WHERE ${days} AND f.size > ${INDEXED_BYTES} AND ${payloadHasSql(places(needles))}
      LIMIT ${MOST_FRAMES + 1}) AS hit GROUP BY session`;
}

/** https://www.postgresql.org/docs/15/functions-matching.html#FUNCTIONS-LIKE */
function likePattern(needle: string): string {
  return `%${needle.replaceAll(/[\\%_]/g, '\\$&')}%`;
}
