/**
 * Headers of a POST that repeat what its body says, and the `x-mcp-header` of tools by which arguments are repeated.
 * Specification 2026-07-28, basic/transports/streamable-http, "Request Metadata"; server/tools, "x-mcp-header".
 */

import { BoundedMap } from '../../../protocol/bounded.ts';
import {
  ANNOTATION,
  decodedHeader,
  headerFault,
  headerText,
  isToken,
  PARAM_PREFIX,
  type ParamHeader,
  paramHeadersOf,
  paramValue,
  saysSame,
} from '../../../protocol/http/mirrored-headers.ts';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import { eachSubSchema, type SubSchema } from '../../schema/walk.ts';
import {
  type CheckedHttpExchange,
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  resultOf,
  shown,
} from '../checked-message.ts';
import type { Report, RuleId } from '../rules.ts';

/** Requests with a `Mcp-Name`. */
const NAMED: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** No request carries so many headers: so many arguments of a tool are looked at. */
const MAX_HEADERS = 1000;

/** `names`: of all its headers, in lower case. `fault`: why no client may offer it over HTTP. */
type Tool = { headers: readonly ParamHeader[]; names: ReadonlySet<string>; fault: Fault | null };

type Fault = { expected: string; seen: string };

/** What was asked on an HTTP exchange, the tool that it calls as it was listed by then, and the result. */
type Asked = { seen: CheckedMessage; tool: Tool | undefined; result: CheckedMessage | null };

export function inspectMirroredHeaders(
  report: Report,
  { transport, basis, isForeign = false }: CheckedSession,
): Inspector {
  const tools = new BoundedMap<string, Tool>(MAX_REMEMBERED);
  const carried = new BoundedMap<number, Asked>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    const result = resultOf(seen);
    if (result !== null && seen.asked?.method === 'tools/list') list(seen, result['tools']);
    if (methodOf(seen) === 'notifications/tools/list_changed') tools.clear();
    const own = seen.http === null ? undefined : carried.get(seen.http);
    if (own !== undefined && result !== null && seen.asked?.place.seq === own.seen.place.seq)
      own.result = seen;
    const isAsked = seen.message.kind === 'request' && seen.message.details.isModern;
    if (seen.http !== null && seen.channel === 'request' && isAsked)
      carried.set(seen.http, { seen, tool: calledTool(seen), result: null });
  }

  function list(seen: CheckedMessage, listed: unknown): void {
    for (const tool of Array.isArray(listed) ? listed : []) {
      if (!isObject(tool) || typeof tool['name'] !== 'string' || !isObject(tool['inputSchema'])) continue;
      const fault = faultOf(tool['inputSchema']);
      const headers = paramHeadersOf(tool['inputSchema']);
      const names = new Set(headers.map(({ header }) => header.toLowerCase()));
      tools.set(tool['name'], { headers: headers.slice(0, MAX_HEADERS), names, fault });
      if (fault !== null)
        report(
          'header-annotation',
          seen.side,
          seen,
          fault.expected,
          `${fault.seen} of ${shown(tool['name'])}`,
        );
    }
  }

  function calledTool(seen: CheckedMessage): Tool | undefined {
    const name = methodOf(seen) === 'tools/call' ? seen.params?.['name'] : undefined;
    return typeof name === 'string' ? tools.get(name) : undefined;
  }

  function httpExchange(http: CheckedHttpExchange): void {
    const own = carried.get(http.number);
    carried.delete(http.number);
    if (own === undefined || http.method !== 'POST') return;
    const { seen, tool, result } = own;
    const disagreeing = [...standard(http, seen), ...params(http, seen, tool)];
    const [first] = disagreeing;
    if (result !== null && first !== undefined && !isForeign)
      report(
        'header-unchecked',
        'server',
        { ...result, http: http.number },
        `status 400 and the error -32020, as \`${first}\` is not what the body says`,
        `status ${http.status} and a result`,
      );
  }

  /** Returns the headers for which a server must refuse the request; so does `params`. */
  function standard(http: CheckedHttpExchange, seen: CheckedMessage): string[] {
    const { protocolVersion, target } = seen.message.details;
    const method = methodOf(seen) ?? '';
    // As the body spells it.
    const sent = seen.message.kind === 'request' ? seen.message.method : method;
    const isNamed = NAMED.has(method) && target !== null;
    const isVersion = agrees('version-header', 'mcp-protocol-version', protocolVersion ?? '', http, seen);
    const isMethod = agrees('method-header', 'mcp-method', sent, http, seen);
    const isName = !isNamed || agrees('name-header', 'mcp-name', target, http, seen);
    // Without a version it may be taken for a request of an older revision.
    const isVersioned = isVersion || !http.requestHeaders.has('mcp-protocol-version');
    return [
      ...(isVersioned ? [] : ['mcp-protocol-version']),
      ...(isMethod ? [] : ['mcp-method']),
      ...(isName ? [] : ['mcp-name']),
    ];
  }

  function agrees(
    rule: RuleId,
    name: string,
    said: string,
    http: CheckedHttpExchange,
    seen: CheckedMessage,
  ): boolean {
    const value = http.requestHeaders.get(name);
    // The name alone may stand in base64.
    const isText = name === 'mcp-name' && value !== undefined;
    const text = isText ? decodedHeader(value) : value;
    const fault = isText ? headerFault(value) : null;
    if ((text === said && fault === null) || isRedacted(value ?? '', said)) return true;
    const expected = `\`${name}: ${name === 'mcp-name' ? headerText(said) : said}\``;
    tell(rule, http, seen, expected, withFault(value, fault));
    return false;
  }

  function params(http: CheckedHttpExchange, seen: CheckedMessage, tool: Tool | undefined): string[] {
    if (isForeign) return [];
    if (tool !== undefined && tool.fault !== null) {
      const name = shown(seen.params?.['name']);
      const other = basis === 'stateless' ? ', perhaps by a client that never listed it' : '';
      const expected = `no call of ${name}, whose \`${ANNOTATION}\` is not legal`;
      tell('header-annotation-taken', http, seen, expected, `one${other}`);
      return [];
    }
    if (tool !== undefined || methodOf(seen) !== 'tools/call') unknown(http, seen, tool?.names ?? new Set());
    return (tool?.headers ?? []).filter((one) => !param(http, seen, one)).map(({ header }) => header);
  }

  /** Headers that repeat no argument: a proxy on the way may act on them all the same. */
  function unknown(http: CheckedHttpExchange, seen: CheckedMessage, names: ReadonlySet<string>): void {
    for (const name of http.requestHeaders.keys())
      if (name.startsWith(PARAM_PREFIX.toLowerCase()) && !names.has(name))
        tell('param-header-unknown', http, seen, `headers that an \`${ANNOTATION}\` names`, `\`${name}\``);
  }

  /** Whether the header of an argument is as it must be. */
  function param(http: CheckedHttpExchange, seen: CheckedMessage, one: ParamHeader): boolean {
    const value = paramValue(seen.params?.['arguments'], one);
    const header = http.requestHeaders.get(one.header.toLowerCase());
    const wrong = (expected: string) => {
      const found = header === undefined ? 'none' : withFault(header, headerFault(header));
      tell('param-header', http, seen, expected, found);
      return false;
    };
    if (value === undefined || value === null)
      return header === undefined || wrong(`no \`${one.header}\`, as there is no such argument`);
    if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
      tell(
        'param-header',
        http,
        seen,
        `an integer that a double holds as ${one.path.join('.')}`,
        shown(value),
      );
      return true;
    }
    if (typeof value !== 'string' && typeof value !== 'boolean' && !Number.isInteger(value)) return true;
    const text = String(value);
    const expected = `\`${one.header}: ${headerText(text)}\``;
    if (header === undefined) return wrong(expected);
    if (isRedacted(header, text)) return true;
    const isSame = typeof value === 'number' ? saysSame(header, text) : decodedHeader(header) === text;
    return (isSame && headerFault(header) === null) || wrong(expected);
  }

  function tell(
    rule: RuleId,
    { number }: CheckedHttpExchange,
    { side, place, revision }: CheckedMessage,
    expected: string,
    seen: string,
  ): void {
    report(rule, side, { place, revision, http: number }, expected, seen);
  }

  return transport === 'http' && basis !== 'sse-endpoint' ? { message, httpExchange } : { message };
}

