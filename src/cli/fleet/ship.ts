import type { Argv } from 'yargs';
import { formatCount, formatSize } from '../../inspect/view/text.ts';
import { openForReading } from '../../store/file/open.ts';
import { VERSION } from '../../version.ts';
import { type Command, type Io, onStopSignals, say, storeOf } from '../io.ts';
import { DB_OPTION } from '../options.ts';
import { createProgress } from '../output.ts';
import { addressOf, ENGINE_OPTIONS, type RawEngine } from './address.ts';

type Options = RawEngine & {
  db: string | undefined;
  once: boolean;
  imported: boolean;
  'ship-unredacted': boolean;
  tenant: string | undefined;
};

export const shipCommand: Command<Options> = {
  command: 'ship',
  describe: 'Ship the recordings of this host to an engine',
  builder: (args: Argv) =>
    args
      .usage(
        '$0 ship --to <url>\n\nBrings every frame of the store into a PostgreSQL that `tapedeck engine init` has set up, exactly once,\nand goes on with what is recorded, until it is stopped. Whatever is in the way is waited for.',
      )
      .options({
        ...ENGINE_OPTIONS,
        once: {
          type: 'boolean',
          default: false,
          describe: 'Ship what is there, and end: exit code 0 if nothing is left',
        },
        imported: { type: 'boolean', default: false, describe: 'Ship sessions that came by `import`, too' },
        'ship-unredacted': {
          type: 'boolean',
          default: false,
          describe: 'Ship sessions that were recorded with --no-redact, too: with their secrets',
        },
        tenant: {
          type: 'string',
          requiresArg: true,
          describe: 'Mark the sessions with this, in the column `tenant`',
        },
        db: DB_OPTION,
      })
      .example(
        '$0 ship --to postgres://127.0.0.1/tapedeck --once',
        'What is there by now, as for a nightly job',
      ) as Argv<Options>,
  run,
};

async function run(options: Options, io: Io): Promise<void> {
  const file = storeOf(io, options.db);
  const address = await addressOf(io, options);
  openForReading(file).close();
  const { runShipper } = await import('../../ship/shipper.ts');
  const stop = new AbortController();
  const off = onStopSignals(io, () => stop.abort());
  const progress = createProgress(io, 'shipped', null);
  const shipped = { frames: 0, bytes: 0 };
  try {
    const end = await runShipper({
      ...{ file, address, isOnce: options.once, tenant: options.tenant ?? null, version: VERSION },
      ...{ imported: options.imported, unredacted: options['ship-unredacted'] },
      goesOn: () => true,
      onNotice: (text) => say(io, text),
      onShipped(frames, bytes) {
        shipped.frames += frames;
        shipped.bytes += bytes;
        progress.advance(shipped.frames);
      },
      signal: stop.signal,
    });
    progress.end();
    const { frames, bytes } = shipped;
    say(io, `shipped ${formatCount(frames, 'frame')}, ${formatSize(bytes)}, to ${address.text}`);
    if (options.once) io.exitCode = end.isDone && sayRefused(io, file) === 0 ? 0 : 1;
  } finally {
    off();
  }
}

/** Says which sessions the engine does not get, and why. */
function sayRefused(io: Io, file: string): number {
  const store = openForReading(file);
  try {
    const refused = store
      .prepare<[], { id: string; reason: string }>(
        `SELECT s.id, p.reason FROM shipped AS p JOIN session AS s ON s.number = p.session
           WHERE p.state = 'refused' AND p.target = (SELECT target FROM shipper) ORDER BY s.started_at`,
      )
      .all();
    for (const { id, reason } of refused) say(io, `session ${id} is not shipped: ${reason}`);
    return refused.length;
  } finally {
    store.close();
  }
}
