/**
 * JSON Lines of mcp-cassette (github.com/ivermin1123/mcp-cassette, docs/cassette-format-v2.md): a header, then what was
 * said, in milliseconds since the header's `startedAt`. Version 1 is version 2 without some members.
 */
import type { StdioChannel } from '../../protocol/wire/frame.ts';
import type { Store } from '../../store/file/open.ts';
import { timeAfter } from '../text/lines.ts';
import { BadLine, type Members, NewerFormat, required } from '../text/members.ts';
import type { ImportOptions } from '../text/read.ts';
import {
  type ForeignFrame,
  type ForeignSession,
  type ForeignSessions,
  type ForeignStart,
  messageOf,
  readForeignLines,
  timeOf,
} from './sessions.ts';

const ORIGIN = 'mcp-cassette';

const NEWEST = 2;

const DIRECTIONS = { c2s: 'stdin', s2c: 'stdout' } as const satisfies Record<string, StdioChannel>;

export function readCassette(
  store: Store,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<string[]> {
  return readForeignLines(store, source, ORIGIN, options, (sessions) => {
    const unknown = new Map<string, number>();
    let tape: Tape | null = null;
    return {
      read(line) {
        if (line.text('type') === 'header' || tape === null) {
          tape?.finish();
          tape = beginTape(sessions, line);
        } else if (!tape.read(line)) {
          const type = line.text('type') ?? 'none';
          unknown.set(type, (unknown.get(type) ?? 0) + 1);
        }
      },
      finish() {
        tape?.finish();
        for (const [type, count] of unknown)
          options.onNote?.(`lines left out, of the unknown type ${JSON.stringify(type)}: ${count}`);
      },
    };
  });
}

type Tape = {
  /** False for a type that is not known: readers of the format are to skip those. */
  read(line: Members): boolean;
  finish(): void;
};

function beginTape(sessions: ForeignSessions, header: Members): Tape {
  const start = readHeader(header);
  const session = sessions.begin(start);
  const clock = createClock(start.at);
  const isHttp = header.text('transport') === 'http';
  /** A stream is written when it ends, and so behind what was said meanwhile. */
  const streamed: ForeignFrame[] = [];

  function say(said: ForeignFrame, isLive: boolean): void {
    if (isHttp && !isLive) streamed.push(said);
    else putBehind(session, streamed, said);
  }

  return {
    read(line) {
      const type = line.text('type');
      if (type !== 'frame' && type !== 'raw' && type !== 'chunks') return false;
      const isLive = line.text('origin') === 'live';
      const channel = DIRECTIONS[required(line, 'dir', line.oneOf('dir', DIRECTIONS))];
      const moment = (members: Members) => clock.at(members, isLive);
      if (type === 'frame') say({ channel, at: moment(line), payload: messageOf(line, 'frame') }, isLive);
      else if (type === 'raw') say({ channel, at: moment(line), ...rawLine(line) }, isLive);
      else
        for (const chunk of required(line, 'chunks', line.objects('chunks')))
          say({ channel, at: moment(chunk), payload: messageOf(chunk, 'frame') }, isLive);
      return true;
    },
    finish: () => putInOrder(session, streamed),
  };
}

function readHeader(header: Members): ForeignStart {
  const version = header.count('cassetteVersion');
  if (header.text('type') !== 'header' || version === null || version === 0)
    throw new BadLine(
      'expected the header of a cassette, {"type":"header","cassetteVersion":2,…}, got another object',
    );
  if (version > NEWEST)
    throw new NewerFormat(
      `written by a newer mcp-cassette (version ${version}, the newest known is ${NEWEST})`,
    );
  const isRedacted = header.object('redaction')?.flag('applied') === true;
  return {
    at: required(header, 'startedAt', timeOf(header, 'startedAt')),
    command: header.texts('command'),
    target: header.text('url'),
    labels: [
      ['recorder', header.text('recorder')],
      ['transport', header.oneOf('transport', { stdio: true, http: true })],
      ['redacted-by', isRedacted ? ORIGIN : null],
    ],
  };
}

/** What was not JSON-RPC. A carriage return is the first half of its line end. */
function rawLine(line: Members): Pick<ForeignFrame, 'payload' | 'lineEnd'> {
  const data = required(line, 'data', line.text('data'));
  return data.endsWith('\r')
    ? { payload: Buffer.from(data.slice(0, -1)), lineEnd: '\r\n' }
    : { payload: Buffer.from(data) };
}

/**
 * What a replay has added (`origin: "live"`) counts from the start of that replay, which nobody knows: it follows what
 * is there already, at its own distances.
 */
function createClock(startedAt: number) {
  let origin: number | null = null;
  let last = startedAt;
  return {
    at(entry: Members, isLive: boolean): number {
      const t = entry.number('t');
      if (t === null) return last;
      if (isLive && (origin === null || timeAfter(origin, t) < last)) origin = timeAfter(last, -t);
      const at = timeAfter((isLive ? origin : null) ?? startedAt, t);
      last = Math.max(last, at);
      return at;
    },
  };
}

function putBehind(session: ForeignSession, streamed: ForeignFrame[], said: ForeignFrame): void {
  putInOrder(session, streamed);
  session.add(said);
}

function putInOrder(session: ForeignSession, streamed: ForeignFrame[]): void {
  for (const said of streamed.toSorted((a, b) => a.at - b.at)) session.add(said);
  streamed.length = 0;
}
