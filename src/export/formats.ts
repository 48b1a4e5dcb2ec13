/** The formats in which a session leaves the store. Those in which it comes into it: readers.ts. */

import type { FrameSelection } from '../store/frame-selection.ts';
import type { Store } from '../store/open.ts';
import type { SessionRow } from '../store/reader.ts';
import { writeCurl } from './curl.ts';
import { writeHar } from './har.ts';
import { writeMarkdown } from './markdown.ts';
import { writeMermaid } from './mermaid.ts';
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
};

export const FORMATS = {
  ndjson: { describe: 'a text recording, one frame a line, lossless', write: writeNdjson },
  har: { describe: 'an HTTP archive 1.2, with the events of streams', write: writeHar },
  markdown: { describe: 'a report for people', write: writeMarkdown },
  mermaid: { describe: 'a sequence diagram', write: writeMermaid },
  otlp: { describe: 'spans and metrics for OpenTelemetry', write: writeOtlp },
  curl: { describe: 'a shell script that sends the HTTP requests again', write: writeCurl },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof FORMATS;
