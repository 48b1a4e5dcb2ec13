/** What became of what a server offers: tools, prompts, resources and templates of resources, by name. */
import { eachElement } from '../protocol/json.ts';
import { canonicalText } from './canonical.ts';
import { type Difference, diffOf } from './diff.ts';
import { memberAt, sourceAt } from './substitute.ts';
import { compareTools } from './verify-tools.ts';

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

type ListMethod = keyof typeof LISTS;

export function isList(method: string): method is ListMethod {
  return Object.hasOwn(LISTS, method);
}

/** Canonical JSON by name, for each list that was answered. */
export type Offer = Map<ListMethod, Map<string, Buffer>>;

/** Takes one answer, of several pages too; of a name that comes again the last counts. */
export function collectOffer(offer: Offer, method: ListMethod, answer: Buffer): void {
  const { member, name } = LISTS[method];
  const list = memberAt(answer, ['result', member]);
  if (list?.type !== 'array') return;
  const things = offer.get(method) ?? new Map<string, Buffer>();
  offer.set(method, things);
  eachElement(answer, list.start, (element) => {
    const text = element.type === 'object' ? canonicalText(answer, element) : '';
    if (typeof text === 'string') return;
    const named: unknown = JSON.parse(sourceAt(text, [name]) ?? 'null');
    if (typeof named === 'string') things.set(named, text);
  });
}

/** What changed, of the lists that both sides have; `unknown` names those that only one side was asked for. */
export function compareOffers(before: Offer, after: Offer): { changes: ListChange[]; unknown: ListKind[] } {
  const changes: ListChange[] = [];
  const unknown: ListKind[] = [];
  for (const method of Object.keys(LISTS) as ListMethod[]) {
    const { kind } = LISTS[method];
    const [old, now] = [before.get(method), after.get(method)];
    if (old === undefined && now === undefined) continue;
    if (old === undefined || now === undefined) unknown.push(kind);
    else if (kind === 'tool') {
      const tools = compareTools(old, now);
      changes.push(...tools.map(({ tool, ...rest }) => ({ kind, name: tool, ...rest })));
    } else changes.push(...compareThings(kind, old, now));
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

/** Arguments of a prompt that a caller need not have given before. */
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
