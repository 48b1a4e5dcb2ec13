/** Checks a stored session. */
import type { HttpExchangeRow } from '../../store/http-reader.ts';
import type { Store } from '../../store/open.ts';
import { type SessionRow, stateOf } from '../../store/reader.ts';
import { sessionDetails } from '../../store/session-details.ts';
import { eachHappening } from '../timeline.ts';
import { createCheck } from './check.ts';
import type { Finding } from './rules.ts';
import type { Schemas } from './schemas.ts';
import type { SeenExchange } from './seen.ts';

/** The findings of a session in its order; in constant memory, however long it is. `onFrame` is told each frame. */
export function* checkSession(
  store: Store,
  session: SessionRow,
  schemas: Schemas,
  onFrame: (seq: number) => void = () => {},
): Generator<Finding> {
  const { basis } = session;
  const transport = session.transport === 'stdio' ? 'stdio' : 'http';
  const facts = {
    transport,
    basis,
    isWhole: isWhole(session),
    isForeign: session.importedFrom !== null,
    lingeredMs: lingeredOf(store, session),
  } as const;
  const check = createCheck(facts, schemas);
  for (const happening of eachHappening(store, session)) {
    if (happening.type === 'frame') {
      yield* check.frame(happening.frame, happening.frame.seq);
      onFrame(happening.frame.seq);
    } else if (happening.type === 'end') {
      yield* check.exchange(seenExchange(happening.exchange), closingOf(happening.exchange));
    }
  }
  yield* check.end();
}

function lingeredOf(store: Store, { number, transport, endedAt }: SessionRow): number | null {
  const { clientClosedAt } = sessionDetails(store, number);
  if (transport !== 'stdio' || clientClosedAt === null || endedAt === null) return null;
  return (endedAt - clientClosedAt) / 1000;
}

/** Whether what is missing did not come, rather than was not recorded. */
export function isWhole(session: SessionRow): boolean {
  const state = stateOf(session);
  return state !== 'open' && state !== 'cut-off' && state !== 'unknown' && session.dropped === 0;
}

function closingOf({ status, closedBy }: HttpExchangeRow): 'refused' | 'left' | null {
  if (status !== null && status >= 400) return 'refused';
  return closedBy === 'client' ? 'left' : null;
}

function seenExchange(exchange: HttpExchangeRow): SeenExchange {
  const { number, method, status, responseBytes, requestHeaders, responseHeaders } = exchange;
  return {
    number,
    method,
    status,
    responseBytes,
    requestHeaders: joined(requestHeaders),
    responseHeaders: joined(responseHeaders ?? []),
  };
}

/** Lines of one name are one list (RFC 9110, 5.3). */
function joined(fields: readonly [name: string, value: string][]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of fields) {
    const key = name.toLowerCase();
    const before = headers.get(key);
    headers.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
}
