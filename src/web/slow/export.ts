/** A session in one of the formats of `export`. */

import { TapedeckError } from '../../errors.ts';
import { FORMATS, type FormatName } from '../../export/formats.ts';
import { selectFrames } from '../../inspect/filter/sql.ts';
import { makeReport } from '../report/report.ts';
import { checkWork } from './check.ts';
import { filterOf, inSlices, type Job, sessionOf, workOf } from './job.ts';

/** Of the files. A browser shows none of them: it stores them, under a name that nothing recorded is in. */
export const EXPORT_FILES: Readonly<Record<FormatName | 'html', { type: string; extension: string }>> = {
  ndjson: { type: 'application/x-ndjson', extension: 'ndjson' },
  har: { type: 'application/json', extension: 'har' },
  markdown: { type: 'text/markdown', extension: 'md' },
  mermaid: { type: 'text/plain', extension: 'mmd' },
  otlp: { type: 'application/x-ndjson', extension: 'otlp.ndjson' },
  curl: { type: 'application/x-sh', extension: 'sh' },
  // Not as a document: a browser that showed it would let it speak in the viewer's name.
  html: { type: 'application/octet-stream', extension: 'html' },
};

/** The format that is asked for. Throws `TapedeckError` `usage` for one that there is not. */
function exportFormat(written: string | undefined): keyof typeof EXPORT_FILES {
  const names = Object.keys(EXPORT_FILES) as (keyof typeof EXPORT_FILES)[];
  const format = names.find((name) => name === written);
  if (format !== undefined) return format;
  throw new TapedeckError(
    'usage',
    `Expected one of ${names.join(', ')} as \`format\`, got \`${written ?? ''}\`.`,
  );
}

/** Pieces go out together: each is a few bytes. */
const PIECE_CHARACTERS = 64 * 1024;

export const exportWork = workOf(writeExport);

async function writeExport(job: Job): Promise<void> {
  const { store, params } = job;
  const session = sessionOf(job);
  const filter = filterOf(job);
  const only = filter === undefined ? undefined : selectFrames(store, filter);
  const format = exportFormat(params['format']);
  const { type, extension } = EXPORT_FILES[format];
  const pieces =
    format === 'html'
      ? makeReport(store, session, {
          onFrame() {},
          only,
          filter: params['filter'] ?? null,
          check: checkWork,
        })
      : inSlices(FORMATS[format].write(store, session, { onFrame() {}, only }), job);
  const headers = {
    'Content-Type': type,
    'Content-Disposition': `attachment; filename="${session.id}.${extension}"`,
  };
  let text = '';
  let isBegun = false;
  const send = async () => {
    // A format that refuses the session does so before its first piece.
    if (!isBegun) await job.emit({ status: 200, headers });
    isBegun = true;
    await job.emit(text);
    text = '';
  };
  for await (const piece of pieces) {
    text += piece;
    if (text.length >= PIECE_CHARACTERS) await send();
  }
  await send();
}
