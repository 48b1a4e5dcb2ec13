/**
 * Imports a text recording. An error names the file and the line, and leaves nothing behind.
 */
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import type { SessionStart } from '../../store/file/columns.ts';
import type { Store } from '../../store/file/open.ts';
import { beginImport, type SessionImport } from '../../store/write/import.ts';
import { reindexSession } from '../../store/write/index.ts';
import { readFrame } from './frame.ts';
import { type Header, readHeader } from './header.ts';
import { createHttpExchangeBook, HTTP_EXCHANGE_MEMBERS, type HttpExchangeBook } from './http-exchange.ts';
import { eachLine, lineMembers, refusalAt, type SourceLine, timeAfter } from './lines.ts';
import { BadLine, type Members } from './members.ts';

/** Who imports: the row of a session names the process that wrote it. */
type Importer = Pick<SessionStart, 'host' | 'pid' | 'processStarted' | 'tapedeck'>;

export type ImportOptions = {
  /** What messages call the source. */
  file: string;
  /** Instead of the name in the file. */
  name: string | null;
  importer: Importer;
  /** What it is redacted by on the way; null: it is stored as it is. */
  redaction: RedactionProfile | null;
  onFrame: (count: number) => void;
  /** Makes the index of what was stored; by default all of it at once. */
  index?: (store: Store, session: number) => void;
  /** Called with a sentence about what could not be imported. */
  onNote?: (text: string) => void;
  signal: AbortSignal;
};

/** Returns the public id of the new session. Throws `TapedeckError`: `corrupt`, or `newer` for a format that is newer. */
export async function readNdjson(
  store: Store,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<string> {
  let recording: Recording | null = null;
  let number = 1;
  try {
    for await (const line of eachLine(source)) {
      number = line.number;
      options.signal.throwIfAborted();
      if (recording === null) recording = beginRecording(store, headerOf(line), options);
      else {
        recording.add(lineMembers(line), line.number);
        options.onFrame(recording.session.count());
      }
    }
    if (recording === null) {
      throw new BadLine(`${EXPECTED_HEADER}, got an empty file`);
    }
    const { number: session, id } = recording.finish();
    (options.index ?? reindexSession)(store, session);
    return id;
  } catch (error) {
    recording?.session.discard();
    throw refusalAt(options.file, number, error);
  }
}

const EXPECTED_HEADER = 'expected the header of a text recording, {"tapedeck":1,"session":{…}}';

function headerOf(line: SourceLine): Header {
  try {
    return readHeader(lineMembers(line));
  } catch (error) {
    // Most likely another file altogether.
    if (!(error instanceof BadLine) || line.bytes.includes('"tapedeck"')) throw error;
    throw new BadLine(`${EXPECTED_HEADER}, got something else`);
  }
}

type Recording = {
  session: SessionImport;
  add(line: Members, number: number): void;
  finish(): { number: number; id: string };
};

function beginRecording(
  store: Store,
  header: Header,
  { name, importer, redaction: profile }: ImportOptions,
): Recording {
  const {
    labels,
    basis,
    transport,
    target,
    command,
    at: startedAt,
    end,
    loss,
    sample,
    tapedeck,
    redaction,
    run,
  } = header;
  const start: SessionStart = {
    ...importer,
    ...{ labels, basis, transport, target, command, at: startedAt },
    name: name ?? header.name,
    tapedeck: tapedeck ?? importer.tapedeck,
    redaction: redaction && JSON.stringify(redaction),
    ...{ run, sample },
    cwd: null,
    clientPid: null,
    clientProgram: null,
  };
  const session = beginImport(store, start, loss, profile);
  const book = createHttpExchangeBook(session.hasHttpExchange);
  const isStdio = transport === 'stdio';
  /** Each channel of an HTTP exchange has at most one unfinished line. */
  const unfinished = new Set<string>();
  let at = startedAt;

  function add(line: Members, number: number): void {
    at = timeAfter(at, line.number('ms') ?? 0);
    if (line.has('channel')) addFrame(line);
    else if (!isStdio && HTTP_EXCHANGE_MEMBERS.some((name) => line.has(name)))
      addHttpExchange(book, line, number);
    else throw new BadLine(whatIsMissing(line, isStdio));
  }

  function addFrame(line: Members): void {
    const frame = readFrame(line, at, isStdio);
    if ('payload' in frame) session.add(frame);
    else {
      const place = `${frame.channel} ${frame.exchange}`;
      if (unfinished.has(place))
        throw new BadLine('expected one unfinished line of each channel, got a second');
      unfinished.add(place);
      session.addRest(frame);
    }
  }

  function addHttpExchange(book: HttpExchangeBook, line: Members, number: number): void {
    const ended = book.read(line, at, number, session.count());
    if (ended !== null) session.addHttpExchange(ended);
  }

  return {
    session,
    add,
    finish() {
      for (const httpExchange of book.open()) session.addHttpExchange(httpExchange);
      return session.finish(end);
    },
  };
}

function whatIsMissing(line: Members, isStdio: boolean): string {
  if (line.has('tapedeck')) return 'got a second header: expected one session in a file';
  return isStdio
    ? 'expected a frame, a line with `channel`'
    : 'expected a frame, a line with `channel`, or one with `request`, `information`, `response` or `end`';
}
