/**
 * Imports recordings of other tools. Their files hold messages, senders and times, but not the bytes, line ends and HTTP
 * heads that passed. So every message becomes a line, as on stdio, whatever carried it: nothing has to be invented. The label `imported` says where a session comes from.
 */

import { eachElement, type Span } from '../../protocol/json/read.ts';
import { commandLine, parseIsoTime } from '../../protocol/text.ts';
import type { Frame, StdioChannel } from '../../protocol/wire/frame.ts';
import type { Store } from '../../store/file/open.ts';
import { IMPORTED } from '../../store/read/sessions.ts';
import { beginImport, type SessionImport } from '../../store/write/import.ts';
import { reindexSession } from '../../store/write/index.ts';
import { eachLine, lineMembers, refusalAt } from '../text/lines.ts';
import { BadLine, type Members, required } from '../text/members.ts';
import type { ImportOptions } from '../text/read.ts';

export type ForeignStart = {
  at: number;
  name?: string | null;
  command?: readonly string[] | null;
  /** Where there is no command: the URL, or whatever else the file calls the server by. */
  target?: string | null;
  /** Left out where there is no value. */
  labels?: readonly (readonly [key: string, value: string | null])[];
};

/** One message, or a line that is none. */
export type ForeignFrame = {
  channel: StdioChannel;
  at: number;
  payload: Buffer;
  lineEnd?: Frame['lineEnd'];
  truncated?: boolean;
  redacted?: readonly string[];
};

export type ForeignSessions = {
  begin(start: ForeignStart): ForeignSession;
  /** Returns the public ids, in the order in which the sessions began. */
  finish(): string[];
  /** Removes what is stored of them. */
  discard(): void;
};

export type ForeignSession = { add(said: ForeignFrame): void; lose(frames: number): void };

/** `origin` is the tool that wrote the file. */
export function createForeignSessions(store: Store, origin: string, options: ImportOptions): ForeignSessions {
  const sessions: SessionImport[] = [];
  let frames = 0;

  function begin(start: ForeignStart): ForeignSession {
    const session = beginImport(
      store,
      sessionStart(start, origin, options),
      { frames: 0, bytes: 0 },
      options.redaction,
    );
    sessions.push(session);
    return {
      add(said) {
        session.add(frameOf(said));
        frames += 1;
        options.onFrame(frames);
      },
      lose: session.lose,
    };
  }

  return {
    begin,
    finish() {
      // How a session ended stands in none of the files.
      const stored = sessions.map((session) => session.finish(null));
      for (const { number } of stored) reindexSession(store, number);
      return stored.map(({ id }) => id);
    },
    discard() {
      for (const session of sessions) session.discard();
    },
  };
}

function sessionStart(
  { at, name = null, command = null, target = null, labels = [] }: ForeignStart,
  origin: string,
  options: ImportOptions,
) {
  const known = labels.flatMap(([key, value]) => (value === null ? [] : [[key, value] as const]));
  return {
    ...options.importer,
    basis: 'stdio-process' as const,
    transport: 'stdio' as const,
    name: options.name ?? name,
    // Ours comes last, and so stands in place of one that the file has by that name.
    labels: [...known, [IMPORTED, origin] as const],
    target: command === null ? (target ?? '') : commandLine(command),
    ...{ command, at, cwd: null, clientPid: null, clientProgram: null },
  };
}

function frameOf({ channel, at, payload, lineEnd = '\n', truncated = false, redacted }: ForeignFrame): Frame {
  return {
    ...{ channel, at, payload, lineEnd, truncated, size: payload.length },
    part: 'line',
    http: null,
    ...(redacted === undefined ? {} : { redacted }),
  };
}

/** Files of other tools that have one JSON object a line. */

type LineReader = {
  /** Throws `BadLine`. */
  read(line: Members): void;
  /** After the last line. */
  finish(): void;
};

/**
 * Returns the public ids of the new sessions. Throws `TapedeckError` `corrupt` or `newer` for a file that cannot be read;
 * then nothing of it is stored.
 */
export async function readForeignLines(
  store: Store,
  source: AsyncIterable<Buffer>,
  origin: string,
  options: ImportOptions,
  createReader: (sessions: ForeignSessions) => LineReader,
): Promise<string[]> {
  const sessions = createForeignSessions(store, origin, options);
  const reader = createReader(sessions);
  let number = 0;
  try {
    for await (const line of eachLine(source)) {
      number = line.number;
      options.signal.throwIfAborted();
      reader.read(lineMembers(line));
    }
    if (number === 0) throw new BadLine(`expected a recording of ${origin}, got an empty file`);
    reader.finish();
    return sessions.finish();
  } catch (error) {
    sessions.discard();
    throw refusalAt(options.file, Math.max(number, 1), error);
  }
}

/** What the files of several tools have in common: times, and messages as they stand. */

/** A time of RFC 3339, or one without a zone, which is taken for UTC. Null: there is none. Throws `BadLine`. */
export function timeOf(members: Members, name: string): number | null {
  const text = members.text(name);
  if (text === null) return null;
  const at = parseTime(text);
  if (at !== null && at >= 0) return at;
  throw new BadLine(
    `expected a time like 2026-11-20T10:00:00.123Z as \`${name}\`, got ${JSON.stringify(text)}`,
  );
}

const TIME = /^([\d:T-]{19})(?:\.(\d{1,6})\d*)?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))?$/;

function parseTime(text: string): number | null {
  const [, seconds, fraction = '0', sign, hours = '0', minutes = '0'] = TIME.exec(text) ?? [];
  if (seconds === undefined) return null;
  const at = parseIsoTime(`${seconds}.${fraction}Z`);
  const ahead = (Number(hours) * 60 + Number(minutes)) * 60_000_000;
  return at === null ? null : at - (sign === '-' ? -ahead : ahead);
}

/** A value byte for byte. Throws `BadLine` where it is missing. */
export function sliceOf(members: Members, name: string): Buffer {
  const span = members.span(name);
  if (span === undefined) throw new BadLine(`expected \`${name}\` in ${members.where}, got none`);
  return members.bytes.subarray(span.start, span.end);
}

/** A value that is an object, byte for byte. Throws `BadLine`. */
export function messageOf(members: Members, name: string): Buffer {
  // Reading it again throws an error that says what was there instead.
  if (members.span(name)?.type !== 'object') required(members, name, members.object(name));
  return sliceOf(members, name);
}

/** Where the objects of an array stand; none where it is missing or null. Throws `BadLine` for anything else. */
export function objectsIn(members: Members, name: string): Span[] {
  const list = members.span(name);
  if (members.objects(name) === null || list === undefined) return [];
  const found: Span[] = [];
  eachElement(members.bytes, list.start, (element) => found.push(element));
  return found;
}
