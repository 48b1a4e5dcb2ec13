import { createReadStream } from 'node:fs';
import { hostname } from 'node:os';
import { addAbortSignal } from 'node:stream';
import { readFailure, TapedeckError } from '../../errors.ts';
import { READER_NAMES, READERS, type ReaderName, recognise } from '../../export/foreign/readers.ts';
import { type RedactionProfile, readProfile } from '../../protocol/redact/profile.ts';
import { openStore, type Store } from '../../store/file/open.ts';
import { processStarted } from '../../store/file/process.ts';
import { takeInSpools } from '../../store/keep/catch-up.ts';
import { VERSION } from '../../version.ts';
import { type Command, type Io, onStopSignals, pathOf, say } from '../io.ts';
import { DB_OPTION, STDIN } from '../options.ts';
import { createProgress, notices } from '../output.ts';
import { PATH_OPTION, REDACTION_OPTIONS } from '../redaction-options.ts';
import { writableStoreOf } from '../store.ts';

type Options = {
  files: string[];
  db: string | undefined;
  name: string | undefined;
  format: ReaderName | undefined;
  'no-redact-rule': string[];
  'redact-rule': string[];
  redact: string[];
};

export const importCommand: Command<Options> = {
  command: 'import <files..>',
  describe:
    'Read text recordings and those of other tools into the store, and print the ids of the new sessions',
  builder: (args) =>
    args
      .positional('files', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'Files that `tapedeck export` or another recorder wrote, or written by hand; - is stdin',
      })
      .options({
        db: DB_OPTION,
        format: {
          choices: READER_NAMES,
          describe: `${READER_NAMES.map((name) => `${name}: ${READERS[name].describe}`).join('; ')} (default: recognised by how the file begins)`,
          requiresArg: true,
        },
        name: {
          type: 'string',
          describe: 'The name of the new sessions, in place of the names in the files',
          requiresArg: true,
        },
        ...REDACTION_OPTIONS,
        redact: PATH_OPTION,
      })
      .example('$0 import session.ndjson', 'Then: tapedeck show')
      .example('$0 import recordings/*.ndjson', 'One session from each file')
      .example(
        '$0 import calculator.vcr',
        'A recording of agent-vcr; others are recognised by how they begin, too',
      )
      .example('$0 import --format mcpsnoop trace.jsonl', 'A file whose beginning does not show its format')
      .example('ssh host tapedeck export | $0 import - --name from-host', 'A session from another machine'),
  async run({ files, db, name, format, ...given }, io) {
    const redaction = givenProfile(given);
    const path = writableStoreOf(io, db, 'Import into a local store, and ship that.');
    await takeInSpools(path, { ...notices(io), onWaiting() {} });
    const store = openStore(path);
    const stopping = new AbortController();
    const stopped = new TapedeckError('stopped', 'Stopped: the import is not finished.');
    const ignoreSignals = onStopSignals(io, () => stopping.abort(stopped));
    try {
      for (const file of files) {
        const ids = await importFile(io, store, file, {
          name: name ?? null,
          format,
          redaction,
          signal: stopping.signal,
        });
        io.stdout.write(ids.map((id) => `${id}\n`).join(''));
      }
    } finally {
      ignoreSignals();
      store.close();
    }
  },
};

type ImportChoice = {
  name: string | null;
  format: ReaderName | undefined;
  redaction: RedactionProfile | null;
  signal: AbortSignal;
};

/** Files stay as they are, unless it is said what of them is secret: then all rules count. */
function givenProfile(given: Pick<Options, 'no-redact-rule' | 'redact-rule' | 'redact'>) {
  const profile = readProfile(given['no-redact-rule'], given['redact-rule'], given.redact);
  return profile.rules.length + profile.paths.length > 0 ? profile : null;
}

/**
 * Reads one file into the store. Returns the ids of its sessions. Throws `TapedeckError`: `corrupt` or `newer` for a broken
 * one, `not-found` or `io` where it cannot be read.
 */
async function importFile(io: Io, store: Store, file: string, choice: ImportChoice): Promise<string[]> {
  const { name, redaction, signal } = choice;
  const progress = createProgress(io, 'imported', null);
  const shown = file === STDIN ? 'stdin' : file;
  const opened = addAbortSignal(signal, file === STDIN ? io.stdin : createReadStream(pathOf(io, file)));
  try {
    const { format, source } =
      choice.format === undefined
        ? await recognise(opened, shown)
        : { format: choice.format, source: opened as AsyncIterable<Buffer> };
    return await READERS[format].read(store, source, {
      ...{ file: shown, name, redaction, signal, importer: ownImporter() },
      onFrame: progress.advance,
      onNote: (text) => say(io, `${shown}: ${text}`),
    });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new TapedeckError(readFailure(error), `${shown} cannot be read: ${error.message}.`, {
      cause: error,
    });
  } finally {
    progress.end();
  }
}

function ownImporter() {
  return {
    host: hostname(),
    pid: process.pid,
    processStarted: processStarted(process.pid),
    tapedeck: VERSION,
  };
}
