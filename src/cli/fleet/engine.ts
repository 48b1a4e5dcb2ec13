import type { Client } from 'pg';
import type { Argv } from 'yargs';
import { TapedeckError } from '../../errors.ts';
import { type Command, type Io, say } from '../io.ts';
import { writeOutput } from '../output.ts';
import { addressOf, ENGINE_OPTIONS, type RawEngine } from './address.ts';

type Options = RawEngine & { action: keyof typeof ACTIONS; print: boolean };

export const engineCommand: Command<Options> = {
  command: 'engine <action>',
  describe: 'Set up the PostgreSQL that many hosts ship their recordings to',
  builder: (args: Argv) =>
    args
      .usage(
        '$0 engine init --to <url>\n$0 engine migrate --to <url>\n\ninit: makes the schema `tapedeck` in a database of PostgreSQL 15 or newer, and the roles tapedeck_ship, tapedeck_read and tapedeck_admin. A schema that is there is left as it is.\nmigrate: brings it up to the version of this tapedeck. Older writers go on.',
      )
      .positional('action', { choices: Object.keys(ACTIONS), describe: 'What to do' })
      .options({
        ...ENGINE_OPTIONS,
        print: { type: 'boolean', default: false, describe: 'With init: print the SQL, and do nothing' },
      })
      .example('$0 engine init --to postgres://127.0.0.1/tapedeck', 'Set it up')
      .example('$0 engine init --print', 'The SQL, for whoever runs it by hand')
      .example('$0 engine migrate --to postgres://127.0.0.1/tapedeck', 'After an update') as never,
  async run(options, io) {
    await ACTIONS[options.action](options, io);
  },
};

const ACTIONS = { init, migrate };

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
