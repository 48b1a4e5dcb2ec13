/**
 * Recordings of agent-vcr (github.com/Jarvis2021/agent-vcr, `VCRRecording` in core/format): one JSON document that has
 * each request with its answer, the time of the answer, and the notifications in between.
 */

import { withoutMembers, withoutSpace } from '../../protocol/json/edit.ts';
import { skipSpace, skipValue, sourceText } from '../../protocol/json/read.ts';
import { byteOrderMarkLength, commandLine } from '../../protocol/text.ts';
import type { Store } from '../../store/file/open.ts';
import { checkUtf8, LONGEST, refusalAt, timeAfter } from '../text/lines.ts';
import { BadLine, type Members, NewerFormat, readObject, required } from '../text/members.ts';
import type { ImportOptions } from '../text/read.ts';
import {
  createForeignSessions,
  type ForeignFrame,
  type ForeignStart,
  messageOf,
  objectsIn,
  timeOf,
} from './sessions.ts';

const ORIGIN = 'agent-vcr';

/** The first part of `format_version`; the rest of it does not change what is there. */
const NEWEST = 1;

const LF = 0x0a;

/**
 * Returns the public id of the new session. Throws `TapedeckError` `corrupt` or `newer` for a file that cannot be read;
 * then nothing of it is stored.
 */
export async function readVcr(
  store: Store,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<string[]> {
  const sessions = createForeignSessions(store, ORIGIN, options);
  let document: Buffer = Buffer.alloc(0);
  let place = 0;
  const onPlace = (at: number) => {
    place = at;
  };
  try {
    document = await wholeOf(source, options.signal);
    const recording = recordingOf(document, onPlace);
    checkVersion(recording);
    const start = startOf(required(recording, 'metadata', recording.object('metadata')));
    const session = sessions.begin(start);
    for (const said of saidIn(recording, start.at, onPlace)) session.add(said);
    return sessions.finish();
  } catch (error) {
    sessions.discard();
    throw refusalAt(options.file, lineAt(document, place), error);
  }
}

async function wholeOf(source: AsyncIterable<Buffer>, signal: AbortSignal): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of source) {
    signal.throwIfAborted();
    pieces.push(piece);
    length += piece.length;
    if (length > LONGEST) throw new BadLine(`expected a file of at most ${LONGEST} bytes, got a longer one`);
  }
  const bytes = Buffer.concat(pieces, length);
  return bytes.subarray(byteOrderMarkLength(bytes));
}

function recordingOf(document: Buffer, onPlace: (at: number) => void): Members {
  checkUtf8(document);
  const start = skipSpace(document, 0);
  if (start === document.length) throw new BadLine(`expected a recording of ${ORIGIN}, got an empty file`);
  if (document[start] !== 0x7b)
    throw new BadLine(`expected a recording of ${ORIGIN}, a JSON object, got something else`);
  const end = skipValue(document, start);
  if (end < 0) {
    onPlace(~end);
    const what = ~end >= document.length ? 'a file that breaks off' : 'something else';
    throw new BadLine(`expected JSON, got ${what} in column ${columnOf(document, ~end)}`);
  }
  const rest = skipSpace(document, end);
  if (rest < document.length) {
    onPlace(rest);
    throw new BadLine('expected the end of the file after the recording, got more');
  }
  return readObject(document, start, 'the file');
}

function checkVersion(recording: Members): void {
  const version = required(recording, 'format_version', recording.text('format_version'));
  const [, major] = /^(\d{1,6})(?:\.\d+)*$/.exec(version) ?? [];
  if (Number(major) > NEWEST)
    throw new NewerFormat(`written by a newer ${ORIGIN} (format ${version}, the newest known is ${NEWEST})`);
  if (Number(major) !== NEWEST)
    throw new BadLine(`expected format 1.0.0 as \`format_version\`, got ${JSON.stringify(version)}`);
}

function startOf(metadata: Members): ForeignStart & { at: number } {
  const tags = metadata.object('tags');
  return {
    at: required(metadata, 'recorded_at', timeOf(metadata, 'recorded_at')),
    ...commandOf(metadata.text('server_command'), metadata.texts('server_args') ?? []),
    labels: [
      ...(tags === null ? [] : tags.names().map((key) => [key, tagText(tags, key)] as const)),
      ['transport', metadata.oneOf('transport', { stdio: true, sse: true })],
      ...['session_id', 'endpoint_id', 'agent_id'].map((key) => [key, metadata.text(key)] as const),
    ],
  };
}

