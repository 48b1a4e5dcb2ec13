/** The formats in which a session leaves the store, and comes into it. */

import type { FrameSelection } from '../store/frame-selection.ts';
import type { Store } from '../store/open.ts';
import type { SessionRow } from '../store/reader.ts';
import { writeCurl } from './curl.ts';
import { writeHar } from './har.ts';
import { writeMarkdown } from './markdown.ts';
import { writeMermaid } from './mermaid.ts';
import { type ImportOptions, readNdjson } from './ndjson-read.ts';
import { writeNdjson } from './ndjson-write.ts';
import { writeOtlp } from './otlp.ts';

export type WriteOptions = {
  /** Told how many frames are written. */
  onFrame: (count: number) => void;
  /** Only these frames of the session, or what they belong to. */
  only?: FrameSelection | undefined;
  /** For `otlp`: what tools were called with and gave back. */
  withArguments?: boolean;
};

export type Format = {
  describe: string;
  /** The session in pieces of text. Throws `TapedeckError` `usage` for a session that the format cannot hold. */
  write(store: Store, session: SessionRow, options: WriteOptions): Iterable<string>;
  /** Stores what the source holds as a new session, and gives its public id. Null: the format cannot be read. */
  read: ((store: Store, source: AsyncIterable<Buffer>, options: ImportOptions) => Promise<string>) | null;
};

export const FORMATS = {
  ndjson: { describe: 'a text recording, one frame a line, lossless', write: writeNdjson, read: readNdjson },
  har: { describe: 'an HTTP archive 1.2, with the events of streams', write: writeHar, read: null },
  markdown: { describe: 'a report for people', write: writeMarkdown, read: null },
  mermaid: { describe: 'a sequence diagram', write: writeMermaid, read: null },
  otlp: { describe: 'spans and metrics for OpenTelemetry', write: writeOtlp, read: null },
  curl: { describe: 'a shell script that sends the HTTP requests again', write: writeCurl, read: null },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof FORMATS;
