/**
 * A server that is not there: the handshake and the lists are what a live server said (ask.ts), and what answers a call is invented
 * (invent.ts), says so, and is the same for the same call.
 */

import type { Schemas } from '../../inspect/schema/schemas.ts';
import { canonicalText } from '../../protocol/json/canonical.ts';
import { memberAt, sourceAt } from '../../protocol/json/edit.ts';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import type { OwnAnswer } from '../mock.ts';
import { isList, type ListMethod } from '../verify/offers.ts';
import { type EraOffer, MODERN_VERSION, type ServerOffer } from './ask.ts';
import {
  INVENTED,
  inventCompletion,
  inventFailure,
  inventPrompt,
  inventResource,
  inventToolResult,
} from './invent.ts';
import { readThings } from './things.ts';

/** Answers a request; null where the server of the offer does not speak the request's era. */
export type Stub = (request: RequestMessage, json: Buffer) => OwnAnswer | null;

const METHOD_NOT_FOUND = -32601;

const INVALID_PARAMS = -32602;

const INTERNAL_ERROR = -32603;

const UNSUPPORTED_VERSION = -32022;

/** Specification up to 2025-11-25, server/resources, "Error Handling". */
const RESOURCE_NOT_FOUND = -32002;

/** From here on arguments that do not fit are a result with `isError`, which a model may learn from (SEP-1303). */
const FAILURES_ARE_RESULTS = '2025-11-25';

const OF_LEGACY = new Set(['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']);

/** `schemas` judges arguments and invented values. */
export function createStub({ legacy, modern }: ServerOffer, schemas: Schemas): Stub {
  const older = legacy === null ? null : createEraStub(legacy, false, schemas);
  const newer = modern === null ? null : createEraStub(modern, true, schemas);
  return (request, json) => {
    const { canonical, details } = request;
    // An older server does not look at the version that a request states.
    const isOlder = !details.isModern || (newer === null && canonical !== 'server/discover');
    try {
      return (isOlder ? older : newer)?.(request, json) ?? null;
    } catch (thrown) {
      // What is nested too deeply, or has too many members, for a part of Node that recurses.
      if (thrown instanceof RangeError)
        return error(INTERNAL_ERROR, `tapedeck replay --stub: ${thrown.message}`);
      throw thrown;
    }
  };
}

