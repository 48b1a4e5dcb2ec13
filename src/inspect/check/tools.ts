/** Calls and results against the schemas that the server listed. Specification, server/tools. */

import { BoundedMap } from '../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import type { Schemas } from '../schema/schemas.ts';
import {
  type CheckedMessage,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  resultOf,
  shown,
} from './checked-message.ts';
import type { Report } from './rules.ts';

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;

type Tool = { input: string | null; output: string | null };

export function inspectTools(report: Report, schemas: Schemas): Inspector {
  const tools = new BoundedMap<string, Tool>(MAX_REMEMBERED);
  /** Names of the list that is being read, over its pages. */
  let listing = new Set<string>();
  /** Whether a whole list was seen, and nothing changed it since. */
  let isListed = false;

  function message(seen: CheckedMessage): void {
    const method = methodOf(seen);
    if (method === 'tools/call' && seen.message.kind === 'request') call(seen);
    if (method === 'notifications/tools/list_changed') isListed = false;
    const result = resultOf(seen);
    if (result === null || seen.asked === null) return;
    if (seen.asked.method === 'tools/list') list(seen, result);
    if (seen.asked.method === 'tools/call') answered(seen, result);
  }

  function list(seen: CheckedMessage, result: JsonObject): void {
    if (!Array.isArray(result['tools'])) return;
    if (seen.asked?.params?.['cursor'] === undefined) listing = new Set();
    for (const tool of result['tools'])
      if (isObject(tool) && typeof tool['name'] === 'string') learn(seen, tool, tool['name']);
    if (result['nextCursor'] === undefined) isListed = true;
  }

  function learn(seen: CheckedMessage, tool: JsonObject, name: string): void {
    if (listing.has(name))
      report('tool-twice', 'server', seen, 'one tool of this name', `another ${shown(name)}`);
    listing.add(name);
    if (!NAME.test(name))
      report('tool-name', 'server', seen, '1 to 128 characters of A-Z, a-z, 0-9, `_`, `-`, `.`', shown(name));
    tools.set(name, {
      input: schema(seen, name, 'inputSchema', tool['inputSchema']),
      output: schema(seen, name, 'outputSchema', tool['outputSchema']),
    });
  }

  /** The schema's text, if it can be used. */
  function schema(seen: CheckedMessage, name: string, member: string, value: unknown): string | null {
    if (value === undefined) return null;
    const where = `\`${member}\` of ${shown(name)}`;
    if (!isObject(value) || value['type'] !== 'object') {
      report('tool-schema', 'server', seen, `a schema of type object as ${where}`, shown(value));
      return null;
    }
    const text = JSON.stringify(value);
    const verdict = schemas.compile(text);
    if (verdict.kind === 'broken')
      report('tool-schema', 'server', seen, `valid JSON Schema as ${where}`, verdict.why);
    if (verdict.kind === 'unchecked')
      report(
        'tool-schema-unchecked',
        'server',
        seen,
        `a schema that stands by itself as ${where}`,
        verdict.why,
      );
    return verdict.kind === 'fine' ? text : null;
  }

  function call(seen: CheckedMessage): void {
    const name = seen.params?.['name'];
    if (typeof name !== 'string') return;
    const tool = tools.get(name);
    if (tool === undefined) {
      if (isListed) report('tool-unknown', seen.side, seen, 'a tool of `tools/list`', shown(name));
      return;
    }
    const verdict =
      tool.input === null ? null : schemas.validate(tool.input, seen.params?.['arguments'] ?? {});
    if (verdict?.kind === 'broken')
      report(
        'tool-arguments',
        seen.side,
        seen,
        `arguments that fit the \`inputSchema\` of ${shown(name)}`,
        verdict.why,
      );
    if (verdict?.kind === 'unchecked')
      report(
        'tool-schema-unchecked',
        'server',
        seen,
        `an \`inputSchema\` of ${shown(name)} that can be checked`,
        verdict.why,
      );
  }

  function answered(seen: CheckedMessage, result: JsonObject): void {
    const name = seen.asked?.params?.['name'];
    const output = typeof name === 'string' ? (tools.get(name)?.output ?? null) : null;
    const isWhole = result['resultType'] === undefined || result['resultType'] === 'complete';
    if (output === null || !isWhole || result['isError'] === true || seen.message.details.beginsTask) return;
    const { structuredContent } = result;
    if (structuredContent === undefined) {
      report('tool-structured-missing', 'server', seen, '`structuredContent`', 'none');
      return;
    }
    const verdict = schemas.validate(output, structuredContent);
    if (verdict.kind === 'broken')
      report(
        'tool-structured',
        'server',
        seen,
        `\`structuredContent\` that fits the \`outputSchema\` of ${shown(name)}`,
        verdict.why,
      );
  }

  return { message };
}
