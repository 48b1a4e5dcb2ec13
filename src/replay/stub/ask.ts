/**
 * Asks a live server for what it says of itself: the handshake and the lists, in each era that it speaks. No tool is called, no
 * prompt and no resource is read. Specification: 2025-11-25 basic/lifecycle, 2026-07-28 server/discover, server/utilities/pagination.
 */

import { TapedeckError } from '../../errors.ts';
import { sourceAt } from '../../protocol/json/edit.ts';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import { parseMessages, type RequestMessage } from '../../protocol/message/message.ts';
import { messageText } from '../../protocol/message/payload.ts';
import { escapeText } from '../../protocol/text.ts';
import { type Connect, settleVersion } from '../../talk/server.ts';
import type { Answer } from '../match/compare.ts';
import { outgoingAnswer, outgoingNotification, outgoingRequest } from '../recording/outgoing.ts';
import type { ListMethod } from '../verify/offers.ts';
import { createOpenRequests } from '../verify/plan.ts';

/** What a server said in one era. */
export type EraOffer = {
  /** The result of `initialize` or `server/discover`, as JSON text. */
  handshake: string;
  /** The answers to each list that it was asked for, a page each. */
  lists: ReadonlyMap<ListMethod, readonly ListPage[]>;
};

/** `cursor`: the JSON text with which the page was asked for; null for the first one. `json`: the text of the answer's member. */
export type ListPage = { cursor: string | null; member: 'result' | 'error'; json: string };

/** Null where the server does not speak the era. */
export type ServerOffer = { legacy: EraOffer | null; modern: EraOffer | null };

export const MODERN_VERSION = '2026-07-28';

/** The newest revision that begins with `initialize`. */
const LEGACY_VERSION = '2025-11-25';

/** The capability without which a server is not asked for a list. Tools are asked for even so: some forget to declare them. */
const CAPABILITIES: Record<ListMethod, string | null> = {
  'tools/list': null,
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resources',
};

/** A server that has shaken hands in one era may keep silent about a method of another. */
const PROBE_MS = 10_000;

const MAX_PAGES = 1000;

const METHOD_NOT_FOUND = -32601;

type AskOptions = {
  timeoutMs: number;
  /** How the client names itself. */
  client: { name: string; version: string };
};

/** Throws `TapedeckError` `io` where the server answers in neither era, or does not answer a list. */
export async function askOffer(connect: Connect, options: AskOptions): Promise<ServerOffer> {
  const legacy = await orWhy(connect, options, askLegacy);
  const timeoutMs = typeof legacy === 'string' ? options.timeoutMs : Math.min(options.timeoutMs, PROBE_MS);
  // Another connection: a server on stdio keeps to the era in which it was asked first.
  const modern = await orWhy(connect, { ...options, timeoutMs }, askModern);
  if (typeof legacy !== 'string') return { legacy, modern: typeof modern === 'string' ? null : modern };
  if (typeof modern !== 'string') return { legacy: null, modern };
  throw new TapedeckError(
    'io',
    `The live server answers neither \`initialize\` (${escapeText(legacy)}) nor \`server/discover\` (${escapeText(modern)}).`,
  );
}

/** The server does not speak the era. */
class NotSpoken extends Error {}

async function orWhy(
  connect: Connect,
  options: AskOptions,
  ask: (conversation: Conversation, options: AskOptions) => Promise<EraOffer>,
): Promise<EraOffer | string> {
  const conversation = converse(connect, options.timeoutMs);
  try {
    return await ask(conversation, options);
  } catch (error) {
    if (error instanceof NotSpoken) return error.message;
    throw error;
  } finally {
    await conversation.close();
  }
}

async function askLegacy(conversation: Conversation, { client }: AskOptions): Promise<EraOffer> {
  const params = { protocolVersion: LEGACY_VERSION, capabilities: {}, clientInfo: client };
  const result = await shakeHands(conversation, 'initialize', params);
  if (typeof result.value['protocolVersion'] !== 'string')
    throw new NotSpoken('its result names no `protocolVersion`');
  await conversation.begin(result.json);
  return { handshake: result.text, lists: await askLists(conversation, result.value, {}) };
}

async function askModern(conversation: Conversation, { client }: AskOptions): Promise<EraOffer> {
  const prefix = 'io.modelcontextprotocol';
  const _meta = {
    [`${prefix}/protocolVersion`]: MODERN_VERSION,
    [`${prefix}/clientInfo`]: client,
    [`${prefix}/clientCapabilities`]: {},
  };
  const result = await shakeHands(conversation, 'server/discover', { _meta });
  const { supportedVersions: versions } = result.value;
  if (!Array.isArray(versions) || !versions.includes(MODERN_VERSION))
    throw new NotSpoken(`its \`supportedVersions\` do not have ${MODERN_VERSION}`);
  return { handshake: result.text, lists: await askLists(conversation, result.value, { _meta }) };
}

