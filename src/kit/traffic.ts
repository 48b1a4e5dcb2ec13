/** What the clients of a test said and heard, kept as it passed, so that filters can be asked of it. */

import { hostname } from 'node:os';
import { now } from '../capture/clock.ts';
import { TapedeckError } from '../errors.ts';
import {
  ASSERTION_KINDS,
  type Assertion,
  breachPlace,
  eachBreach,
  isAbout,
  readAssertions,
} from '../inspect/assertions.ts';
import { escapeText } from '../protocol/text.ts';
import type { Frame } from '../protocol/wire/frame.ts';
import type { Mock } from '../replay/mock.ts';
import type { Asker, Send } from '../replay/play/request.ts';
import type { SessionStart } from '../store/file/columns.ts';
import { openTemporaryStore, type Store } from '../store/file/open.ts';
import { findSession, type SessionRow } from '../store/read/sessions.ts';
import { beginImport } from '../store/write/import.ts';
import { reindexSession } from '../store/write/index.ts';
import { VERSION } from '../version.ts';
import type { TrafficAssertions } from './deck.ts';

type Passed = Pick<Frame, 'channel' | 'at' | 'payload'>;

export type Traffic = {
  /** The same mock, all of whose messages are kept. */
  watched(mock: Mock): Mock;
  /** Throws `TapedeckError`: `assertion` for what does not hold, `usage` for a filter that is wrong. */
  assert(assertions: TrafficAssertions): void;
};

export function createTraffic(): Traffic {
  /** A list for each client. */
  const clients: Passed[][] = [];

  function watched(mock: Mock): Mock {
    return {
      ...mock,
      createClient(sendUnasked) {
        const passed: Passed[] = [];
        clients.push(passed);
        const keep = (channel: Passed['channel'], payload: Buffer) =>
          void passed.push({ channel, at: now(), payload });
        const kept =
          (send: Send): Send =>
          (json, step, isAnswer) => {
            keep('stdout', json);
            send(json, step, isAnswer);
          };
        const client = mock.createClient(kept(sendUnasked));
        const askers = new WeakMap<Asker, Asker>();
        const watchedAsker = (asker: Asker): Asker => {
          const known = askers.get(asker) ?? keptAsker(asker, kept);
          askers.set(asker, known);
          return known;
        };
        return {
          ...client,
          receive(message, json, asker) {
            keep('stdin', json);
            return client.receive(message, json, asker === undefined ? asker : watchedAsker(asker));
          },
          // Requests are known by who asked them.
          abandon: (id, asker) => client.abandon(id, watchedAsker(asker)),
        };
      },
    };
  }

  return {
    watched,
    assert(given) {
      const assertions = read(given);
      const store = openTemporaryStore();
      try {
        const sessions = clients.map((passed) => storeClient(store, passed));
        const broken = assertions.flatMap((one) => brokenLines(store, sessions, one));
        if (broken.length > 0) throw new TapedeckError('assertion', broken.join('\n'));
      } finally {
        store.close();
      }
    },
  };
}

/** It may be an object of a class. */
function keptAsker(asker: Asker, kept: (send: Send) => Send): Asker {
  const { pauseMs } = asker;
  return {
    send: kept((json, step, isAnswer) => asker.send(json, step, isAnswer)),
    ...(pauseMs === undefined ? {} : { pauseMs }),
    ...(asker.withdraw === undefined ? {} : { withdraw: () => asker.withdraw?.() }),
  };
}

function read(given: TrafficAssertions): Assertion[] {
  const texts = ASSERTION_KINDS.map((kind) => [kind, [given[kind] ?? []].flat()]);
  const assertions = readAssertions(Object.fromEntries(texts), now());
  if (assertions.length > 0) return assertions;
  throw new TapedeckError('usage', `Expected ${ASSERTION_KINDS.join(', ')} to assert, got none of them.`);
}

function storeClient(store: Store, passed: readonly Passed[]): SessionRow {
  const imported = beginImport(store, startOf(passed[0]?.at ?? now()), { frames: 0, bytes: 0 }, null);
  for (const { payload, ...frame } of passed)
    imported.add({
      ...{
        ...frame,
        payload,
        size: payload.length,
        lineEnd: '\n',
        truncated: false,
        part: 'line',
        http: null,
      },
    });
  const { number, id } = imported.finish(null);
  reindexSession(store, number);
  return findSession(store, id);
}

/** Over whatever way a client came: messages are all that is known. */
function startOf(at: number): SessionStart {
  return {
    ...{ name: null, labels: [], basis: 'stdio-process', transport: 'stdio', target: 'deck', command: null },
    ...{ cwd: null, at, host: hostname(), pid: process.pid, processStarted: null, tapedeck: VERSION },
    ...{ clientPid: null, clientProgram: null },
  };
}

const MAX_LINES = 20;

/** An expectation is one of all clients together. */
function brokenLines(store: Store, sessions: readonly SessionRow[], assertion: Assertion): string[] {
  const about = sessions.filter((session) => isAbout(store, session, assertion));
  const found = about.map((session) => [...eachBreach(store, session, assertion, undefined)]);
  const { kind, filter } = assertion;
  if (kind === 'expect') {
    const frames = sessions.reduce((sum, session) => sum + session.frames, 0);
    const holds = found.some((breaches) => breaches.length === 0);
    return holds ? [] : [`Expected a frame with ${escapeText(filter)}, got none among ${frames}.`];
  }
  const lines = found.flatMap((breaches, i) => {
    const whose = sessions.length === 1 ? '' : `client ${sessions.indexOf(about[i] as SessionRow) + 1} `;
    return breaches.map((one) => escapeText(`  ${whose}${breachPlace(one)} ${one.side}: ${one.seen}`));
  });
  if (lines.length === 0) return [];
  const wanted = kind === 'max' ? filter : `no frame with ${filter}`;
  const more = lines.length > MAX_LINES ? [`  and ${lines.length - MAX_LINES} more`] : [];
  return [
    `Expected ${escapeText(wanted)}, got ${lines.length} otherwise:`,
    ...lines.slice(0, MAX_LINES),
    ...more,
  ];
}
