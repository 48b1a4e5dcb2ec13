/**
 * What PostgreSQL's text and jsonb cannot hold: U+0000, and half of a surrogate pair. In the column stands U+2400 or U+FFFD, and
 * in `odd`, as JSON by column, the true values.
 */

import { type EngineTable, tableNamed } from './tables.ts';

type Row = Readonly<Record<string, unknown>>;

/** The row as the engine takes it: without what its text cannot hold, and with its jsonb as text. */
export function withStandIns(table: string, row: Row): Record<string, unknown> {
  const taken: Record<string, unknown> = { ...row };
  const odd: Record<string, unknown> = {};
  for (const { name, type } of textColumns(tableNamed(table))) {
    const value = row[name];
    if (value === null || value === undefined) continue;
    const held = type === 'jsonb' ? JSON.stringify(value, inJson) : heldText(value as string);
    taken[name] = held;
    const isTrue = type === 'jsonb' ? JSON.stringify(value) === held : held === value;
    if (!isTrue) odd[name] = value;
  }
  if (Object.keys(odd).length > 0) taken['odd'] = Buffer.from(JSON.stringify(odd));
  return taken;
}

const known = new Map<EngineTable, EngineTable['columns']>();

function textColumns(table: EngineTable): EngineTable['columns'] {
  const before = known.get(table);
  if (before !== undefined) return before;
  const columns = table.columns.filter(({ type }) => type === 'text' || type === 'jsonb');
  known.set(table, columns);
  return columns;
}

/** The text as the engine takes it: itself, where nothing is in the way. */
export function heldText(text: string): string {
  if (!text.includes('\0') && isWellFormed(text)) return text;
  return text.replaceAll('\0', '\u2400').replaceAll(LONE, '\ufffd');
}

const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

/** Names of members too. */
function inJson(_: string, value: unknown): unknown {
  if (typeof value === 'string') return heldText(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [heldText(name), one]));
}
