/** The formats in which sessions come into the store. Those in which they leave it: formats.ts. */
import type { Store } from '../store/open.ts';
import { readCassette } from './cassette-read.ts';
import { readMcporter } from './mcporter-read.ts';
import { readMcpsnoop } from './mcpsnoop-read.ts';
import { type ImportOptions, readNdjson } from './ndjson-read.ts';
import { readVcr } from './vcr-read.ts';

export type Reader = {
  describe: string;
  /** The first JSON object of such a file has members of all these names. */
  signature: readonly string[];
  /**
   * Stores what the source holds as new sessions, and gives their public ids. Throws `TapedeckError` `usage` for a broken
   * source, of which then nothing is stored.
   */
  read(store: Store, source: AsyncIterable<Buffer>, options: ImportOptions): Promise<string[]>;
};

export const READERS = {
  ndjson: {
    describe: 'a text recording',
    signature: ['tapedeck'],
    read: readRecording,
  },
  'mcp-cassette': {
    describe: 'JSON Lines of ivermin1123/mcp-cassette, version 1 and 2',
    signature: ['type', 'cassetteVersion'],
    read: readCassette,
  },
  mcpsnoop: {
    describe: 'JSON Lines of kerlenton/mcpsnoop',
    signature: ['session_id', 'direction'],
    read: readMcpsnoop,
  },
  mcporter: {
    describe: 'NDJSON of openclaw/mcporter',
    signature: ['jsonrpc', '_meta'],
    read: readMcporter,
  },
  'agent-vcr': {
    describe: 'a .vcr file of Jarvis2021/agent-vcr, format 1',
    signature: ['format_version', 'metadata'],
    read: readVcr,
  },
} as const satisfies Record<string, Reader>;

async function readRecording(
  store: Store,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<string[]> {
  return [await readNdjson(store, source, options)];
}

export type ReaderName = keyof typeof READERS;

export const READER_NAMES = Object.keys(READERS) as ReaderName[];