/** `text`: of the result; `value`: the same, parsed. */
async function shakeHands(
  { ask }: Conversation,
  method: string,
  params: object,
): Promise<{ json: Buffer; text: string; value: JsonObject }> {
  const answer = await ask(method, params);
  if (typeof answer === 'string') throw new NotSpoken(answer);
  const { json, message } = answer;
  if (message.kind === 'error') throw new NotSpoken(`error ${sourceAt(json, ['error', 'message']) ?? ''}`);
  const text = sourceAt(json, ['result']) ?? 'null';
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new NotSpoken('its result is no object');
  return { json, text, value };
}

async function askLists(
  conversation: Conversation,
  { capabilities }: JsonObject,
  params: object,
): Promise<EraOffer['lists']> {
  const lists = new Map<ListMethod, ListPage[]>();
  for (const [method, capability] of Object.entries(CAPABILITIES) as [ListMethod, string | null][]) {
    if (capability !== null && !(isObject(capabilities) && isObject(capabilities[capability]))) continue;
    lists.set(method, await askPages(conversation, method, params));
  }
  return lists;
}

async function askPages({ ask }: Conversation, method: ListMethod, params: object): Promise<ListPage[]> {
  const pages: ListPage[] = [];
  let cursor: string | null = null;
  // Some servers lead in a circle.
  while (pages.length < MAX_PAGES && !pages.some((page) => page.cursor === cursor)) {
    const own: object = cursor === null ? {} : { cursor: JSON.parse(cursor) };
    const answer = await ask(method, { ...params, ...own });
    if (typeof answer === 'string')
      throw new TapedeckError('io', `The live server has not answered ${method}: ${escapeText(answer)}.`);
    const member = answer.message.kind === 'error' ? 'error' : 'result';
    const json = answer.json;
    pages.push({ cursor, member, json: sourceAt(json, [member]) ?? '{}' });
    const next = sourceAt(json, ['result', 'nextCursor']) ?? null;
    if (next === null || !next.startsWith('"')) break;
    cursor = next;
  }
  return pages;
}

type Conversation = {
  /** The answer; a text where there is none, which says why. */
  ask(method: string, params: object): Promise<Answer | string>;
  /** The handshake has been answered so. */
  begin(answer: Buffer): Promise<void>;
  close(): Promise<void>;
};

function converse(connect: Connect, timeoutMs: number): Conversation {
  let closedWhy: string | null = null;
  let nonsense: string | null = null;
  const open = createOpenRequests(
    timeoutMs,
    () => {},
    () => {},
  );
  const server = connect({
    onPayload(payload) {
      for (const [n, message] of parseMessages(payload).entries()) {
        if (message.kind === 'invalid') nonsense ??= payload.toString('utf8', 0, MAX_SHOWN);
        else if (message.kind === 'request') void server.send(outgoingAnswer(replyTo(message)));
        else if (message.kind !== 'notification' && message.id?.type === 'number')
          open.end(message.id.text, { answer: { json: messageText(payload, n), message }, why: null });
      }
    },
    onFailed: (id, why) => open.end(id, { answer: null, why }),
    onClosed(why) {
      closedWhy ??= why;
      open.endAll(why);
    },
  });
  return {
    async ask(method, params) {
      if (closedWhy !== null) return closedWhy;
      const { id, ended } = open.begin(method);
      const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: Number(id), method, params }));
      await server.send(outgoingRequest(json, id, { method, target: null }, NO_TOOLS));
      const { answer, why } = await ended;
      if (answer !== null) return answer;
      return nonsense === null ? (why ?? 'no answer') : `${why}; it said what is no message: ${nonsense}`;
    },
    async begin(answer) {
      settleVersion(server, answer);
      const method = 'notifications/initialized';
      await server.send(
        outgoingNotification(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method })), method),
      );
    },
    close: () => server.close(),
  };
}

const MAX_SHOWN = 100;

/** No tool is called. */
const NO_TOOLS = new Map();

/** A server may ask whether we are there; for all else we have no capability. */
function replyTo({ canonical, id }: RequestMessage): Buffer {
  const idText = id.type === 'string' ? `"${id.text}"` : id.text;
  const error = JSON.stringify({ code: METHOD_NOT_FOUND, message: 'Method not found' });
  const answer = canonical === 'ping' ? '"result":{}' : `"error":${error}`;
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},${answer}}`);
}
