/**
 * What of two recordings must be equal for one to be the recording of the other's replay. Two views, both without times:
 *
 * - `exchangesOf`: HTTP exchange by exchange, with status, headers and all that the server said on each. For recordings
 *   by one and the same transport.
 * - `talkOf`: call by call, message by message, whatever the transports are.
 *
 * What a replay puts in anew stands as a placeholder, everything else byte for byte: ids of requests and answers, progress
 * tokens, subscription ids, SSE event ids, session ids in headers and URLs, and headers of one connection.
 */

import { substitute } from '../../src/protocol/json/edit.ts';
import type { Place } from '../../src/protocol/message/correlate.ts';
import type { Recording } from '../../src/replay/recording/recording.ts';
import { openMock } from './http-mock.ts';
import { showFrames } from './tapedeck.ts';

const VOLATILE_HEADERS = new Set([
  'date',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'mcp-session-id',
]);

/** In any order: requests that a client sends at the same moment may come so. */
export async function exchangesOf(db: string, session = 'latest'): Promise<string[]> {
  const frames = await showFrames(db, session);
  const { recording } = openMock(db, { sessions: [session] });
  const exchanges: unknown[] = [];
  for (let number = 1; number <= recording.session.httpExchanges; number += 1) {
    const row = recording.httpExchange(number);
    const headers = (row?.responseHeaders ?? []).filter(
      ([name]) => !VOLATILE_HEADERS.has(name.toLowerCase()),
    );
    const said = frames
      .filter(({ http, direction }) => http?.exchange === number && direction === 'server-to-client')
      .map(({ text = '' }) => withoutIds(text));
    exchanges.push([
      row?.method,
      withoutIds(row?.path ?? ''),
      row?.status,
      Object.fromEntries(headers),
      said,
    ]);
  }
  return exchanges.map((exchange) => JSON.stringify(exchange)).toSorted();
}

function withoutIds(text: string): string {
  return text
    .replace(/^id: .*$/gm, 'id: minted')
    .replace(/(?<=session_?id=)[^\s&"]+/gi, 'minted')
    .replace(/"id":\d+,"method"|"method":("[^"]+".*),"id":\d+/g, '$1');
}

export type Talk = {
  /** Of each call: the request, then what the server said for it, its questions with the client's answers. */
  calls: string[][];
  /** What belongs to no call: it has no fixed place, and over HTTP waits for a stream. */
  news: string[];
};

const RUN_BY_RUN = [
  ['id'],
  ['params', '_meta', 'progressToken'],
  ['params', 'progressToken'],
  ['params', 'requestId'],
  ['params', '_meta', 'io.modelcontextprotocol/subscriptionId'],
  ['result', '_meta', 'io.modelcontextprotocol/subscriptionId'],
];
const NEWS = /^{.*"method":"notifications\/(?:\w+\/list_changed|resources\/updated)"(?!.*subscriptionId)/s;

/** Calls in the order of their texts: those that a client sends at the same moment may come in any order. */
export function talkOf(db: string, sessions: readonly string[] = ['latest']): Talk {
  const { recording } = openMock(db, { sessions });
  const { script } = recording;
  const talk: Talk = { calls: [], news: script.prologue(1).map(({ place }) => textAt(recording, place)) };
  for (let call = 0; call < script.size; call += 1) {
    const said = [...script.stepsOf(call), ...script.aftermathOf(call)].flatMap(({ place, kind }) => {
      const answer = kind === 'request' ? recording.answerTo(place) : null;
      return [place, ...(answer === null ? [] : [answer])].map((at) => textAt(recording, at));
    });
    const isNews = (text: string) => NEWS.test(text);
    talk.calls.push([textAt(recording, script.placeOf(call)), ...said.filter((text) => !isNews(text))]);
    talk.news.push(...said.filter(isNews));
  }
  talk.calls = talk.calls
    .map((call) => JSON.stringify(call))
    .toSorted()
    .map((call) => JSON.parse(call));
  talk.news.sort();
  return talk;
}

function textAt(recording: Recording, place: Place): string {
  const substitutions = RUN_BY_RUN.map((path) => ({ path, text: '"…"' }));
  return substitute(recording.load(place), substitutions).toString();
}
