/** The mock server for a recording, in this process. */
import { onTestFinished } from 'vitest';
import type { Notice } from '../../src/replay/match/compare.ts';
import { createMatching, type Matching } from '../../src/replay/match/matching.ts';
import type { ReplayRefusal } from '../../src/replay/match/refusal.ts';
import type { Repeat } from '../../src/replay/match/repeat.ts';
import { createMock, type Mock } from '../../src/replay/mock.ts';
import { createReadyAnswers, type ReadyAnswers } from '../../src/replay/play/ready.ts';
import type { Speed } from '../../src/replay/play/timetable.ts';
import { joinRecordings } from '../../src/replay/recording/joined.ts';
import { type Recording, readRecording } from '../../src/replay/recording/recording.ts';
import { createHttpMock, type HttpMock } from '../../src/replay/serve/http.ts';
import { openForReading, openStore } from '../../src/store/file/open.ts';
import { findSession, sessionsBehind } from '../../src/store/read/sessions.ts';
import { reindexSession } from '../../src/store/write/index.ts';

export type OpenMock = {
  recording: Recording;
  matching: Matching;
  mock: Mock;
  misses: ReplayRefusal[];
  notices: Notice[];
  /** How many answers needed no reading. */
  unread: () => number;
};

export function openMock(
  db: string,
  {
    sessions = ['latest'] as readonly string[],
    speed = 'fast' as Speed,
    repeat = 'error' as Repeat,
    /** So many calls are read before the first client comes; null where every call is read when it comes. */
    readsAhead = null as number | null,
    ignoreTool = [] as string[],
  } = {},
): OpenMock {
  // A recorder in haste leaves some of its index to the next reader.
  const writable = openStore(db);
  for (const { number } of sessionsBehind(writable)) reindexSession(writable, number);
  writable.close();
  const store = openForReading(db);
  const recording = joinRecordings(sessions.map((name) => readRecording(store, findSession(store, name))));
  const misses: ReplayRefusal[] = [];
  const matching = createMatching(recording, { repeat, ignore: [], ignoreTool });
  const notices: Notice[] = [];
  let unread = 0;
  const ready = readsAhead === null ? null : createReadyAnswers(recording);
  const counted: ReadyAnswers | null = ready && {
    ...ready,
    answer(call, json) {
      const answer = ready.answer(call, json);
      if (answer !== null) unread += 1;
      return answer;
    },
  };
  if (readsAhead !== null) matching.readAhead({ calls: readsAhead, ms: 60_000 }, ready?.add);
  const mock = createMock({
    recording,
    matching,
    speed,
    ready: counted,
    events: {
      onRefusal: (refusal) => misses.push(refusal),
      onNotice: (notice) => notices.push(notice),
    },
  });
  onTestFinished(() => {
    mock.end();
    store.close();
  });
  return { recording, matching, mock, misses, notices, unread: () => unread };
}

export type OpenHttpMock = OpenMock & HttpMock;

/** It reads ahead, as the command does. */
export async function startHttpMock(
  db: string,
  options: Parameters<typeof openMock>[1] & { allowHosts?: string[]; allowOrigins?: string[] } = {},
): Promise<OpenHttpMock> {
  const opened = openMock(db, { readsAhead: 8000, ...options });
  const { allowHosts = [], allowOrigins = [] } = options;
  const listen = { host: '127.0.0.1', port: 0 };
  const http = await createHttpMock({ ...opened, listen, allowHosts, allowOrigins });
  onTestFinished(() => http.stop());
  return { ...opened, ...http };
}
