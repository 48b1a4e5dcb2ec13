/**
 * Compares what a server offers: tools, prompts, resources and templates of resources. A changed tool breaks its callers
 * where the tool or one of its arguments is gone, where an argument is newly required or takes fewer types or values, or
 * where a part of the promised result is gone. Titles, descriptions and new optional arguments break nothing.
 */

import { canonicalText, KEEP_ALL } from '../../protocol/json/canonical.ts';
import { type Difference, diffOf } from '../../protocol/json/diff.ts';
import { memberAt, sourceAt } from '../../protocol/json/edit.ts';
import { followInto, NO_PATHS, type PathProgress } from '../../protocol/json/path.ts';
import { eachElement, isObject } from '../../protocol/json/read.ts';
import { type IgnoreRules, ignoring, type ToolRules } from '../match/ignore.ts';

type ToolChange = {
  tool: string;
  change: 'added' | 'removed' | 'changed';
  /** Why callers break, in words; empty where they do not. */
  breaking: string[];
  /** Their pointers begin at the tool. */
  differences: Difference[];
};

/** `ignored`: the arguments that do not count, by tool. */
export function compareTools(
  recorded: ReadonlyMap<string, Buffer>,
  live: ReadonlyMap<string, Buffer>,
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

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/**
 * Removes the schemas of ignored arguments (`--ignore-tool`, ignore.ts) from a tool. A path leads from the arguments to one
 * of them, and so through the `properties` and `items` of the input schema. Takes and returns canonical JSON.
 */
function withoutIgnored(tool: Buffer, rules: ToolRules | undefined): Buffer {
  if (rules === undefined) return tool;
  const parsed = JSON.parse(tool.toString()) as Record<string, unknown>;
  if (rules.isEveryArgumentIgnored) delete parsed['inputSchema'];
  else parsed['inputSchema'] = schemaWithout(parsed['inputSchema'], rules.arguments);
  const text = Buffer.from(JSON.stringify(parsed));
  const canonical = canonicalText(text, { start: 0, end: text.length, type: 'object' });
  return typeof canonical === 'string' ? text : canonical;
}

function schemaWithout(schema: unknown, paths: PathProgress): unknown {
  if (paths.length === 0 || !isObject(schema)) return schema;
  const { properties, required, items } = schema;
  const changed = { ...schema };
  const isIgnored = (name: string) => followInto(paths, name) === null;
  if (isObject(properties)) {
    const kept = Object.entries(properties).flatMap(([name, own]) => {
      const after = followInto(paths, name);
      return after === null ? [] : [[name, schemaWithout(own, after)] as const];
    });
    changed['properties'] = Object.fromEntries(kept);
  }
  if (Array.isArray(required))
    changed['required'] = required.filter((name) => typeof name !== 'string' || !isIgnored(name));
  // All elements have one schema, so a path into the first one is a path into it.
  const ofElements = followInto(paths, 0);
  if (ofElements === null) delete changed['items'];
  else if (items !== undefined) changed['items'] = schemaWithout(items, ofElements);
  return changed;
}

export type ListKind = 'tool' | 'prompt' | 'resource' | 'resource template';

export type ListChange = {
  kind: ListKind;
  name: string;
  change: 'added' | 'removed' | 'changed';
  /** Why callers break, in words; empty where they do not. */
  breaking: string[];
  /** Their pointers begin at the thing itself. */
  differences: Difference[];
};

/** The lists by the method that asks for them: the member of the result, and what names a thing in it. */
const LISTS = {
  'tools/list': { kind: 'tool', member: 'tools', name: 'name' },
  'prompts/list': { kind: 'prompt', member: 'prompts', name: 'name' },
  'resources/list': { kind: 'resource', member: 'resources', name: 'uri' },
  'resources/templates/list': { kind: 'resource template', member: 'resourceTemplates', name: 'uriTemplate' },
} as const satisfies Record<string, { kind: ListKind; member: string; name: string }>;

export type ListMethod = keyof typeof LISTS;

export function isList(method: string): method is ListMethod {
  return Object.hasOwn(LISTS, method);
}

/** Canonical JSON by name, for each list that was answered. */
export type Offer = Map<ListMethod, Map<string, Buffer>>;

/**
 * Takes one answer, which may be a page of several. Of several things with one name the last counts. `ignored`: paths of the
 * result that do not count.
 */
export function collectOffer(offer: Offer, method: ListMethod, answer: Buffer, ignored = NO_PATHS): void {
  const { member, name } = LISTS[method];
  const list = memberAt(answer, ['result', member]);
  if (list?.type !== 'array') return;
  const things = offer.get(method) ?? new Map<string, Buffer>();
  offer.set(method, things);
  const inList = followInto(ignored, member);
  let at = 0;
  eachElement(answer, list.start, (element) => {
    const inside = inList === null ? null : followInto(inList, at);
    at += 1;
    if (inside === null || element.type !== 'object') return;
    const text = canonicalText(answer, element, ignoring(KEEP_ALL, inside));
    const named: unknown = JSON.parse(
      sourceAt(answer.subarray(element.start, element.end), [name]) ?? 'null',
    );
    if (typeof text !== 'string' && typeof named === 'string') things.set(named, text);
  });
}

/** Compares what two sides have of one list. `ignored`: the arguments of tools that do not count. */
export function compareList(
  method: ListMethod,
  before: ReadonlyMap<string, Buffer>,
  after: ReadonlyMap<string, Buffer>,
  ignored?: IgnoreRules['tools'],
): ListChange[] {
  const { kind } = LISTS[method];
  if (kind !== 'tool') return compareThings(kind, before, after);
  return compareTools(before, after, ignored).map(({ tool, ...rest }) => ({ kind, name: tool, ...rest }));
}

/** Compares the lists that both sides have; `unknown` names those that only one side was asked for. */
export function compareOffers(before: Offer, after: Offer): { changes: ListChange[]; unknown: ListKind[] } {
  const changes: ListChange[] = [];
  const unknown: ListKind[] = [];
  for (const method of Object.keys(LISTS) as ListMethod[]) {
    const { kind } = LISTS[method];
    const [old, now] = [before.get(method), after.get(method)];
    if (old === undefined && now === undefined) continue;
    if (old === undefined || now === undefined) unknown.push(kind);
    else changes.push(...compareList(method, old, now));
  }
  return { changes, unknown };
}

function compareThings(
  kind: ListKind,
  before: ReadonlyMap<string, Buffer>,
  after: ReadonlyMap<string, Buffer>,
): ListChange[] {
  const changes: ListChange[] = [];
  for (const [name, old] of before) {
    const now = after.get(name);
    if (now === undefined)
      changes.push({ kind, name, change: 'removed', breaking: [`the ${kind} is gone`], differences: [] });
    else if (!old.equals(now)) {
      const breaking = kind === 'prompt' ? newlyRequired(old, now) : [];
      changes.push({ kind, name, change: 'changed', breaking, differences: diffOf(old, now).differences });
    }
  }
  for (const name of after.keys())
    if (!before.has(name)) changes.push({ kind, name, change: 'added', breaking: [], differences: [] });
  return changes;
}

/** Arguments of a prompt that were optional before. */
function newlyRequired(before: Buffer, after: Buffer): string[] {
  const known = requiredArguments(before);
  return [...requiredArguments(after)]
    .filter((name) => !known.has(name))
    .map((name) => `the argument ${JSON.stringify(name)} is required now`);
}

function requiredArguments(prompt: Buffer): Set<unknown> {
  const list: unknown = JSON.parse(sourceAt(prompt, ['arguments']) ?? '[]');
  if (!Array.isArray(list)) return new Set();
  return new Set(list.filter((one) => one?.required === true).map((one) => one.name));
}
