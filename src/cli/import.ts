import { createReadStream } from 'node:fs';
import { hostname } from 'node:os';
import { addAbortSignal } from 'node:stream';
import type { CommandModule } from 'yargs';
import { TapedeckError } from '../errors.ts';
import { FORMATS } from '../export/formats.ts';
import { storePath } from '../store/location.ts';
import { openStore, type Store } from '../store/open.ts';
import { processStarted } from '../store/process.ts';
import { VERSION } from '../version.ts';
import { createProgress } from './output.ts';
import { DB_OPTION, STDIN } from './shared-options.ts';

type Options = { files: string[]; db: string | undefined; name: string | undefined };

const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

export const importCommand: CommandModule<object, Options> = {
  command: 'import <files..>',
  describe: 'Read text recordings into the store, and print the ids of the new sessions',
  builder: (args) =>
    args
      .positional('files', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'Files that `tapedeck export` wrote, or written by hand; - is stdin',
      })
      .options({
        db: DB_OPTION,
        name: {
          type: 'string',
          describe: 'Name the new sessions so, whatever the files say',
          requiresArg: true,
        },
      })
      .example('$0 import session.ndjson', 'Then: tapedeck show')
      .example('$0 import recordings/*.ndjson', 'One session from each file')
      .example('ssh host tapedeck export | $0 import - --name from-host', 'A session from another machine'),
  async handler({ files, db, name }) {
    const store = openStore(storePath(db));
    const stopping = new AbortController();
    const stop = () => stopping.abort(new TapedeckError('usage', 'Stopped: the import is not finished.'));
    for (const signal of STOP_SIGNALS) process.once(signal, stop);
    for (const file of files) {
      const id = await importFile(store, file, name ?? null, stopping.signal);
      process.stdout.write(`${id}\n`);
    }
    for (const signal of STOP_SIGNALS) process.off(signal, stop);
    store.close();
  },
};

/** Reads one file into the store, and gives the id of its session. Throws `TapedeckError` `usage` for a broken one. */
export async function importFile(
  store: Store,
  file: string,
  name: string | null,
  signal: AbortSignal,
): Promise<string> {
  const progress = createProgress('imported', null);
  const importer = {
    host: hostname(),
    pid: process.pid,
    processStarted: processStarted(process.pid),
    tapedeck: VERSION,
  };
  const shown = file === STDIN ? 'stdin' : file;
  const source = addAbortSignal(signal, file === STDIN ? process.stdin : createReadStream(file));
  try {
    return await FORMATS.ndjson.read(store, source, {
      file: shown,
      name,
      importer,
      onFrame: progress.advance,
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new TapedeckError('usage', `${shown} cannot be read: ${error.message}.`, { cause: error });
  } finally {
    progress.end();
  }
}
