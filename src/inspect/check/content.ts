/** Content blocks and the contents of resources. Specification, schema: `ContentBlock`, `SamplingMessageContentBlock`, `ResourceContents`. */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import { type CheckedMessage, type Inspector, methodOf, resultOf, shown } from './checked-message.ts';
import type { Report, Revision, RuleId } from './rules.ts';

/** A type of blocks: the first revision that has it, and the members that it must have besides those checked below. */
type BlockType = { since: Revision; member: string; type: 'string' | 'object' | 'array' };

const FIRST = '2024-11-05';

const COMMON: Readonly<Record<string, BlockType>> = {
  text: { since: FIRST, member: 'text', type: 'string' },
  image: { since: FIRST, member: 'data', type: 'string' },
  audio: { since: '2025-03-26', member: 'data', type: 'string' },
};

/** In results of tools, and in messages of prompts. */
const SERVED: ReadonlyMap<string, BlockType> = new Map(
  Object.entries({
    ...COMMON,
    resource: { since: FIRST, member: 'resource', type: 'object' },
    resource_link: { since: '2025-06-18', member: 'uri', type: 'string' },
  }),
);

/** In messages to and from a model. */
const SAMPLED: ReadonlyMap<string, BlockType> = new Map(
  Object.entries({
    ...COMMON,
    tool_use: { since: '2025-11-25', member: 'input', type: 'object' },
    tool_result: { since: '2025-11-25', member: 'content', type: 'array' },
  }),
);

type Fault = { rule: RuleId; expected: string; seen: string };

/** Of many blocks a finding names the first that is wrong. */
export function inspectContent(report: Report): Inspector {
  function message(seen: CheckedMessage): void {
    for (const fault of faultsOf(seen)) {
      report(fault.rule, seen.side, seen, fault.expected, fault.seen);
      return;
    }
  }

  return { message };
}

function* faultsOf(seen: CheckedMessage): Generator<Fault> {
  const { revision } = seen;
  if (methodOf(seen) === 'sampling/createMessage') yield* sampled(seen.params, revision);
  const result = resultOf(seen);
  if (result === null || seen.asked === null) return;
  for (const input of Object.values(isObject(result['inputRequests']) ? result['inputRequests'] : {}))
    if (isObject(input) && input['method'] === 'sampling/createMessage')
      yield* sampled(input['params'], revision);
  switch (seen.asked.method) {
    case 'tools/call':
    case 'tasks/result':
      yield* blocks(result['content'], 'content', SERVED, revision);
      break;
    case 'prompts/get':
      yield* messages(result['messages'], SERVED, revision);
      break;
    case 'sampling/createMessage':
      yield* blocks(result['content'], 'content', SAMPLED, revision);
      break;
    case 'resources/read':
      for (const [i, one] of elementsOf(result['contents']).entries())
        yield* resourceContents(one, `contents[${i}]`);
  }
}

function sampled(params: unknown, revision: string | null): Generator<Fault> {
  return messages(isObject(params) ? params['messages'] : undefined, SAMPLED, revision);
}

function* messages(
  list: unknown,
  types: ReadonlyMap<string, BlockType>,
  revision: string | null,
): Generator<Fault> {
  for (const [i, one] of elementsOf(list).entries())
    if (isObject(one)) yield* blocks(one['content'], `messages[${i}].content`, types, revision);
}

/** One block, or a list of them. */
function* blocks(
  value: unknown,
  at: string,
  types: ReadonlyMap<string, BlockType>,
  revision: string | null,
): Generator<Fault> {
  if (!Array.isArray(value)) yield* block(value, at, types, revision);
  else for (const [i, one] of value.entries()) yield* block(one, `${at}[${i}]`, types, revision);
}

function* block(
  value: unknown,
  at: string,
  types: ReadonlyMap<string, BlockType>,
  revision: string | null,
): Generator<Fault> {
  // Without a type it is against the shape of its message.
  if (!isObject(value) || typeof value['type'] !== 'string') return;
  const known = types.get(value['type']);
  if (known === undefined || (revision !== null && revision < known.since && known.since !== FIRST)) {
    const all = [...types].filter(
      ([, { since }]) => revision === null || since === FIRST || revision >= since,
    );
    const expected = `one of ${all.map(([name]) => name).join(', ')} as \`${at}.type\``;
    yield { rule: 'content-block', expected, seen: shown(value['type']) };
    return;
  }
  const { member, type } = known;
  const held = value[member];
  if (type === 'array' ? !Array.isArray(held) : type === 'object' ? !isObject(held) : typeof held !== type)
    yield {
      rule: 'content-block',
      expected: `${type === 'string' ? 'a' : 'an'} ${type} as \`${at}.${member}\``,
      seen: shown(held),
    };
  if (member === 'data') yield* media(value, at);
  if (isObject(held) && member === 'resource') yield* resourceContents(held, `${at}.resource`);
  if (value['type'] === 'tool_result') yield* blocks(held, `${at}.content`, SERVED, revision);
}

function* media({ data, mimeType }: JsonObject, at: string): Generator<Fault> {
  if (typeof mimeType !== 'string')
    yield { rule: 'content-data', expected: `a string as \`${at}.mimeType\``, seen: shown(mimeType) };
  if (typeof data === 'string' && !isBase64(data))
    yield { rule: 'content-data', expected: `base64 as \`${at}.data\``, seen: shown(data) };
}

function* resourceContents(value: unknown, at: string): Generator<Fault> {
  if (!isObject(value)) return;
  const { text, blob } = value;
  if (typeof text !== 'string' && typeof blob !== 'string')
    yield { rule: 'resource-contents', expected: `\`text\` or \`blob\` in \`${at}\``, seen: shown(value) };
  if (typeof blob === 'string' && !isBase64(blob))
    yield { rule: 'resource-contents', expected: `base64 as \`${at}.blob\``, seen: shown(blob) };
}

function elementsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** RFC 4648, section 4. A text of which redaction has replaced a part is not judged. */
function isBase64(text: string): boolean {
  if (text.includes('[redacted:')) return true;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return text.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(text.slice(0, text.length - padding));
}
