/** The real server behind a recording, as a test names it. */
import { liveHttp } from '../capture/live-http.ts';
import { liveStdio } from '../capture/live-stdio.ts';
import { TapedeckError } from '../errors.ts';
import type { DeckOptions, UpstreamCommand, UpstreamUrl } from './deck.ts';
import type { LiveTarget } from './playback.ts';

export type Server = LiveTarget & {
  /** How `tapedeck replay` is told of it: options, and the words at the end. */
  options: string[];
  words: string[];
  env: Record<string, string>;
};

/** Throws `TapedeckError` `usage` for what names no server. */
export function readUpstream(upstream: DeckOptions['upstream']): Server | null {
  if (upstream === undefined) return null;
  if (typeof upstream === 'string') return byHttp({ url: upstream });
  if ('url' in upstream) return byHttp(upstream);
  if (typeof upstream.command === 'string' && upstream.command !== '') return byCommand(upstream);
  throw expected(JSON.stringify(upstream));
}

function byCommand({ command, args = [], env = {} }: UpstreamCommand): Server {
  const stderr = (bytes: Buffer) => void process.stderr.write(bytes);
  const words = [command, ...args];
  return {
    connect: liveStdio(command, args, stderr, { ...process.env, ...env }),
    url: null,
    command: words,
    ...{ options: [], words: ['--', ...words], env: { ...env } },
  };
}

function byHttp({ url: text, headers = {} }: UpstreamUrl): Server {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) throw expected(JSON.stringify(text));
  const url = new URL(text);
  const options = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
  return { connect: liveHttp(url, headers), url, command: null, options, words: [url.href], env: {} };
}

function expected(got: string): TapedeckError {
  return new TapedeckError(
    'usage',
    `Expected a URL or { command, args, env } as the option \`upstream\`, got ${got}.`,
  );
}