function withFault(value: string | undefined, fault: string | null): string {
  if (value === undefined) return 'none';
  return fault === null ? shown(value) : `${shown(value)} (${fault})`;
}

/** What was replaced in one of the two need not be equal. */
function isRedacted(header: string, said: string): boolean {
  return [header, said].some((text) => text.includes('[redacted:') || text.includes('masked-'));
}

/** The first annotation that is not legal. */
function faultOf(inputSchema: JsonObject): Fault | null {
  const names = new Set<string>();
  for (const { path, schema } of eachSubSchema(inputSchema)) {
    if (!Object.hasOwn(schema, ANNOTATION)) continue;
    const expected = whatLacks({ path, schema }, names);
    const name = schema[ANNOTATION];
    if (expected !== null)
      return { expected, seen: `${shown(name)} at ${shown(`/${path.join('/')}`)}, ${typeText(schema)}` };
    names.add(String(name).toLowerCase());
  }
  return null;
}

function whatLacks({ path, schema }: SubSchema, names: ReadonlySet<string>): string | null {
  const name = schema[ANNOTATION];
  if (typeof name !== 'string' || !isToken(name)) return `an \`${ANNOTATION}\` that can name a header`;
  const isReached = path.length > 0 && path.every((step, i) => i % 2 === 1 || step === 'properties');
  if (!isReached) return `\`${ANNOTATION}\` only where \`properties\` alone lead`;
  if (!isPrimitive(schema)) return `\`${ANNOTATION}\` only on a string, an integer or a boolean`;
  return names.has(name.toLowerCase()) ? `each \`${ANNOTATION}\` once in a tool, in any case` : null;
}

const PRIMITIVES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** Without a type its values may say as much. */
function isPrimitive({ type, enum: values, const: value }: JsonObject): boolean {
  if (type !== undefined) return [type].flat().every((one) => PRIMITIVES.has(one));
  const all: unknown[] = Array.isArray(values) ? values : value === undefined ? [] : [value];
  return (
    all.length > 0 &&
    all.every((one) => typeof one === 'string' || typeof one === 'boolean' || Number.isInteger(one))
  );
}

function typeText({ type }: JsonObject): string {
  return type === undefined ? 'without a type' : `of type ${shown(type)}`;
}
