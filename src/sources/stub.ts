/** Opens a stub: a recording without a call, for the mock to stand on, and the answers to all that it is asked. */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { readFailure, TapedeckError } from '../errors.ts';
import { createSchemas } from '../inspect/schema/schemas.ts';
import { sourceAt } from '../protocol/json/edit.ts';
import { createSecretNumbers } from '../protocol/redact/numbers.ts';
import type { RedactionProfile } from '../protocol/redact/profile.ts';
import { createRedactor } from '../protocol/redact/redactor.ts';
import { collectTools, paramHeadersIn, type Recording, type Tools } from '../replay/recording/recording.ts';
import { askOffer, MODERN_VERSION, type ServerOffer } from '../replay/stub/ask.ts';
import { readOffer, writeOffer } from '../replay/stub/offer-file.ts';
import { createStub, type Stub } from '../replay/stub/stub.ts';
import { openTemporaryStore } from '../store/file/open.ts';
import { replaceFile } from '../store/file/replace-file.ts';
import { createPassingDigest } from '../store/file/secret.ts';
import type { Connect } from '../talk/server.ts';
import { VERSION } from '../version.ts';
import { emptyRecording } from './playback.ts';

/** A schema that takes longer to be checked is given up. A busy machine must not change an answer. */
const PATIENCE_MS = 10_000;

export type OpenStub = { recording: Recording; answer: Stub; close(): void };

/** Asks a live server for what it offers. Throws `TapedeckError` `io` where it does not say. */
export function askServer(connect: Connect, timeoutMs: number): Promise<ServerOffer> {
  return askOffer(connect, { timeoutMs, client: { name: 'mcp-tapedeck', version: VERSION } });
}

/** Reads what `saveOffer` has written. Throws `TapedeckError`. */
export function loadOffer(path: string): ServerOffer {
  try {
    return readOffer(readFileSync(path), path);
  } catch (error) {
    if (error instanceof TapedeckError) throw error;
    const why = `${path} cannot be read: ${(error as Error).message}.`;
    throw new TapedeckError(readFailure(error), why, { cause: error });
  }
}

/**
 * Writes an offer, less its secrets, into a file for stubs without the server. Another file than an offer is not replaced. Throws
 * `TapedeckError` `refused` and `io`.
 */
export function saveOffer(path: string, offer: ServerOffer, redaction: RedactionProfile): void {
  const redactor = createRedactor(redaction, createSecretNumbers(createPassingDigest()).assign);
  const redacted = (message: Buffer) => redactor.payload(message, false, false)?.payload ?? message;
  if (existsSync(path) && statSync(path).isFile() && !holdsOffer(path))
    throw new TapedeckError('refused', `${path} is there, and is no saved offer: it is left as it is.`);
  replaceFile(path, [writeOffer(offer, redacted)]);
}

function holdsOffer(path: string): boolean {
  try {
    loadOffer(path);
    return true;
  } catch {
    return false;
  }
}

export function openStub(offer: ServerOffer): OpenStub {
  const { legacy, modern } = offer;
  const store = openTemporaryStore();
  const schemas = createSchemas(PATIENCE_MS);
  const era = legacy === null ? 'modern' : modern === null ? 'legacy' : 'dual';
  const [protocolVersion = MODERN_VERSION] = offerSummary(offer).versions;
  const empty = emptyRecording(store, { era, protocolVersion });
  const tools = toolsOf(offer);
  return {
    // The HTTP of 2026-07-28 compares headers with the arguments that the tools' schemas name.
    recording: { ...empty, tools: () => tools, paramHeadersOf: (tool) => paramHeadersIn(tools, tool) },
    answer: createStub(offer, schemas),
    close() {
      store.close();
      void schemas.close();
    },
  };
}

/** How many things the newest era lists, by the member of the result (`tools`), and the protocol versions, the oldest first. */
export function offerSummary(offer: ServerOffer): { counts: Map<string, number>; versions: string[] } {
  const { legacy, modern } = offer;
  const older = sourceAt(Buffer.from(legacy?.handshake ?? '{}'), ['protocolVersion']);
  const versions = [
    older === undefined ? [] : [String(JSON.parse(older))],
    modern === null ? [] : [MODERN_VERSION],
  ];
  return { counts: countsOf(offer), versions: versions.flat() };
}

function toolsOf({ modern }: ServerOffer): Tools {
  const tools: Tools = new Map();
  for (const { member, json } of modern?.lists.get('tools/list') ?? [])
    if (member === 'result') collectTools(tools, Buffer.from(`{"result":${json}}`));
  return tools;
}

function countsOf({ legacy, modern }: ServerOffer): Map<string, number> {
  const counts = new Map<string, number>();
  for (const pages of (modern ?? legacy)?.lists.values() ?? []) {
    for (const { member, json } of pages) {
      const result = member === 'result' ? (JSON.parse(json) as Record<string, unknown>) : {};
      for (const [name, list] of Object.entries(result))
        if (Array.isArray(list)) counts.set(name, (counts.get(name) ?? 0) + list.length);
    }
  }
  return counts;
}
