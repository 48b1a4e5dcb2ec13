import { TapedeckError } from '../../errors.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import type { FenceOptions } from '../../mcp/read/scope.ts';
import type { Listen } from '../../net/listen.ts';
import { openIndexed } from '../../store/keep/catch-up.ts';
import { checkedOrigin } from '../../web/access.ts';
import { checkedToken, newSecret } from '../../web/token.ts';
import { type Command, type Io, onStopSignals, say } from '../io.ts';
import { cannotListen, readListen, warnBeyondLoopback } from '../listening.ts';
import { FILTER_OPTION, READ_OPTIONS, readFilter } from '../options.ts';
import { notices, QUICK_FRAMES, writeOutput } from '../output.ts';
import { fileToLookAt } from '../store.ts';

type Options = {
  db: string | undefined;
  session: string[];
  filter: string | undefined;
  since: string | undefined;
  reveal: boolean;
  'no-index': boolean;
  listen: string | undefined;
  token: string | undefined;
  'allow-host': string[];
  'allow-origin': string[];
};

const LIST = { type: 'string', array: true, default: [] as string[], requiresArg: true } as const;

export const mcpCommand: Command<Options> = {
  command: 'mcp',
  describe: 'Let an agent look into the recordings: an MCP server over them, which changes nothing',
  builder: (args) =>
    args
      .usage(
        '$0 mcp\n\nServes the recordings to an MCP client over stdin and stdout, or by HTTP with --listen.\nSecrets are redacted whatever the recordings hold; nothing is written, sent or run.\nMore: $0 help agents',
      )
      .options({
        ...READ_OPTIONS,
        session: { ...LIST, describe: 'Show this session alone: id, name or latest; may be repeated' },
        filter: FILTER_OPTION,
        since: {
          type: 'string',
          describe: 'Show only what passed since then, such as 2h, today or 2026-11-20',
          requiresArg: true,
        },
        reveal: { type: 'boolean', default: false, describe: 'Show secrets that are in the recordings' },
        'no-index': {
          type: 'boolean',
          default: false,
          describe: 'Keep no index for searching beside the store',
        },
        listen: {
          type: 'string',
          describe: 'Serve by HTTP, at this host:port, in place of stdin and stdout',
          requiresArg: true,
        },
        token: {
          type: 'string',
          describe: 'What clients send by HTTP (default: TAPEDECK_MCP_TOKEN, else a new one at each start)',
          requiresArg: true,
        },
        'allow-host': { ...LIST, describe: 'A Host header to accept, besides loopback; may be repeated' },
        'allow-origin': { ...LIST, describe: 'An Origin to accept, besides loopback; may be repeated' },
      })
      .check(({ listen, token }) => {
        if (listen !== undefined || token === undefined) return true;
        throw new TapedeckError('usage', '`--token` goes with `--listen`. Example: --listen 127.0.0.1:8810');
      })
      .example('$0 mcp --since 1d', 'What passed in the last day, for the client that starts this')
      .example('$0 mcp --session staging', 'One session and nothing else')
      .example('$0 mcp --listen 127.0.0.1:8810', 'By HTTP, with a token that it prints'),
  async run(options, io) {
    const fence = await fenceOf(options);
    const listening = options.listen === undefined ? null : listeningOf(options, options.listen, io);
    const { file, close: remove } = await fileToLookAt(
      io,
      options.db,
      options.session,
      await reachOf(options),
    );
    await bringUpToDate(io, file);
    let ignoreSignals = () => {};
    const stopped = new Promise<void>((resolve) => {
      ignoreSignals = onStopSignals(io, () => resolve());
    });
    const { createReader } = await import('../../mcp/ask.ts');
    const reader = createReader(file, fence);
    try {
      if (fence.reveal) say(io, 'WARNING: --reveal shows secrets to the client and to whatever model it has');
      if (listening === null) {
        const { serveOverStdio } = await import('../../mcp/stdio.ts');
        await serveOverStdio(reader, io, stopped);
        return;
      }
      const { serveOverHttp } = await import('../../mcp/http.ts');
      const server = await serveOverHttp(reader, listening).catch((error) => {
        throw cannotListen(listening.listen, error);
      });
      warnBeyondLoopback(io, listening.listen, 'ask it, with the token');
      await writeOutput(io, [
        `The recordings are served at ${server.url} (Ctrl+C ends it)\n`,
        `Clients send the header  Authorization: Bearer ${listening.token}\n`,
      ]);
      await stopped;
      await server.close();
    } finally {
      ignoreSignals();
      await reader.close();
      remove();
    }
  },
};

/** Throws `TapedeckError` `usage` for a filter or a time that cannot be read. */
async function fenceOf({
  session,
  filter,
  since,
  reveal,
  'no-index': noIndex,
}: Options): Promise<FenceOptions> {
  const fence = { sessions: session, filter: filter ?? null, since: since ?? null, now: Date.now() * 1000 };
  await readFilter(filter);
  if (since !== undefined) await readFilter(`since="${since}"`);
  return { ...fence, reveal, keepsIndex: !noIndex };
}

/** What may be seen, as one filter; undefined: everything. */
async function reachOf({ filter, since }: Options): Promise<Filter | undefined> {
  const parts = [
    await readFilter(filter),
    since === undefined ? undefined : await readFilter(`since="${since}"`),
  ];
  const given = parts.filter((part) => part !== undefined);
  return given.length === 0 ? undefined : { type: 'and', parts: given };
}

function listeningOf(options: Options, listen: string, { env }: Io) {
  const fixed = env['TAPEDECK_MCP_TOKEN'];
  const token =
    options.token !== undefined
      ? checkedToken(options.token, '`--token`')
      : fixed
        ? checkedToken(fixed, 'TAPEDECK_MCP_TOKEN')
        : newSecret();
  return {
    listen: readListen(listen) satisfies Listen,
    token,
    allowHosts: options['allow-host'],
    allowOrigins: options['allow-origin'].map(checkedOrigin),
  };
}

/** As every command does that reads the store. One that is not there yet is looked for with each question. */
async function bringUpToDate(io: Io, file: string): Promise<void> {
  try {
    (await openIndexed(file, notices(io), QUICK_FRAMES)).close();
  } catch (error) {
    if (!(error instanceof TapedeckError) || error.code !== 'not-found') throw error;
    say(io, `there is no store at ${file} yet`);
  }
}
