// `tapedeck mcp` over a store of a million messages: how long each tool takes to answer an official client, while nobody else is at it.
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { openStore } from '../../build/store/file/open.js';
import { format, median } from './figures.js';
import { fillStore, NEWEST_NAME, RARE_WORD } from './million.js';

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');
const FRAMES_PER_SESSION = 500;
const NEWEST_FRAMES = 1000;
const RUNS = 5;
const AT_MOST_MS = 1000;

const QUESTIONS = [
  ['list_sessions', {}],
  ['list_sessions, filtered', { filter: 'status=error' }],
  ['get_session', {}],
  ['search, found in few frames', { text: [RARE_WORD] }],
  ['search, found in most frames', { text: ['tools/call'] }],
  ['search, found nowhere', { text: ['no-such-text'] }],
  ['search, by a filter alone', { filter: 'dur>500ms' }],
  ['list_calls', {}],
  ['list_calls, filtered', { filter: 'not status=ok' }],
  ['get_call', { seq: 101 }],
  ['get_frame', { seq: 101 }],
  ['stats', {}],
  ['stats, all', { all: true }],
  ['stats, all, filtered', { all: true, filter: 'tool~search' }],
  ['check', {}],
  ['diff', { a: 'bench-1', b: 'bench-2' }],
  ['filter_help', {}],
];

export async function benchAsk(folder, { messages, progress }) {
  const db = join(folder, 'ask.db');
  const sessions = Math.ceil(messages / FRAMES_PER_SESSION);
  progress(`a store of ${messages} messages in ${sessions} sessions`);
  fillStore(db, { messages, sessions, newest: NEWEST_FRAMES });
  markRedacted(db);
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [BIN, 'mcp', '--db', db], stderr: 'ignore' }),
  );
  try {
    await client.listTools();
    const rows = [];
    const first = await timed(client, 'search', { text: [RARE_WORD] });
    rows.push(rowOf('the first search, before there is an index', [first]));
    progress('waiting for the index');
    for (let isPartial = true; isPartial; ) {
      const { answer } = await timed(client, 'search', { text: [RARE_WORD] });
      isPartial = answer.incomplete !== undefined;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    for (const [what, args] of QUESTIONS) {
      progress(what);
      const [name] = what.split(',');
      const taken = [];
      for (let run = 0; run < RUNS; run += 1)
        taken.push(await timed(client, name, { ...args, ...ofNewest(name, args) }));
      rows.push(rowOf(what, taken));
    }
    return rows;
  } finally {
    await client.close();
  }
}

// As `record` leaves them: sessions without redaction are first copied through it.
function markRedacted(db) {
  const store = openStore(db);
  const redaction = JSON.stringify({ key: '', without: [], rules: [], paths: [] });
  store.prepare('UPDATE session SET redaction = ?').run(redaction);
  store.close();
}

// `bench-1` and the like are names of many sessions: the newest is meant.
function ofNewest(name, args) {
  const isOfOne = ['get_session', 'list_calls', 'get_call', 'get_frame', 'stats', 'check'].includes(name);
  return isOfOne && args.all === undefined ? { session: NEWEST_NAME } : {};
}

async function timed(client, name, args) {
  const began = performance.now();
  const { structuredContent, isError, content } = await client.callTool({ name, arguments: args });
  const ms = performance.now() - began;
  if (isError) throw new Error(`${name}: ${content[0].text}`);
  return { ms, answer: structuredContent };
}

function rowOf(what, taken) {
  const ms = taken.map((one) => one.ms);
  const isWhole = taken.at(-1).answer.incomplete === undefined && taken.at(-1).answer.leftOut === undefined;
  return {
    what: `mcp: ${what}`,
    tapedeck: `${format(median(ms))} ms`,
    against: isWhole ? 'whole' : 'in part, with a cursor',
    ratio: `${format(Math.max(...ms))} ms at most`,
    wanted: `≤ ${AT_MOST_MS} ms`,
    met: Math.max(...ms) <= AT_MOST_MS ? 'yes' : 'NO',
  };
}