function createEraStub(offer: EraOffer, isModern: boolean, schemas: Schemas): Stub {
  const things = readThings(offer);
  const handshake = JSON.parse(offer.handshake) as JsonObject;
  const { capabilities, protocolVersion, supportedVersions, _meta: said } = handshake;
  const revision = isModern ? MODERN_VERSION : String(protocolVersion);
  const serverInfo = isObject(said) ? said[SERVER_INFO] : undefined;
  const own = isModern && serverInfo !== undefined ? { [SERVER_INFO]: serverInfo } : {};

  function invented(result: JsonObject): OwnAnswer {
    const type = isModern ? { resultType: 'complete' } : {};
    const _meta = { [INVENTED]: true, ...own };
    return { member: 'result', json: JSON.stringify({ ...type, ...result, _meta }) };
  }

  function answer(request: RequestMessage, json: Buffer): OwnAnswer {
    const { canonical: method, details } = request;
    const versions = Array.isArray(supportedVersions) ? supportedVersions : [MODERN_VERSION];
    if (isModern && !versions.includes(details.protocolVersion)) {
      const data = { supported: versions, requested: details.protocolVersion };
      return error(UNSUPPORTED_VERSION, 'Unsupported protocol version', data);
    }
    if (method === (isModern ? 'server/discover' : 'initialize'))
      return { member: 'result', json: offer.handshake };
    if (isList(method)) return page(method, json);
    if (!isModern && OF_LEGACY.has(method)) return { member: 'result', json: '{}' };
    if (isModern && method === 'subscriptions/listen') return acknowledged(json);
    const params: unknown = JSON.parse(sourceAt(json, ['params']) ?? '{}');
    if (!isObject(params)) return error(INVALID_PARAMS, 'Invalid params: no object');
    if (method === 'tools/call') return callTool(params, json);
    if (method === 'prompts/get') return getPrompt(params);
    if (method === 'resources/read') return readResource(params);
    if (method === 'completion/complete' && isObject(capabilities) && isObject(capabilities['completions']))
      return complete(params);
    return error(METHOD_NOT_FOUND, 'Method not found');
  }

  function page(method: ListMethod, json: Buffer): OwnAnswer {
    const cursor = sourceAt(json, ['params', 'cursor']) ?? null;
    const pages = offer.lists.get(method);
    if (pages === undefined) return error(METHOD_NOT_FOUND, 'Method not found');
    return (
      pages.find((one) => one.cursor === cursor) ?? error(INVALID_PARAMS, 'Invalid params: no such cursor')
    );
  }

  function callTool({ name, arguments: args = {}, task }: JsonObject, json: Buffer): OwnAnswer {
    const tool = typeof name === 'string' ? things.tools.get(name) : undefined;
    if (typeof name !== 'string' || tool === undefined)
      return error(INVALID_PARAMS, `Unknown tool: ${String(name)}`);
    if (!isObject(args)) return error(INVALID_PARAMS, 'Invalid params: `arguments` is no object');
    if (task !== undefined || tool.needsTask)
      return error(METHOD_NOT_FOUND, 'tapedeck replay --stub runs no tool as a task');
    const verdict = tool.input === null ? null : schemas.validate(tool.input, args);
    if (verdict?.kind === 'broken') {
      const why = `Invalid arguments for the tool ${JSON.stringify(name)}: ${verdict.why}`;
      return revision < FAILURES_ARE_RESULTS
        ? error(INVALID_PARAMS, why)
        : invented(inventFailure(`${why}.`));
    }
    const unchecked = verdict?.kind === 'unchecked' ? ` The arguments were not checked: ${verdict.why}.` : '';
    const how = { seed: `${name}\0${canonicalArguments(json)}`, remark: unchecked, schemas };
    return invented(inventToolResult(name, tool.output, args, how));
  }

  function getPrompt({ name, arguments: args = {} }: JsonObject): OwnAnswer {
    const prompt = typeof name === 'string' ? things.prompts.get(name) : undefined;
    if (typeof name !== 'string' || prompt === undefined)
      return error(INVALID_PARAMS, `Unknown prompt: ${String(name)}`);
    if (!isObject(args)) return error(INVALID_PARAMS, 'Invalid params: `arguments` is no object');
    const missing = requiredArguments(prompt).filter((one) => args[one] === undefined);
    if (missing.length > 0) return error(INVALID_PARAMS, `Missing required arguments: ${missing.join(', ')}`);
    return invented(inventPrompt(prompt, name, args));
  }

  function readResource({ uri }: JsonObject): OwnAnswer {
    const resource = typeof uri === 'string' ? things.resource(uri) : undefined;
    // What is invented may be another thing after the next start.
    const caching = isModern ? { ttlMs: 0, cacheScope: 'private' } : {};
    if (typeof uri === 'string' && resource !== undefined)
      return invented({ ...inventResource(resource, uri), ...caching });
    const code = isModern ? INVALID_PARAMS : RESOURCE_NOT_FOUND;
    return error(code, 'Resource not found', { uri });
  }

  function complete({ argument }: JsonObject): OwnAnswer {
    const typed = isObject(argument) ? argument['value'] : undefined;
    if (typeof typed !== 'string') return error(INVALID_PARAMS, 'Invalid params: `argument` has no `value`');
    return invented(inventCompletion(typed));
  }

  return answer;
}

const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

function error(code: number, message: string, data: JsonObject = {}): OwnAnswer {
  return { member: 'error', json: JSON.stringify({ code, message, data: { ...data, [INVENTED]: true } }) };
}

/** There will be no news: the subscription stays open. Specification 2026-07-28, basic/patterns/subscriptions. */
function acknowledged(json: Buffer): OwnAnswer {
  const id = sourceAt(json, ['id']) ?? 'null';
  const wanted = sourceAt(json, ['params', 'notifications']) ?? '{}';
  const params = `{"notifications":${wanted},"_meta":{"io.modelcontextprotocol/subscriptionId":${id},"${INVENTED}":true}}`;
  return {
    notification: `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":${params}}`,
  };
}

/** The source text where there is no canonical one. */
function canonicalArguments(json: Buffer): string {
  const span = memberAt(json, ['params', 'arguments']);
  if (span === undefined) return '{}';
  const text = canonicalText(json, span);
  return typeof text === 'string' ? json.toString('utf8', span.start, span.end) : text.toString();
}

function requiredArguments({ arguments: declared }: JsonObject): string[] {
  if (!Array.isArray(declared)) return [];
  return declared.flatMap((one) =>
    isObject(one) && one['required'] === true && typeof one['name'] === 'string' ? [one['name']] : [],
  );
}
