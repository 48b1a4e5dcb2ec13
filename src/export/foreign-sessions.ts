/**
 * What other tools have recorded, into the store. Their files hold messages, who sent them and when, but not the bytes,
 * line ends and HTTP heads that passed. So whatever carried a message, it becomes a line, as on stdio: nothing has to be
 * made up for it. The label `imported` says where a session comes from.
 */
import { commandLine } from '../protocol/command-line.ts';
import type { Frame, StdioChannel } from '../protocol/frame.ts';
import { reindexSession } from '../store/indexer.ts';
import type { Store } from '../store/open.ts';
import { IMPORTED } from '../store/reader.ts';
import { beginImport, type SessionImport } from '../store/session-import.ts';
import type { ImportOptions } from './ndjson-read.ts';

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
export type Said = {
  channel: StdioChannel;
  at: number;
  payload: Buffer;
  lineEnd?: Frame['lineEnd'];
  truncated?: boolean;
  redacted?: readonly string[];
};

export type ForeignSessions = {
  begin(start: ForeignStart): ForeignSession;
  /** Gives the public ids, in the order in which the sessions began. */
  finish(): string[];
  /** Removes what is stored of them. */
  discard(): void;
};

export type ForeignSession = { add(said: Said): void; lose(frames: number): void };

/** `origin` is the tool that wrote the file. */
export function createForeignSessions(store: Store, origin: string, options: ImportOptions): ForeignSessions {
  const sessions: SessionImport[] = [];
  let frames = 0;

  function begin(start: ForeignStart): ForeignSession {
    const session = beginImport(store, sessionStart(start, origin, options), { frames: 0, bytes: 0 });
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

function frameOf({ channel, at, payload, lineEnd = '\n', truncated = false, redacted }: Said): Frame {
  return {
    ...{ channel, at, payload, lineEnd, truncated, size: payload.length },
    part: 'line',
    http: null,
    ...(redacted === undefined ? {} : { redacted }),
  };
}
