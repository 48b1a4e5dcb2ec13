/** Prepares recorded messages for a live server, with everything its transport has to know. */

import { paramText } from '../../protocol/http/mirrored-headers.ts';
import { sourceAt } from '../../protocol/json/edit.ts';
import type { OutgoingMessage } from '../../talk/server.ts';
import { paramHeadersIn, type Tools } from './recording.ts';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

const CANCELLED = 'notifications/cancelled';

const NOTHING = { id: null, method: null, target: null, mirrored: [], version: null };

export function outgoingAnswer(json: Buffer): OutgoingMessage {
  return { ...NOTHING, json, kind: 'answer' };
}

export function outgoingNotification(json: Buffer, method: string): OutgoingMessage {
  return { ...NOTHING, json, kind: 'notification', method, version: versionIn(json) };
}

/** `id`: as it stands in `json`. `tools`: those listed so far, for the arguments that HTTP headers repeat. */
export function outgoingRequest(
  json: Buffer,
  id: string,
  { method, target }: Pick<OutgoingMessage, 'target'> & { method: string },
  tools: Tools,
): OutgoingMessage {
  const mirrored = method === 'tools/call' ? mirroredIn(json, target ?? '', tools) : [];
  return { json, kind: 'request', id, method, target, mirrored, version: versionIn(json) };
}

/** Tells the server that nobody waits for the answer to this request any more. `id` is JSON text, as it was sent. */
export function outgoingCancellation(id: string, reason?: string): OutgoingMessage {
  const why = reason === undefined ? '' : `,"reason":${JSON.stringify(reason)}`;
  const json = `{"jsonrpc":"2.0","method":"${CANCELLED}","params":{"requestId":${id}${why}}}`;
  return outgoingNotification(Buffer.from(json), CANCELLED);
}

function mirroredIn(json: Buffer, tool: string, tools: Tools): [string, string][] {
  const headers = paramHeadersIn(tools, tool);
  if (headers.length === 0) return [];
  const args: unknown = JSON.parse(sourceAt(json, ['params', 'arguments']) ?? 'null');
  return headers.flatMap((one) => {
    const text = paramText(args, one);
    return text === null ? [] : [[one.header, text]];
  });
}

function versionIn(json: Buffer): string | null {
  const version: unknown = JSON.parse(sourceAt(json, ['params', '_meta', VERSION_KEY]) ?? 'null');
  return typeof version === 'string' ? version : null;
}
