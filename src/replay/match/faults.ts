/**
 * Recorded refusals of what a request says of its client, each of which answers only a request with the same fault: a
 * revision that the server does not speak, members that `_meta` lacks, a capability that was not declared. They are no part
 * of a client's conversation: who asks the same without the fault gets the answer that was recorded for that, and a
 * refusal is not used up. Specification: 2026-07-28, basic/index and basic/versioning; 2025-11-25, basic/lifecycle.
 */

import { sourceAt } from '../../protocol/json/edit.ts';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import type { Recording } from '../recording/recording.ts';
import type { RequestKey } from './key.ts';
import { loadIfThere, type RecordingKeys } from './recording-keys.ts';

/** Whether a live request has the fault. */
type Fault = (request: RequestMessage, json: Buffer) => boolean;

export type Refusals = {
  /** The calls that were refused for a fault of the request. */
  calls: ReadonlySet<number>;
  /** The recorded call that was refused for the fault that this request has, too; null where there is none. */
  find(request: RequestMessage, json: Buffer, key: RequestKey): number | null;
  /** The error with which the recorded server refused this revision, whatever was asked, as JSON text; null if it did not. */
  versionError(version: string): string | null;
  /** The revisions that it named then; null where it named none. */
  supported: readonly unknown[] | null;
};

type RefusedCall = { call: number; hasFault: Fault };

const META = ['params', '_meta'] as const;

const REQUIRED = ['io.modelcontextprotocol/protocolVersion', 'io.modelcontextprotocol/clientCapabilities'];

const UNSUPPORTED_VERSION = -32022;

const INVALID_PARAMS = -32602;

export function readRefusals(recording: Recording, keys: Pick<RecordingKeys, 'digestOf'>): Refusals {
  const { script } = recording;
  const refused = new Set<number>();
  const byKey = new Map<string, RefusedCall[]>();
  const versions = new Map<string, string>();
  let supported: readonly unknown[] | null = null;

  function add(call: number, code: number): void {
    const [asked, answer] = textsOf(recording, call);
    const request = asked && recording.read(asked);
    if (asked === null || answer === null || request?.kind !== 'request') return;
    const hasFault = faultOf(code, recording.session.era, request, asked, answer);
    const digest = hasFault && keys.digestOf(call);
    if (hasFault === null || digest == null) return;
    refused.add(call);
    byKey.set(digest, [...(byKey.get(digest) ?? []), { call, hasFault }]);
    const { protocolVersion } = request.details;
    const error = sourceAt(answer, ['error']);
    if (code !== UNSUPPORTED_VERSION || protocolVersion === null || error === undefined) return;
    versions.set(protocolVersion, error);
    const named = valueAt(answer, ['error', 'data', 'supported']);
    if (Array.isArray(named)) supported = named;
  }

  /** The older era refuses params for all sorts of reasons, and there may be very many; but only a handshake is about its client. */
  function mayBeFault(call: number, code: number): boolean {
    if (code !== INVALID_PARAMS || recording.session.era !== 'legacy') return true;
    return script.topics.methodOf(script.topicOf(call)) === 'initialize';
  }

  for (let call = 0; call < script.size; call += 1) {
    const code = script.refusalOf(call);
    if (code !== null && mayBeFault(call, code)) add(call, code);
  }
  return {
    calls: refused,
    find(request, json, { digest }) {
      const same = byKey.size === 0 ? undefined : byKey.get(digest);
      return same?.find(({ hasFault }) => hasFault(request, json))?.call ?? null;
    },
    versionError: (version) => versions.get(version) ?? null,
    supported,
  };
}

/** The request and its answer; null for what cannot be read. */
function textsOf(recording: Recording, call: number): [asked: Buffer | null, answer: Buffer | null] {
  const { script } = recording;
  const answer = script.stepsOf(call).find(({ isAnswer }) => isAnswer);
  return [
    loadIfThere(recording, script.placeOf(call)),
    answer === undefined ? null : loadIfThere(recording, answer.place),
  ];
}

/** Null where the error is about something else. */
function faultOf(
  code: number,
  era: string | null,
  asked: RequestMessage,
  json: Buffer,
  answer: Buffer,
): Fault | null {
  const { protocolVersion, isModern } = asked.details;
  const isHandshake = asked.canonical === 'initialize';
  if (code === UNSUPPORTED_VERSION || (isHandshake && code === INVALID_PARAMS))
    return protocolVersion === null ? null : ({ details }) => details.protocolVersion === protocolVersion;
  if (isHandshake) return null;
  if (code === INVALID_PARAMS) {
    const lacks = lackingMeta(json);
    // A client of the older era has no such members, and its fault is another one.
    const isOther = lacks === '' || (!isModern && era !== 'modern');
    return isOther ? null : (_, live) => lackingMeta(live) === lacks;
  }
  const wanted = valueAt(answer, ['error', 'data', 'requiredCapabilities']);
  const declared = JSON.stringify(capabilitiesOf(json));
  return isObject(wanted)
    ? (_, live) => !hasAll(capabilitiesOf(live), wanted)
    : (_, live) => JSON.stringify(capabilitiesOf(live)) === declared;
}

/** The required members of `_meta` that a request lacks; empty if it has them. */
function lackingMeta(json: Buffer): string {
  return REQUIRED.filter((name) => sourceAt(json, [...META, name]) === undefined).join(' ');
}

function capabilitiesOf(json: Buffer): unknown {
  return valueAt(json, [...META, 'io.modelcontextprotocol/clientCapabilities']);
}

/** Whether every capability that is wanted was declared, with its parts. */
function hasAll(declared: unknown, wanted: JsonObject): boolean {
  if (!isObject(declared)) return false;
  return Object.entries(wanted).every(([name, parts]) => {
    const own = declared[name];
    return own !== undefined && own !== null && (!isObject(parts) || hasAll(own, parts));
  });
}

function valueAt(json: Buffer, path: readonly string[]): unknown {
  const text = sourceAt(json, path);
  return text === undefined ? undefined : JSON.parse(text);
}
