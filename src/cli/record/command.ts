/** `record` as yargs sees it: its help, and what is wrong with a command line that the fast path did not accept. */

import type { Argv } from 'yargs';
import { assertLabels } from '../../config/labels.ts';
import { TapedeckError } from '../../errors.ts';
import type { Command, Io } from '../io.ts';
import { FORWARD_OPTIONS, type RawForwardOptions } from './forward-options.ts';
import {
  checkHttpOptions,
  checkProxyOptions,
  firstHttpOption,
  HTTP_OPTIONS,
  isHttpUrl,
  type RawHttpOptions,
} from './http-options.ts';
import {
  checkRecordOptions,
  isAddress,
  type RawRecordOptions,
  RECORD_OPTIONS,
  rereadable,
} from './options.ts';

type Options = RawRecordOptions &
  RawHttpOptions &
  RawForwardOptions & { wrapped?: boolean | undefined; config?: string | undefined };

const WRAPPED_OPTION = {
  type: 'boolean',
  describe: 'Serve the URL entries of clients’ configs that `tapedeck wrap` has wrapped',
} as const;

type Words = { '--'?: string[]; command?: string[] };

export const recordCommand: Command<Options> = {
  command: 'record [command..]',
  describe: 'Stand between clients and a server, and record what passes',
  builder: (args: Argv) =>
    args
      .usage(
        '$0 record [options] -- <command> [args…]\n$0 record [options] <url>\n$0 record [options] --forward <url>…\n$0 record [options] --wrapped [client|file]\n\nStarts a stdio server’s command and relays it, byte for byte; or stands in front of an\nHTTP server (Streamable HTTP or HTTP+SSE), until it is stopped; or as the proxy of clients\nthat keep the server’s own URL; or in front of all HTTP servers that `tapedeck wrap` has wrapped.',
      )
      .options({
        ...yargsOptions({ ...RECORD_OPTIONS, ...HTTP_OPTIONS, ...FORWARD_OPTIONS }),
        wrapped: WRAPPED_OPTION,
      })
      .example(
        '$0 record -- npx -y @modelcontextprotocol/server-everything',
        'In a client’s config, in place of the command',
      )
      .example(
        '$0 record --name staging --label team=search -- ./server',
        'Give the session a name and a label',
      )
      .example("$0 record --redact '$..card' -- ./server", 'Keep the values of a member out of the record')
      .example(
        '$0 record https://api.example.com/mcp --listen 127.0.0.1:8808',
        'Point the client at http://127.0.0.1:8808/mcp',
      )
      .example(
        '$0 record https://api.example.com/mcp --admin 127.0.0.1:9464 --log json',
        'Let its health, metrics and log be read by machines',
      )
      .example(
        '$0 record --forward https://api.example.com/mcp --listen 127.0.0.1:8808',
        'The client keeps that URL, and goes through http://127.0.0.1:8808 as its proxy',
      )
      .example(
        '$0 record https://api.example.com/mcp --sample 5% --keep status~error --max-size 20gb',
        'Keep what failed, and one in twenty of the other sessions',
      )
      .example(
        "$0 record --meta-for 'tool=read_file' --meta-for 'size>1mb' -- ./server",
        'Of such frames keep sizes, times and hashes, and no payload',
      )
      .example('$0 record --wrapped', 'Serve all URL entries that `tapedeck wrap` has wrapped')
      .epilog(
        'With a command: exits with the server’s exit code, or dies by its signal; 127 if the command cannot be found.\nWith a URL, --forward or --wrapped: SIGINT or SIGTERM stops it with exit code 0; a second one cuts open streams.',
      ) as Argv<Options>,
  async run(argv, io) {
    const { '--': afterDashes = [], command: words = [] } = argv as Options & Words;
    if (argv.wrapped) {
      await runWrapped(io, argv, words, afterDashes);
      return;
    }
    assertLabels(io.env);
    if (argv.forward !== undefined) {
      await runForward(io, argv, [...argv.forward, ...words], afterDashes);
      return;
    }
    if (argv.tunnel !== undefined)
      throw new TapedeckError('usage', '`--tunnel` goes with `--forward`. See: tapedeck record --help');
    const [url, ...more] = words;
    if (url !== undefined && isHttpUrl(url)) {
      if (more.length > 0 || afterDashes.length > 0) throw oneOfBoth(url);
      const { recordHttp } = await import('./http.ts');
      await recordHttp(io, checkRecordOptions(argv), checkHttpOptions(io, url, argv), rereadable(io));
      return;
    }
    const [command, ...args] = afterDashes;
    if (command === undefined || words.length > 0) throw missingDashes(words);
    const stray = firstHttpOption(argv);
    if (stray !== undefined)
      throw new TapedeckError('usage', `\`${stray}\` goes with a URL, not with a command.`);
    const { record } = await import('./stdio.ts');
    await record({ options: checkRecordOptions(argv), command, args });
  },
};