/** The recorder in TypeScript takes any value for a tag. */
function tagText(tags: Members, key: string): string | null {
  const tag = tags.span(key);
  if (tag === undefined || tag.type === 'null') return null;
  return tag.type === 'string' ? tags.text(key) : sourceText(tags.bytes, tag);
}

/** The one recorder writes a program and its arguments, the other the line that it was given: nobody can tell how that splits. */
function commandOf(
  program: string | null,
  args: readonly string[],
): Pick<ForeignStart, 'command' | 'target'> {
  if (program === null) return {};
  if (!/\s/.test(program)) return { command: [program, ...args] };
  return { target: [program, ...(args.length === 0 ? [] : [commandLine(args)])].join(' ') };
}

/** All messages in order of time. `onPlace` is called with the offset of the byte that an error would be about. */
function saidIn(recording: Members, startedAt: number, onPlace: (at: number) => void): ForeignFrame[] {
  const session = required(recording, 'session', recording.object('session'));
  onPlace(recording.span('session')?.start ?? 0);
  const all = createInteractions(startedAt);
  all.addHandshake(session);
  for (const { start } of objectsIn(session, 'interactions')) {
    onPlace(start);
    all.add(readObject(session.bytes, start, 'the interaction'));
  }
  return all.inOrder();
}

function lineAt(document: Buffer, at: number): number {
  let line = 1;
  for (let lf = document.indexOf(LF); lf !== -1 && lf < at; lf = document.indexOf(LF, lf + 1)) line += 1;
  return line;
}

function columnOf(document: Buffer, at: number): number {
  return at - document.lastIndexOf(LF, Math.max(at - 1, 0));
}

/** The requests of an agent-vcr recording, with their answers and notifications, as one conversation. */

type Interactions = {
  addHandshake(session: Members): void;
  add(interaction: Members): void;
  /** The handshake, and then everything in order of time. */
  inOrder(): ForeignFrame[];
};

/** `startedAt` is the time of what has none. */
function createInteractions(startedAt: number): Interactions {
  const handshake: ForeignFrame[] = [];
  const all: ForeignFrame[] = [];

  return {
    addHandshake(session) {
      if (isThere(session, 'initialize_request'))
        handshake.push(requestOf(session, 'initialize_request', startedAt));
      if (isThere(session, 'initialize_response'))
        handshake.push(answerOf(session, 'initialize_response', startedAt));
    },
    /**
     * The client has asked: what servers ask is not recorded, and `direction` tells the two recorders of the format apart
     * rather than who it was. `timestamp` is when the answer was there, `latency_ms` since when it was asked for.
     */
    add(interaction) {
      const at = required(interaction, 'timestamp', timeOf(interaction, 'timestamp'));
      all.push(requestOf(interaction, 'request', timeAfter(at, -latencyOf(interaction))));
      // Those that came since the answer before; their own times are not kept.
      for (const { start, end } of objectsIn(interaction, 'notifications')) {
        const payload = messageFrom(interaction.bytes.subarray(start, end), ['params']);
        all.push({ channel: 'stdout', at, payload });
      }
      if (isThere(interaction, 'response')) all.push(answerOf(interaction, 'response', at));
    },
    inOrder: () => [...handshake, ...all.toSorted((a, b) => a.at - b.at)],
  };
}

function isThere(members: Members, name: string): boolean {
  return members.has(name) && members.span(name)?.type !== 'null';
}

function requestOf(members: Members, name: string, at: number): ForeignFrame {
  return { channel: 'stdin', at, payload: messageFrom(messageOf(members, name), ['params']) };
}

function answerOf(members: Members, name: string, at: number): ForeignFrame {
  const json = messageOf(members, name);
  // One of them is what was answered, be it null.
  const isError = members.object(name)?.span('error')?.type === 'object';
  return { channel: 'stdout', at, payload: messageFrom(json, [isError ? 'result' : 'error']) };
}

/**
 * The recorder in Python writes members that were not there as null, which no peer would take for the same. The document
 * is indented, and a line cannot be.
 */
function messageFrom(json: Buffer, nullable: readonly string[]): Buffer {
  const members = readObject(json, 0, 'the message');
  const nulls = nullable.filter((name) => members.span(name)?.type === 'null');
  return withoutSpace(nulls.length === 0 ? json : withoutMembers(json, nulls));
}

function latencyOf(interaction: Members): number {
  const ms = interaction.number('latency_ms') ?? 0;
  if (ms >= 0) return ms;
  throw new BadLine(`expected a number from 0 on as \`latency_ms\` in ${interaction.where}, got ${ms}`);
}
