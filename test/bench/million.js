// A large store as use would make it: many sessions of a few hundred frames, calls of many tools with texts of real words'
// frequencies, progress, failures, a few calls without an answer. The same every time.

import { CHANNELS } from '../../build/protocol/wire/frame.js';
import { openStore } from '../../build/store/file/open.js';
import { createStdioFramer } from '../../build/store/record/stdio-framer.js';
import { createIndexer, prepareIndex } from '../../build/store/write/index.js';
import { createPendingSession } from '../../build/store/write/pending.js';
import { createRowWriter, insertSession } from '../../build/store/write/rows.js';

export const NEWEST_NAME = 'newest';
/** Stands in one text of ten thousand. */
export const RARE_WORD = 'rarissimum';
const TOOLS = Array.from(
  { length: 40 },
  (_, i) => `${['get', 'list', 'search', 'update'][i % 4]}_thing_${i}`,
);
const FIRST_AT = 1.7e15;
const SESSION_US = 1e9;

/** Fills a new store; the newest session has `newest` frames. Returns the payload's bytes. */
export function fillStore(file, { messages, sessions, newest }) {
  const store = openStore(file);
  const random = createRandom(20_261_121);
  const words = createWords(random);
  const each = Math.floor((messages - newest) / (sessions - 1));
  const rest = messages - newest - each * (sessions - 1);
  let bytes = 0;
  for (let s = 0; s < sessions; s += 1) {
    const isNewest = s === sessions - 1;
    const count = isNewest ? newest : each + (s === 0 ? rest : 0);
    bytes += writeSession(
      store,
      s,
      isNewest ? NEWEST_NAME : `bench-${s % 7}`,
      framesOf(count, FIRST_AT + s * SESSION_US, random, words),
    );
  }
  store.close();
  return bytes;
}

function writeSession(store, s, name, pending) {
  const writer = createRowWriter(store, null);
  const key = insertSession(store, sessionStart(s, name));
  const end = {
    reason: 'client-closed',
    exitCode: 0,
    signal: null,
    clientClosedAt: null,
    serverClosedAt: null,
  };
  pending.change({ end: { at: FIRST_AT + s * SESSION_US + 6e8, ...end } });
  store.transaction(() => writer.write(key, pending))();
  createIndexer(key.number, prepareIndex(store)).advance(Number.POSITIVE_INFINITY);
  return pending.frames().reduce((sum, frame) => sum + frame.size, 0);
}

function framesOf(count, startedAt, random, words) {
  const pending = createPendingSession({ basis: 'stdio-process', transport: 'stdio' });
  const framer = createStdioFramer(pending, 1024 * 1024, null, 'stdio-process');
  let said = 0;
  let at = startedAt;
  const say = (channel, message) => {
    if (said === count) return;
    said += 1;
    const bytes = Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    framer.feed({ kind: CHANNELS.indexOf(channel), owner: 0, at, bytes });
  };
  for (let id = 1; said < count; id += 1) {
    const tool = TOOLS[Math.floor(random() ** 2 * TOOLS.length)];
    const params = {
      name: tool,
      arguments: { query: textOf(words, random, 6) },
      _meta: { progressToken: id },
    };
    const call = random() < 0.9 ? { method: 'tools/call', params } : { method: 'ping' };
    say('stdin', { id, ...call });
    at += 200 + Math.floor(1000 * 1000 ** random());
    if (random() < 0.05)
      say('stdout', { method: 'notifications/progress', params: { progressToken: id, progress: 1 } });
    if (random() < 0.002) continue;
    say('stdout', { id, ...answerOf(call, random, words) });
    at += 100;
  }
  return pending;
}

function answerOf({ method }, random, words) {
  if (method === 'ping') return { result: {} };
  if (random() < 0.01) return { error: { code: -32602, message: `Invalid ${textOf(words, random, 4)}` } };
  const text = textOf(words, random, Math.floor(4 + 800 * random() ** 2));
  return { result: { content: [{ type: 'text', text }], ...(random() < 0.03 ? { isError: true } : {}) } };
}

function textOf(words, random, count) {
  let text = words[0];
  for (let i = 1; i < count; i += 1) text += ` ${words[Math.floor(words.length * random() ** 4)]}`;
  return random() < 0.0001 ? `${text} ${RARE_WORD}` : text;
}

/** 30,000 words; those in front will be common, those behind rare. */
function createWords(random) {
  const syllables = Array.from(
    { length: 60 },
    (_, i) => 'bcdfghklmnprstvz'[i % 16] + 'aeiou'[i % 5] + 'nrst'[i % 4],
  );
  return Array.from({ length: 30_000 }, () => {
    const count = 1 + Math.floor(random() * 3);
    return Array.from({ length: count }, () => syllables[Math.floor(random() * syllables.length)]).join('');
  });
}

/** Mulberry32. */
function createRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function sessionStart(s, name) {
  return {
    name,
    labels: [],
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'bench',
    command: ['bench'],
    cwd: '/',
    at: FIRST_AT + s * SESSION_US,
    host: 'bench',
    pid: 1,
    processStarted: null,
    clientPid: null,
    clientProgram: null,
    tapedeck: '0',
  };
}
