/** The live server that a command talks to: a command line behind `--`, or a URL. */

import { TapedeckError } from '../../errors.ts';
import type { LiveTarget } from '../../sources/playback.ts';
import { liveHttp } from '../../talk/http.ts';
import { liveStdio } from '../../talk/stdio.ts';
import { type Io, pathOf } from '../io.ts';
import { isHttpUrl } from '../record/http-options.ts';

type LiveServerOptions = { url: string | undefined; header: string[] };

export const HEADER_OPTION = {
  type: 'string',
  array: true,
  default: [] as string[],
  requiresArg: true,
  describe: 'With a URL: a header for every request, as "Name: value"; may be repeated',
} as const;

/** What stands behind `--`. */
export function commandOf(argv: object): string[] {
  return (argv as { '--'?: string[] })['--'] ?? [];
}

/** `example` is the beginning of a command line that would be right. Throws `TapedeckError` `usage`. */
export function readLiveServer(
  io: Pick<Io, 'stderr' | 'env' | 'cwd'>,
  argv: LiveServerOptions,
  example: string,
): LiveTarget {
  const { url, header } = argv;
  const [command, ...args] = commandOf(argv);
  if (url !== undefined && command === undefined) {
    if (!isHttpUrl(url) || !URL.canParse(url)) throw expectedServer(`, got \`${url}\``, example);
    return { connect: liveHttp(new URL(url), readHeaders(header)), url: new URL(url), command: null };
  }
  if (command === undefined) throw expectedServer('', example);
  if (url !== undefined) throw expectedServer(', got both', example);
  if (header.length > 0) throw new TapedeckError('usage', '`--header` goes with a URL, not with a command.');
  const onStderr = (bytes: Buffer) => void io.stderr.write(bytes);
  const connect = liveStdio(command, args, onStderr, io.env, pathOf(io, '.'));
  return { connect, url: null, command: [command, ...args] };
}

function expectedServer(got: string, example: string): TapedeckError {
  return new TapedeckError(
    'usage',
    `Expected the server’s URL, or its command after \`--\`${got}. Examples: ${example} -- ./server; ${example} https://api.example.com/mcp`,
  );
}

function readHeaders(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):\s*([\x20-\x7e]*)$/.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw new TapedeckError('usage', 'Expected "Name: value" after `--header`.');
      return [name, value];
    }),
  );
}

/** Throws `TapedeckError` `usage`. */
export function readTimeout(seconds: number): number {
  if (seconds > 0 && seconds < 1_000_000) return seconds * 1000;
  throw new TapedeckError('usage', 'Expected a number of seconds above 0 after `--timeout`.');
}
