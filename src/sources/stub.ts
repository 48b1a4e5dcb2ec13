/** Opens a stub: a recording without a call, for the mock to stand on, and the answers to all that it is asked. */

import { createSchemas } from '../inspect/schema/schemas.ts';
import { sourceAt } from '../protocol/json/edit.ts';
import { collectTools, paramHeadersIn, type Recording, type Tools } from '../replay/recording/recording.ts';
import { askOffer, MODERN_VERSION, type ServerOffer } from '../replay/stub/ask.ts';
import { createStub, type Stub } from '../replay/stub/stub.ts';
import { openTemporaryStore } from '../store/file/open.ts';
import type { Connect } from '../talk/server.ts';
import { VERSION } from '../version.ts';
import { emptyRecording } from './playback.ts';

export type OpenStub = {
  recording: Recording;
  answer: Stub;
  /** How many of each the server listed, in the newest era that it speaks: `tools`, `prompts`, … */
  counts: ReadonlyMap<string, number>;
  /** The protocol versions that it answers to, the oldest first. */
  versions: readonly string[];
  close(): void;
};

/** Asks a live server for what it offers. Throws `TapedeckError` `io` where it does not say. */
export function askServer(connect: Connect, timeoutMs: number): Promise<ServerOffer> {
  return askOffer(connect, { timeoutMs, client: { name: 'mcp-tapedeck', version: VERSION } });
}

export function openStub(offer: ServerOffer): OpenStub {
  const { legacy, modern } = offer;
  const store = openTemporaryStore();
  const schemas = createSchemas();
  const older: unknown = JSON.parse(
    sourceAt(Buffer.from(legacy?.handshake ?? '{}'), ['protocolVersion']) ?? 'null',
  );
  const era = legacy === null ? 'modern' : modern === null ? 'legacy' : 'dual';
  const protocolVersion = typeof older === 'string' ? older : MODERN_VERSION;
  const empty = emptyRecording(store, { era, protocolVersion });
  const tools = toolsOf(offer);
  return {
    // The HTTP of 2026-07-28 compares headers with the arguments that the tools' schemas name.
    recording: { ...empty, tools: () => tools, paramHeadersOf: (tool) => paramHeadersIn(tools, tool) },
    answer: createStub(offer, schemas),
    counts: countsOf(offer),
    versions: [...(typeof older === 'string' ? [older] : []), ...(modern === null ? [] : [MODERN_VERSION])],
    close() {
      store.close();
      void schemas.close();
    },
  };
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
