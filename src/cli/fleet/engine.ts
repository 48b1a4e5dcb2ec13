import type { Client } from 'pg';
import type { Argv } from 'yargs';
import { TapedeckError } from '../../errors.ts';
import { formatCount } from '../../inspect/view/text.ts';
import { type Command, type Io, say } from '../io.ts';
import { FILTER_OPTION, JSON_OPTION, readFilter } from '../options.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { addressOf, ENGINE_OPTIONS, type RawEngine } from './address.ts';

type Options = RawEngine & {
  action: keyof typeof ACTIONS;
  print: boolean;
  'older-than': string | undefined;
  'keep-errors': boolean;
  keep: string | undefined;
  'text-index': boolean;
  yes: boolean;
  json: boolean;
};

const USAGE = `$0 engine init|migrate|maintain|drop --to <url>

init: makes the schema \`tapedeck\` in a database of PostgreSQL 15 or newer, and the roles tapedeck_ship, tapedeck_read and tapedeck_admin. A schema that is there is left as it is.
migrate: brings it up to the version of this tapedeck. Older writers go on.
maintain: makes partitions ahead of time, and deletes what is old. For a daily job: done twice, it changes nothing.
drop: removes the schema with all recordings in it.`;

export const engineCommand: Command<Options> = {
  command: 'engine <action>',
  describe: 'Set up the PostgreSQL that many hosts ship their recordings to',
  builder: (args: Argv) =>
    args
      .usage(USAGE)
      .positional('action', { choices: Object.keys(ACTIONS), describe: 'What to do' })
      .options({
        ...ENGINE_OPTIONS,
        print: { type: 'boolean', default: false, describe: 'With init: print the SQL, and do nothing' },
        'older-than': {
          type: 'string',
          describe: 'With maintain: delete weeks that were over so long ago: 90d, 26w',
          requiresArg: true,
        },
        'keep-errors': {
          type: 'boolean',
          default: false,
          describe: 'With --older-than: keep sessions with errors',
        },
        keep: {
          ...FILTER_OPTION,
          describe:
            "With --older-than: keep sessions that this filter may hold for, such as 'label~incident'",
        },
        'text-index': {
          type: 'boolean',
          default: false,
          describe: 'With maintain: index the texts of weeks that are over, for quicker searches',
        },
        yes: { type: 'boolean', default: false, describe: 'With drop: do not ask' },
        json: JSON_OPTION,
      })
      .example('$0 engine init --to postgres://127.0.0.1/tapedeck', 'Set it up')
      .example('$0 engine init --print', 'The SQL, for whoever runs it by hand')
      .example('$0 engine migrate --to postgres://127.0.0.1/tapedeck', 'After an update')
      .example(
        '$0 engine maintain --to postgres://127.0.0.1/tapedeck --older-than 90d --keep-errors',
        'For a daily job',
      ) as never,
  async run(options, io) {
    await ACTIONS[options.action](options, io);
  },
};

const ACTIONS = { init, migrate, maintain, drop };

async function init(options: Options, io: Io): Promise<void> {
  if (options.print) {
    const { initSql } = await import('../../engine/schema.ts');
    await writeOutput(io, [initSql()]);
    return;
  }
  await withClient(options, io, async (client, engine) => {
    const { initEngine } = await import('../../engine/install.ts');
    const isNew = await initEngine(client).catch((error) => {
      throw rightsHint(error);
    });
    say(io, isNew ? `${engine} is set up` : `${engine} was set up before; nothing is changed`);
  });
}

async function migrate(options: Options, io: Io): Promise<void> {
  await withClient(options, io, async (client, engine) => {
    const { migrateEngine } = await import('../../engine/install.ts');
    const { SCHEMA_VERSION } = await import('../../engine/schema.ts');
    const before = await migrateEngine(client);
    const isSame = before === SCHEMA_VERSION;
    say(
      io,
      `${engine} ${isSame ? 'is' : `was at version ${before}, and is now`} at version ${SCHEMA_VERSION}`,
    );
  });
}

async function maintain(options: Options, io: Io): Promise<void> {
  const { 'older-than': age, 'keep-errors': keepErrors, keep, json } = options;
  const slip = keepErrors ? '--keep-errors' : keep === undefined ? null : '--keep';
  if (slip !== null && age === undefined)
    throw new TapedeckError(
      'usage',
      `\`${slip}\` goes with \`--older-than\`. Example: --older-than 90d --keep-errors`,
    );
  const filter = await readFilter(keep);
  const { readAge } = await import('../../config/sizes.ts');
  const olderThanMs = age === undefined ? null : readAge('--older-than', age);
  await withClient(options, io, async (client) => {
    const { maintainEngine, WITH_ERRORS } = await import('../../engine/maintain.ts');
    const { lineOf } = await import('./maintained.ts');
    const { candidatesFor } = await import('../../engine/read/candidates.ts');
    // Of what a filter says only a candidate is known here: so it keeps some more, and never less.
    const tests = [
      ...(keepErrors ? [WITH_ERRORS] : []),
      ...(filter === undefined ? [] : [candidatesFor(filter)]),
    ];
    const kept =
      tests.length === 0
        ? null
        : {
            sql: tests.map(({ sql }) => `(${sql})`).join(' OR '),
            values: tests.flatMap(({ values }) => values),
          };
    await maintainEngine(client, { olderThanMs, kept, hasTextIndex: options['text-index'] }, (step) =>
      writeOutput(io, withLineEnds([json ? JSON.stringify(step) : lineOf(step)])),
    );
  });
}

async function drop(options: Options, io: Io): Promise<void> {
  await withClient(options, io, async (client, engine) => {
    const { dropEngine, readEngine } = await import('../../engine/install.ts');
    await readEngine(client);
    const { rows } = await client.query<{ count: number }>('SELECT count(*) FROM tapedeck.session');
    const what = `${formatCount(rows[0]?.count ?? 0, 'session')} of ${engine}`;
    if (!options.yes && !(await isConfirmed(io, what))) {
      say(io, 'nothing is changed');
      return;
    }
    await dropEngine(client);
    say(io, `deleted ${what}, with the schema. The roles tapedeck_* are of the whole server, and stay`);
  });
}

async function isConfirmed(io: Io, what: string): Promise<boolean> {
  if (io.stdin.isTTY !== true)
    throw new TapedeckError(
      'usage',
      `This deletes ${what} for good. Expected --yes, because nobody can be asked.`,
    );
  const { isYes } = await import('../ask.ts');
  return isYes(io, `Delete ${what} for good? [y/N] `);
}

/** Does something with the engine that the command line names. `engine`: its address for people. */
async function withClient(
  options: Options,
  io: Io,
  work: (client: Client, engine: string) => Promise<void>,
): Promise<void> {
  const address = await addressOf(io, options);
  const { connectEngine } = await import('../../engine/connect.ts');
  const { engineError } = await import('../../engine/trouble.ts');
  const client = await connectEngine(address, 'tapedeck engine');
  try {
    await work(client, address.text);
  } catch (error) {
    throw engineError(error, address.text);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Where roles or schemas may not be made, somebody else has to. */
function rightsHint(error: unknown): unknown {
  const { code, message } = error as { code?: string; message?: string };
  if (code !== '42501') return error;
  return new TapedeckError(
    'refused',
    `Setting an engine up takes the rights to make roles and a schema: ${message}. Whoever has them can run the SQL of: tapedeck engine init --print`,
    { cause: error },
  );
}
