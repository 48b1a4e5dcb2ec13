import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Listen } from '../../net/listen.ts';
import { openIndexed } from '../../store/keep/catch-up.ts';
import { findSession } from '../../store/read/sessions.ts';
import { checkedOrigin } from '../../web/access.ts';
import { startViewer, type Viewer, type ViewerOptions } from '../../web/server.ts';
import { checkedToken, newSecret } from '../../web/token.ts';
import { type Command, type Io, isForPeople, onStopSignals, say } from '../io.ts';
import { cannotListen, readListen, warnBeyondLoopback } from '../listening.ts';
import { FILTER_OPTION, READ_OPTIONS, readFilter } from '../options.ts';
import { notices, QUICK_FRAMES, writeOutput } from '../output.ts';
import { fileToLookAt } from '../store.ts';
import { openBrowser } from './browser.ts';

type Options = {
  session: string | undefined;
  db: string | undefined;
  filter: string | undefined;
  listen: string | undefined;
  'no-open': boolean;
  token: string | undefined;
  'allow-host': string[];
  'allow-origin': string[];
  'no-index': boolean;
};

const HOST = '127.0.0.1';

const PORT = 8809;

/** So many ports are tried where the first one is taken, then any. */
const PORTS_TRIED = 20;

/** Beside the program, as it was built. */
const PAGES = fileURLToPath(new URL('./web', import.meta.url));

const SERVER_OPTIONS = {
  listen: {
    type: 'string',
    describe: `Where to listen (default: ${HOST}:${PORT}, or the next free port)`,
    requiresArg: true,
  },
  'no-open': { type: 'boolean', default: false, describe: 'Open no browser' },
  token: {
    type: 'string',
    describe: 'The token in the link (default: TAPEDECK_UI_TOKEN, else a new one at each start)',
    requiresArg: true,
  },
  'allow-host': {
    type: 'string',
    array: true,
    default: [] as string[],
    describe: 'A Host header to accept, besides loopback; may be repeated',
    requiresArg: true,
  },
  'allow-origin': {
    type: 'string',
    array: true,
    default: [] as string[],
    describe: 'An Origin to accept, besides the own one; may be repeated',
    requiresArg: true,
  },
  'no-index': {
    type: 'boolean',
    default: false,
    describe: 'Keep no index for searching beside the store',
  },
} as const;

export const uiCommand: Command<Options> = {
  command: 'ui [session]',
  aliases: ['view'],
  describe: 'Show the recorded sessions in a browser',
  builder: (args) =>
    args
      .positional('session', {
        type: 'string',
        describe: 'Open this one: an id, the beginning of one, a name, or latest',
      })
      .options({ ...READ_OPTIONS, filter: FILTER_OPTION, ...SERVER_OPTIONS })
      .example('$0 ui --listen 127.0.0.1:8809', 'All sessions, and what is being recorded')
      .example(
        '$0 ui latest --no-open --listen 127.0.0.1:0',
        'The link to the newest session, on any free port',
      )
      .example("$0 ui --filter 'status~error' --listen 8809", 'Sessions in which something failed'),
  async run(options, io) {
    const filter = await readFilter(options.filter);
    const token = tokenOf(options, io);
    const allowOrigins = options['allow-origin'].map(checkedOrigin);
    const listen = listensOf(options.listen);
    const references = options.session === undefined ? [] : [options.session];
    const { file, close } = await fileToLookAt(io, options.db, references, filter);
    try {
      await view(io, file, options, { token, allowOrigins, listen });
    } finally {
      close();
    }
  },
};

type Viewing = Pick<ViewerOptions, 'token' | 'allowOrigins' | 'listen'>;

async function view(io: Io, file: string, options: Options, how: Viewing): Promise<void> {
  const path = pathTo(await prepareStore(io, file, options.session), options.filter);
  const [listen] = how.listen;
  const viewer = await startViewer({
    ...{ ...how, file, pages: PAGES },
    allowHosts: options['allow-host'],
    keepsIndex: !options['no-index'],
  }).catch((error) => {
    throw cannotListen(listen, error);
  });
  // Before anybody knows that it runs: a signal may come at once.
  const signal = stopped(io);
  warnBeyondLoopback(io, listen, 'ask it for the page, and for all else with the token');
  await writeOutput(io, [`The viewer is at ${viewer.link(path)} (Ctrl+C ends it)\n`]);
  if (!options['no-open'] && isForPeople(io)) await Promise.race([open(io, viewer, path), signal]);
  await signal;
  await viewer.stop();
}

function tokenOf({ token }: Options, { env }: Io): string {
  if (token !== undefined) return checkedToken(token, '`--token`');
  const fixed = env['TAPEDECK_UI_TOKEN'];
  return fixed ? checkedToken(fixed, 'TAPEDECK_UI_TOKEN') : newSecret();
}

function listensOf(asked: string | undefined): readonly [Listen, ...Listen[]] {
  if (asked !== undefined) return [readListen(asked)];
  const next = Array.from({ length: PORTS_TRIED }, (_, i) => ({ host: HOST, port: PORT + 1 + i }));
  return [{ host: HOST, port: PORT }, ...next, { host: HOST, port: 0 }];
}

/**
 * Does to the store what every command does that reads it: brings an older one up to date, takes in what recorders left, completes
 * their indexes. From then on the viewer only reads. Returns the id of the session that is asked for. A store that is not there yet
 * is waited for by the page.
 */
async function prepareStore(
  io: Io,
  file: string,
  reference: string | undefined,
): Promise<string | undefined> {
  if (reference === undefined && !existsSync(file)) {
    say(io, `there is no store at ${file} yet; the page shows it once there is`);
    return undefined;
  }
  const store = await openIndexed(file, notices(io), QUICK_FRAMES);
  try {
    return reference === undefined ? undefined : findSession(store, reference).id;
  } finally {
    store.close();
  }
}

function pathTo(session: string | undefined, filter: string | undefined): string {
  const query = filter === undefined ? '' : `?${new URLSearchParams({ filter })}`;
  return `${session === undefined ? '/' : `/s/${session}`}${query}`;
}

async function open(io: Io, viewer: Viewer, path: string): Promise<void> {
  const problem = await openBrowser(viewer.linkOnce(path), io.env);
  if (problem !== null) say(io, `no browser could be opened (${problem}): open the link yourself`);
}

function stopped(io: Io): Promise<void> {
  return new Promise((resolve) => {
    const ignoreSignals = onStopSignals(io, () => {
      ignoreSignals();
      resolve();
    });
  });
}
