/** The formats in which a session leaves the store. Those in which it comes into it: readers.ts. */

import { writeCurl } from './curl.ts';
import type { Format } from './format.ts';
import { writeHar } from './har.ts';
import { writeMarkdown } from './markdown.ts';
import { writeMermaid } from './mermaid.ts';
import { writeOtlp } from './otlp/otlp.ts';
import { writeNdjson } from './text/write.ts';

export const FORMATS = {
  ndjson: { describe: 'a text recording, one frame a line, lossless', write: writeNdjson },
  har: { describe: 'an HTTP archive 1.2, with the events of streams', write: writeHar },
  markdown: { describe: 'a report for people', write: writeMarkdown },
  mermaid: { describe: 'a sequence diagram', write: writeMermaid },
  otlp: { describe: 'spans and metrics for OpenTelemetry', write: writeOtlp },
  curl: { describe: 'a shell script that sends the HTTP requests again', write: writeCurl },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof FORMATS;
