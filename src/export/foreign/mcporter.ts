/**
 * NDJSON of mcporter (github.com/openclaw/mcporter, docs/record-replay.md): one message a line, in which `_meta` says who
 * sent it, to which server, when. A file may hold the connections to several servers, one after another or at once.
 */

import { withoutMembers } from '../../protocol/json/edit.ts';
import { skipSpace } from '../../protocol/json/read.ts';
import type { StdioChannel } from '../../protocol/wire/frame.ts';
import type { Store } from '../../store/file/open.ts';
import { BadLine, type Members, required } from '../text/members.ts';
import type { ImportOptions } from '../text/read.ts';
import { type ForeignSession, readForeignLines, timeOf } from './sessions.ts';

const ORIGIN = 'mcporter';

/** The recorder stands in the client. */
const DIRECTIONS = { send: 'stdin', recv: 'stdout', lifecycle: null } as const satisfies Record<
  string,
  StdioChannel | null
>;

const BEGINNING = '$transport/start';

export function readMcporter(
  store: Store,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<string[]> {
  return readForeignLines(store, source, ORIGIN, options, (sessions) => {
    /** By server: its latest connection. */
    const open = new Map<string, ForeignSession>();
    let last: number | null = null;

    function begin(server: string, at: number): ForeignSession {
      const session = sessions.begin({ at, name: server });
      open.set(server, session);
      return session;
    }

    return {
      read(line) {
        const meta = metaOf(line);
        const channel = DIRECTIONS[required(meta, 'dir', meta.oneOf('dir', DIRECTIONS))];
        const server = required(meta, 'server', meta.text('server'));
        const at = required(meta, 'ts', timeOf(meta, 'ts') ?? last);
        last = at;
        if (channel !== null)
          (open.get(server) ?? begin(server, at)).add({ channel, at, payload: messageIn(line) });
        else if (line.text('method') === BEGINNING) begin(server, at);
      },
      finish() {},
    };
  });
}

function metaOf(line: Members): Members {
  const meta = line.object('_meta');
  if (meta !== null) return meta;
  throw new BadLine(
    'expected a message of mcporter, with `_meta` that has `dir`, `server` and `ts`, got another object',
  );
}

/** The message as it was before `_meta` was put into it. */
function messageIn({ bytes }: Members): Buffer {
  return withoutMembers(bytes.subarray(skipSpace(bytes, 0)), ['_meta']);
}
