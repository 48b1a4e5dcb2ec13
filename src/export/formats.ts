/** The formats in which a session leaves the store. Those in which it comes into it: readers.ts. */

import { TapedeckError } from '../errors.ts';
import { prepareSession } from '../store/read/sessions.ts';
import { writeCurl } from './curl.ts';
import type { Format } from './format.ts';
import { writeHar } from './har.ts';
import { writeMarkdown } from './markdown.ts';
import { writeMermaid } from './mermaid.ts';
import { writeOtlp } from './otlp/otlp.ts';
import { writeNdjson } from './text/write.ts';

/** A session is read page by page: one that is removed meanwhile would be cut off without a sign. */
function toTheEnd(write: Format['write']): Format['write'] {
  return function* (store, session, options) {
    yield* write(store, session, options);
    if (prepareSession(store)(session.number)?.id !== session.id)
      throw new TapedeckError('not-found', `Session ${session.id} was removed while it was read.`);
  };
}

export const FORMATS = {
  ndjson: { describe: 'a text recording, one frame a line, lossless', write: toTheEnd(writeNdjson) },
  har: { describe: 'an HTTP archive 1.2, with the events of streams', write: toTheEnd(writeHar) },
  markdown: { describe: 'a report for people', write: toTheEnd(writeMarkdown) },
  mermaid: { describe: 'a sequence diagram', write: toTheEnd(writeMermaid) },
  otlp: { describe: 'spans and metrics for OpenTelemetry', write: toTheEnd(writeOtlp) },
  curl: { describe: 'a shell script that sends the HTTP requests again', write: toTheEnd(writeCurl) },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof FORMATS;