/** They are about a URL of tapedeck's own, which there is none, and edits, which there are none. */
const NOT_WITH_FORWARD = ['no-edit', 'tls-cert', 'tls-key', 'allow-host', 'allow-origin'] as const;

async function runForward(io: Io, argv: Options, urls: string[], afterDashes: string[]): Promise<void> {
  if (afterDashes.length > 0)
    throw new TapedeckError(
      'usage',
      `\`record --forward\` starts no client. Try: tapedeck run --forward ${urls[0]} -- ${afterDashes.join(' ')}`,
    );
  const stray = NOT_WITH_FORWARD.find((name) => argv[name] !== undefined);
  if (stray !== undefined)
    throw new TapedeckError(
      'usage',
      `\`--${stray}\` does not go with \`--forward\`. See: tapedeck record --help`,
    );
  const { recordForward } = await import('./forward.ts');
  await recordForward(io, checkRecordOptions(argv), urls, argv, rereadable(io));
}

/** Their addresses stand in the clients' configs, and their names too. */
const NOT_WITH_WRAPPED = ['listen', 'tls-cert', 'tls-key', 'name', 'forward'] as const;

async function runWrapped(io: Io, argv: Options, words: string[], afterDashes: string[]): Promise<void> {
  const stray = NOT_WITH_WRAPPED.find((name) => argv[name] !== undefined);
  if (stray !== undefined || afterDashes.length > 0) {
    const what = stray === undefined ? 'A command' : `\`--${stray}\``;
    throw new TapedeckError('usage', `${what} does not go with \`--wrapped\`. See: tapedeck record --help`);
  }
  if ((argv.fault ?? []).length > 0)
    throw new TapedeckError(
      'usage',
      '`--fault` does not go with `--wrapped`: what clients use every day is left alone.',
    );
  const { recordWrapped } = await import('./http.ts');
  await recordWrapped(io, words, checkRecordOptions(argv), checkProxyOptions(argv), rereadable(io));
}

function oneOfBoth(url: string): TapedeckError {
  return new TapedeckError(
    'usage',
    `Expected either a URL or a command after \`--\`, got more than \`${url}\`. See: tapedeck record --help`,
  );
}

function missingDashes(words: string[]): TapedeckError {
  if (words.length === 0) {
    return new TapedeckError(
      'usage',
      'Expected the server’s command after `--`, or its URL. Examples: tapedeck record -- npx -y my-mcp-server; tapedeck record https://api.example.com/mcp',
    );
  }
  const command = words.join(' ');
  if (words.length === 1 && isAddress(command)) {
    return new TapedeckError(
      'usage',
      `Expected a URL with its scheme, got \`${command}\`. Try: tapedeck record http://${command}`,
    );
  }
  if (words.length === 1 && command.includes('://')) {
    return new TapedeckError(
      'usage',
      `Expected a URL with http:// or https://, or the server’s command after \`--\`, got \`${command}\`.`,
    );
  }
  return new TapedeckError(
    'usage',
    `Expected \`--\` before the server’s command, as it is not clear where that begins, got \`${command}\`. Try: tapedeck record -- ${command}`,
  );
}

/** Given twice, the last one counts, as for every other option. */
function lastOf(value: unknown): unknown {
  return Array.isArray(value) ? value.at(-1) : value;
}

type OptionRow = { type: 'string' | 'boolean'; describe: string; multiple?: true };

/** The rows of a table of options as yargs takes them. */
export function yargsOptions(table: Readonly<Record<string, OptionRow>>) {
  return Object.fromEntries(
    Object.entries(table).map(([name, option]) => [
      name,
      {
        type: option.type,
        array: 'multiple' in option,
        describe: option.describe,
        requiresArg: option.type === 'string',
        ...('multiple' in option ? {} : { coerce: lastOf }),
      },
    ]),
  );
}
