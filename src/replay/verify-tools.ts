/**
 * What became of a server's tools: added, removed, changed, and whether a caller who knew the recorded ones breaks. It
 * does if a tool or one of its arguments is gone, an argument is newly required, takes fewer types or values, or if a
 * part of what the tool promised to give is gone. All else (titles, descriptions, new optional arguments) does not break.
 */
import { type Difference, diffOf } from './diff.ts';
import type { IgnoreRules } from './ignore.ts';
import type { Tools } from './tools.ts';
import { withoutIgnored } from './verify-ignored.ts';

export type ToolChange = {
  tool: string;
  change: 'added' | 'removed' | 'changed';
  /** Why callers break, in words; empty where they do not. */
  breaking: string[];
  /** Their pointers begin at the tool. */
  differences: Difference[];
};

/** `ignored`: by tool, the arguments that do not count. */
export function compareTools(
  recorded: Tools,
  live: Tools,
  ignored: IgnoreRules['tools'] = new Map(),
): ToolChange[] {
  const changes: ToolChange[] = [];
  for (const [tool, text] of recorded) {
    const liveText = live.get(tool);
    if (liveText === undefined) {
      changes.push({ tool, change: 'removed', breaking: ['the tool is gone'], differences: [] });
      continue;
    }
    const [before, after] = [text, liveText].map((one) => withoutIgnored(one, ignored.get(tool)));
    if (before === undefined || after === undefined || before.equals(after)) continue;
    const breaking = breakingChanges(JSON.parse(before.toString()), JSON.parse(after.toString()));
    changes.push({ tool, change: 'changed', breaking, differences: diffOf(before, after).differences });
  }
  for (const tool of live.keys())
    if (!recorded.has(tool)) changes.push({ tool, change: 'added', breaking: [], differences: [] });
  return changes;
}

function breakingChanges(before: unknown, after: unknown): string[] {
  const breaking: string[] = [];
  narrowed(member(before, 'inputSchema'), member(after, 'inputSchema'), '/inputSchema', 0, breaking);
  missing(member(before, 'outputSchema'), member(after, 'outputSchema'), '/outputSchema', 0, breaking);
  return breaking;
}

/** Far deeper than any schema. */
const MAX_DEPTH = 50;

/** What the schema `before` took and `after` does not. */
function narrowed(before: unknown, after: unknown, at: string, depth: number, breaking: string[]): void {
  if (!isObject(before) || !isObject(after) || depth > MAX_DEPTH) return;
  const lostTypes = typesOf(before).filter((type) => !takesType(typesOf(after), type));
  if (lostTypes.length > 0) breaking.push(`${at}/type: does not take ${lostTypes.join(', ')} any more`);
  const newlyRequired = names(after['required']).filter((name) => !names(before['required']).includes(name));
  for (const name of newlyRequired) breaking.push(`${at}/required: ${JSON.stringify(name)} is required now`);
  if (after['additionalProperties'] === false && before['additionalProperties'] !== false)
    breaking.push(`${at}/additionalProperties: others are refused now`);
  for (const key of ['enum', 'anyOf', 'oneOf'])
    lostChoices(before[key], after[key], `${at}/${key}`, breaking);
  if (JSON.stringify(before['const']) !== JSON.stringify(after['const']) && after['const'] !== undefined)
    breaking.push(`${at}/const: takes one value only, another one than before`);
  for (const [name, schema] of properties(before)) {
    const other = properties(after).find(([known]) => known === name)?.[1];
    const path = `${at}/properties/${escaped(name)}`;
    if (other === undefined) breaking.push(`${path}: is gone`);
    else narrowed(schema, other, path, depth + 1, breaking);
  }
  narrowed(before['items'], after['items'], `${at}/items`, depth + 1, breaking);
}

function lostChoices(before: unknown, after: unknown, at: string, breaking: string[]): void {
  if (!Array.isArray(after)) return;
  if (!Array.isArray(before)) {
    breaking.push(`${at}: only these are taken now`);
    return;
  }
  const kept = new Set(after.map((choice) => JSON.stringify(choice)));
  const lost = before.map((choice) => JSON.stringify(choice)).filter((choice) => !kept.has(choice));
  if (lost.length > 0) breaking.push(`${at}: does not take ${lost.join(', ')} any more`);
}

/** What the schema `before` promised and `after` does not. */
function missing(before: unknown, after: unknown, at: string, depth: number, breaking: string[]): void {
  if (!isObject(before) || depth > MAX_DEPTH) return;
  if (!isObject(after)) {
    breaking.push(`${at}: is gone`);
    return;
  }
  for (const [name, schema] of properties(before)) {
    const other = properties(after).find(([known]) => known === name)?.[1];
    missing(schema, other, `${at}/properties/${escaped(name)}`, depth + 1, breaking);
  }
}

const ANY = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

/** Without `type` every type is taken. */
function typesOf({ type }: Record<string, unknown>): string[] {
  if (typeof type === 'string') return [type];
  return Array.isArray(type) ? type.map(String) : ANY;
}

function takesType(types: readonly string[], type: string): boolean {
  return types.includes(type) || (type === 'integer' && types.includes('number'));
}

function properties(schema: Record<string, unknown>): [string, unknown][] {
  const { properties: found } = schema;
  return isObject(found) ? Object.entries(found) : [];
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
}

function member(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
