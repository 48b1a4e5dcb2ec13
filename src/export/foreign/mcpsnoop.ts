/**
 * JSON Lines of mcpsnoop (github.com/kerlenton/mcpsnoop, `Envelope` in internal/proxy/frame.go): one event a line, with
 * its session and a number that counts every event of it, those too that were dropped before they were written.
 */
import type { StdioChannel } from '../../protocol/wire/frame.ts';
import type { Store } from '../../store/file/open.ts';
import { type Members, required } from '../text/members.ts';
import type { ImportOptions } from '../text/read.ts';
import {
  type ForeignFrame,
  type ForeignSession,
  type ForeignSessions,
  readForeignLines,
  sliceOf,
  timeOf,
} from './sessions.ts';

const ORIGIN = 'mcpsnoop';

const DIRECTIONS = { c2s: 'stdin', s2c: 'stdout', stderr: 'stderr', meta: null } as const satisfies Record<
  string,
  StdioChannel | null
>;

/** `events` are those that were written, `highest` the number of the last one that happened. */
type OpenSession = { session: ForeignSession; events: number; highest: number };

export function readMcpsnoop(
  store: Store,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<string[]> {
  return readForeignLines(store, source, ORIGIN, options, (sessions) => {
    const open = new Map<string, OpenSession>();
    let withoutMessage = 0;

    function sessionOf(event: Members): OpenSession {
      const id = required(event, 'session_id', event.text('session_id'));
      const before = open.get(id);
      if (before !== undefined) return before;
      const begun = { session: beginSession(sessions, event, id), events: 0, highest: 0 };
      open.set(id, begun);
      return begun;
    }

    return {
      read(event) {
        const channel = DIRECTIONS[required(event, 'direction', event.oneOf('direction', DIRECTIONS))];
        const one = sessionOf(event);
        one.events += 1;
        one.highest = Math.max(one.highest, event.count('seq') ?? 0);
        if (channel === null) return;
        if (hasLine(event, channel)) one.session.add(lineOf(event, channel));
        else withoutMessage += 1;
      },
      finish() {
        for (const { session, events, highest } of open.values())
          if (highest > events) session.lose(highest - events);
        if (withoutMessage > 0)
          options.onNote?.(`lines left out, of HTTP without a message: ${withoutMessage}`);
      },
    };
  });
}

/** The first event tells the command, unless it was lost. */
function beginSession(sessions: ForeignSessions, event: Members, id: string): ForeignSession {
  const meta = event.text('direction') === 'meta' ? event.object('raw') : null;
  return sessions.begin({
    at: required(event, 'ts', timeOf(event, 'ts')),
    name: event.text('server_label') || null,
    command: meta?.texts('command') ?? null,
    labels: [
      ['session', id],
      ['transport', event.text('transport') || null],
    ],
  });
}

/**
 * An empty line of stderr has no text. By HTTP what is no JSON is an answer without a body, or with one that holds no
 * message, unless it is the beginning of a long one.
 */
function hasLine(event: Members, channel: StdioChannel): boolean {
  if (channel === 'stderr' || event.has('raw')) return true;
  return event.has('text') && (event.text('transport') !== 'http' || event.flag('truncated') === true);
}

function lineOf(event: Members, channel: StdioChannel): ForeignFrame {
  return {
    channel,
    at: required(event, 'ts', timeOf(event, 'ts')),
    payload: event.has('raw') ? sliceOf(event, 'raw') : Buffer.from(event.text('text') ?? ''),
    truncated: event.flag('truncated') === true,
    ...(event.flag('redacted') === true ? { redacted: [ORIGIN] } : {}),
  };
}
