/** Invents the results of calls by what was declared for them. Nothing is sent that a schema was not seen to take. */

import { createHash } from 'node:crypto';
import { NoSample } from '../../inspect/schema/flat-schema.ts';
import { sampleOf } from '../../inspect/schema/sample.ts';
import type { Schemas } from '../../inspect/schema/schemas.ts';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';

/** The key in `_meta` of every result, and in `data` of every error, that no server gave. */
export const INVENTED = 'mcp-tapedeck/invented';

const NOTICE = 'Invented by tapedeck replay --stub: no server was asked.';

/** How often another value is tried where one does not fit. */
const MAX_TRIES = 12;

/** A schema without a value has none with other draws either, mostly. */
const MAX_DEAD_ENDS = 3;

const MAX_SHOWN = 200;

/**
 * `schema`: the tool's `outputSchema`, as JSON text; null for none. `seed`: equal for equal calls. `remark`: said besides; may be
 * empty.
 */
export function inventToolResult(
  tool: string,
  schema: string | null,
  args: JsonObject,
  { seed, remark, schemas }: { seed: string; remark: string; schemas: Schemas },
): JsonObject {
  const notice = { type: 'text', text: `${NOTICE}${remark}` };
  if (schema === null) {
    const asked = `The tool ${JSON.stringify(tool)} was called with ${shown(args)}.`;
    return { content: [{ ...notice, text: `${notice.text} ${asked}` }] };
  }
  const found = valueFor(schema, seed, schemas);
  if ('why' in found)
    return inventFailure(`Nothing fits the outputSchema of ${JSON.stringify(tool)}: ${found.why}.${remark}`);
  const { value } = found;
  // The text of structured content comes first: some clients read nothing else (specification, server/tools, "Structured Content").
  return { content: [{ type: 'text', text: JSON.stringify(value) }, notice], structuredContent: value };
}

export function inventFailure(why: string): JsonObject {
  return { content: [{ type: 'text', text: `${NOTICE} ${why}` }], isError: true };
}

export function inventPrompt(prompt: JsonObject, name: string, args: JsonObject): JsonObject {
  const { description } = prompt;
  const asked = `The prompt ${JSON.stringify(name)} was asked for with ${shown(args)}.`;
  const message = { role: 'user', content: { type: 'text', text: `${NOTICE} ${asked}` } };
  return { ...(typeof description === 'string' ? { description } : {}), messages: [message] };
}

/** `resource`: as it was listed, or the template that it is of. */
export function inventResource({ mimeType }: JsonObject, uri: string): JsonObject {
  const text = `${NOTICE} The resource is ${uri}.`;
  const type = typeof mimeType === 'string' ? mimeType : null;
  const own = { uri, ...(type === null ? {} : { mimeType: type }) };
  if (type !== null && /[/+]json\b/.test(type))
    return { contents: [{ ...own, text: JSON.stringify({ [INVENTED]: text }) }] };
  const isText = type === null || /^text\/|[/+](?:xml|yaml|javascript)\b/.test(type);
  return { contents: [{ ...own, ...(isText ? { text } : { blob: Buffer.from(text).toString('base64') }) }] };
}

/** `typed`: what the value begins with. */
export function inventCompletion(typed: string): JsonObject {
  return { completion: { values: [`${typed}invented`], total: 1, hasMore: false } };
}

function shown(args: JsonObject): string {
  const text = JSON.stringify(args);
  return text.length > MAX_SHOWN ? `${[...text.slice(0, MAX_SHOWN)].slice(0, -1).join('')}…` : text;
}

/** A value that the schema takes; else why there is none. */
function valueFor(text: string, seed: string, schemas: Schemas): { value: unknown } | { why: string } {
  const usable = schemas.compile(text);
  if (usable.kind !== 'fine') return { why: 'why' in usable ? usable.why : 'it cannot be checked now' };
  const schema: unknown = JSON.parse(text);
  let why = 'no value is found';
  let deadEnds = 0;
  for (let tries = 0; tries < MAX_TRIES && deadEnds < MAX_DEAD_ENDS; tries += 1) {
    const options = {
      draw: drawsOf(`${seed}\0${tries}`),
      usesExamples: tries === 0,
      isBare: tries % 3 === 2,
    };
    const made = madeOf(schema, options);
    if ('why' in made) {
      why = made.why;
      deadEnds += 1;
      continue;
    }
    const verdict = schemas.validate(text, made.value);
    if (verdict.kind === 'fine') return made;
    why = 'why' in verdict ? verdict.why : 'it cannot be checked now';
    if (verdict.kind !== 'broken') break;
  }
  return { why };
}

function madeOf(
  schema: unknown,
  options: Parameters<typeof sampleOf>[2],
): { value: unknown } | { why: string } {
  try {
    const value = sampleOf(schema, 'value', options);
    // The older revisions know no other structured content.
    return isObject(value) ? { value } : { why: 'structured content is an object, and this is none' };
  } catch (error) {
    // A value of an `enum` may be nested as deeply as it likes.
    if (error instanceof NoSample || error instanceof RangeError) return { why: error.message };
    throw error;
  }
}

/** Equal draws for equal seeds: a counter, hashed. */
function drawsOf(seed: string): (below: number) => number {
  let block = Buffer.alloc(0);
  let [count, at] = [0, 0];
  return (below) => {
    if (at + BYTES > block.length) {
      block = createHash('sha256').update(`${seed}\0${count}`).digest();
      count += 1;
      at = 0;
    }
    const drawn = block.readUIntBE(at, BYTES);
    at += BYTES;
    return drawn % below;
  };
}

/** Of a hash for each draw. */
const BYTES = 4;
