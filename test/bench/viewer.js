// The viewer's server: how soon it listens and answers on a large store, also while it searches; what it costs the recording of
// another process; how much memory a large frame takes.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { callEcho, startClient } from './client.js';
import { figureRow, format, median, percentile, ratioRow } from './figures.js';
import { fillStore, NEWEST_NAME, RARE_WORD } from './million.js';
import { IN_FLIGHT, variants } from './stdio.js';
import { followChanges } from './viewer-client.js';
import { largeFramePageRows, pageRows } from './viewer-page.js';

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');
const TOKEN = 'a-token-for-benches-alone';
const FRAMES_PER_SESSION = 500;
const NEWEST_SHARE = 0.1;
const PAGES_READ = 100;
const FOLLOWERS = 5;
const LINE_MB = 64;
const MB = 1024 * 1024;
const NOWHERE = 'no-such-text-anywhere';

export async function benchViewer(folder, { messages, starts, viewerRounds, viewerCalls, progress }) {
  const file = join(folder, 'viewer.db');
  const sessions = Math.ceil(messages / FRAMES_PER_SESSION);
  progress(`viewer: a store of ${messages} messages in ${sessions} sessions`);
  fillStore(file, { messages, sessions, newest: messages * NEWEST_SHARE });
  progress('viewer: its start, then its answers');
  const rows = [await startRow(file, Math.ceil(starts / 3))];
  const ui = await startUi(file);
  try {
    rows.push(...(await answerRows(ui, messages)));
    progress('viewer: its search, after its index is made');
    rows.push(...(await searchRows(ui)));
    progress('viewer: its page in a browser');
    const newest = { session: NEWEST_NAME, frames: messages * NEWEST_SHARE };
    rows.push(...(await pageRows({ link: ui.link, ...newest, word: RARE_WORD })));
  } finally {
    await ui.stop();
  }
  rows.push(...(await followRows(folder, viewerRounds, viewerCalls, progress)));
  progress(`viewer: a frame of ${LINE_MB} MB`);
  rows.push(...(await largeFrameRows(folder)));
  return rows;
}

/** Settles once it listens; `ms`: how long that took. */
async function startUi(file) {
  const began = performance.now();
  const args = ['ui', '--db', file, '--no-open', '--token', TOKEN, '--listen', '127.0.0.1:0'];
  const child = spawn(process.execPath, [BIN, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const line = await new Promise((resolve, reject) => {
    child.stdout.once('data', (bytes) => resolve(String(bytes)));
    child.once('exit', (code) => reject(new Error(`the viewer ended with ${code}`)));
  });
  const ms = performance.now() - began;
  const origin = /http:\/\/[^/]+/.exec(line)[0];
  const ask = (path, init = {}) =>
    fetch(origin + path, { ...init, headers: { Authorization: `Bearer ${TOKEN}` } });
  return {
    ms,
    origin,
    link: `${origin}/#token=${TOKEN}`,
    ask,
    memoryMb: (field) => memoryMb(child.pid, field),
    stop() {
      child.kill('SIGINT');
      return exited;
    },
  };
}

function memoryMb(pid, field) {
  return (
    Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024
  );
}

async function startRow(file, count) {
  const [ours, theirs] = [[], []];
  for (let i = 0; i < count; i += 1) {
    const began = performance.now();
    spawnSync(process.execPath, ['-e', '0']);
    theirs.push(performance.now() - began);
    const ui = await startUi(file);
    ours.push(ui.ms);
    await ui.stop();
  }
  const row = ratioRow(
    'viewer: start to listening',
    ours,
    theirs,
    { atMost: 5, yardstick: '`node -e 0`' },
    'ms',
  );
  return { ...row, wanted: '≤ 400 ms, ≤ 5×', met: row.met === 'yes' && median(ours) <= 400 ? 'yes' : 'NO' };
}

/** How long a whole answer takes. */
async function timeOf(ui, path) {
  const began = performance.now();
  const answer = await ui.ask(path);
  const bytes = await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${Buffer.from(bytes)}`);
  return performance.now() - began;
}

async function answerRows(ui, messages) {
  const first = await timeOf(ui, '/api/sessions');
  const largest = [];
  for (let i = 0; i < 9; i += 1) largest.push(await timeOf(ui, '/api/sessions?limit=500'));
  const { slices, whole } = await readOutline(ui);
  const quiet = await readPages(ui, messages);
  const left = new AbortController();
  // The client of a whole search leaves in the end.
  const search = ui
    .ask(`/api/search?q=${NOWHERE}&index=no`, { signal: left.signal })
    .then((answer) => answer.text());
  const busy = await readPages(ui, messages);
  left.abort();
  await search.catch(() => {});
  const filtered = await timeToFirst(
    ui,
    `/api/sessions/${NEWEST_NAME}/select?filter=${encodeURIComponent('dur>500ms')}`,
    '"runs"',
  );
  return [
    figureRow('viewer: the first 100 sessions, asked for first', first, { atMost: 100 }),
    figureRow('viewer: 500 sessions', median(largest), { atMost: 100 }),
    figureRow('viewer: 5,000 frames of an outline', median(slices), { atMost: 80 }),
    figureRow(`viewer: the outline of ${(messages * NEWEST_SHARE).toLocaleString('en-US')} frames`, whole, {
      atMost: 3000,
    }),
    figureRow('viewer: 200 frames', median(quiet), { atMost: 20 }),
    figureRow('viewer: 200 frames while all is searched', median(busy), { atMost: 20 }),
    figureRow('viewer: the same, p99', percentile(busy, 0.99), { atMost: 50 }),
    figureRow('viewer: first frames of a filter over that session', filtered, { atMost: 1000 }),
  ];
}

const SEARCHES = 7;

async function searchRows(ui) {
  // The first search makes the index.
  await timeOf(ui, `/api/search?q=${NOWHERE}&limit=1`);
  const times = [];
  for (const text of [RARE_WORD, 'tools/call'])
    for (let i = 0; i < SEARCHES; i += 1)
      times.push(await timeToFirst(ui, `/api/search?q=${encodeURIComponent(text)}`, '"hit"'));
  const failed = await timeOf(ui, `/api/sessions?filter=${encodeURIComponent('status~error')}`);
  return [
    figureRow('viewer: first hit of an indexed search, longest', Math.max(...times), { atMost: 300 }),
    figureRow('viewer: the sessions in which something failed, of all', failed, {}),
  ];
}

async function readOutline(ui) {
  const slices = [];
  const began = performance.now();
  for (let after = 0; after !== null; ) {
    const asked = performance.now();
    const text = await (await ui.ask(`/api/sessions/${NEWEST_NAME}/outline?after=${after}`)).text();
    slices.push(performance.now() - asked);
    after = JSON.parse(text).next;
  }
  return { slices, whole: performance.now() - began };
}

async function readPages(ui, messages) {
  const times = [];
  const frames = messages * NEWEST_SHARE - 200;
  for (let i = 0; i < PAGES_READ; i += 1) {
    const after = Math.floor((i * 7919 * frames) / PAGES_READ) % frames;
    times.push(await timeOf(ui, `/api/sessions/${NEWEST_NAME}/frames?after=${after}`));
  }
  return times;
}

/** How long it takes until an answer that streams has `sign` in it. */
async function timeToFirst(ui, path, sign) {
  const began = performance.now();
  let text = '';
  for await (const bytes of (await ui.ask(path)).body) {
    text += Buffer.from(bytes);
    if (text.includes(sign)) return performance.now() - began;
  }
  throw new Error(`${path}: there is no ${sign} in ${text.slice(0, 200)}`);
}

/** Followers in a process of their own. Settles once they follow, with what ends them. */
async function startFollowers({ origin }, count) {
  const script = join(import.meta.dirname, 'followers.js');
  const child = spawn(process.execPath, [script, origin, TOKEN, count], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return async () => {
    child.stdin.end();
    if ((await exited) !== 0) throw new Error('a follower got no answer');
  };
}

async function followRows(folder, rounds, calls, progress) {
  const results = { alone: { p50: [], rate: [] }, followed: { p50: [], rate: [] } };
  const latencies = [];
  for (let round = 0; round < rounds; round += 1) {
    progress(`viewer: recording with ${FOLLOWERS} followers and without, round ${round + 1} of ${rounds}`);
    const order = round % 2 === 0 ? ['alone', 'followed'] : ['followed', 'alone'];
    for (const how of order)
      await measureRecording(folder, how === 'followed', results[how], calls, latencies);
  }
  const { alone, followed } = results;
  const yardstick = 'recording, nobody looks on';
  const [p50, rate] = [
    { atMost: 1.03, yardstick },
    { atLeast: 0.97, yardstick },
  ];
  return [
    ratioRow(`viewer: recording, ${FOLLOWERS} followers, p50`, followed.p50, alone.p50, p50, 'µs'),
    ratioRow(`viewer: the same, ${IN_FLIGHT} in flight`, followed.rate, alone.rate, rate, 'calls/s'),
    figureRow('viewer: a call’s answer to its event, p50', median(latencies), { atMost: 300 }),
  ];
}

async function measureRecording(folder, isFollowed, result, calls, latencies) {
  const client = await startClient(variants(folder).tapedeck);
  const ui = isFollowed ? await startUi(join(folder, 'bench.db')) : null;
  const stopFollowers = ui === null ? null : await startFollowers(ui, FOLLOWERS);
  await callEcho(client, 2000, 1);
  result.p50.push(percentile(await callEcho(client, calls, 1), 0.5) * 1000);
  // Before the flood, whose index takes its time.
  if (ui !== null) latencies.push(...(await eventLatencies(client, ui)));
  const began = performance.now();
  await callEcho(client, calls * 5, IN_FLIGHT);
  result.rate.push(((calls * 5) / (performance.now() - began)) * 1000);
  await stopFollowers?.();
  await ui?.stop();
  await client.close();
}

const EVENTS_AWAITED = 10;

/** From a call's answer to the event that says its frames can be shown. */
async function eventLatencies(client, ui) {
  const latencies = [];
  let onFrames = () => {};
  const leave = await followChanges(ui.ask, ({ kind }) => {
    if (kind === 'frames') onFrames();
  });
  for (let i = 0; i < EVENTS_AWAITED; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    const told = new Promise((resolve) => {
      onFrames = resolve;
    });
    await callEcho(client, 1, 1);
    const answered = performance.now();
    await told;
    latencies.push(performance.now() - answered);
  }
  await leave();
  return latencies;
}

async function largeFrameRows(folder) {
  if (process.platform !== 'linux') return [];
  const client = await startClient(variants(folder).tapedeck);
  await client.call('tools/call', { name: 'size', arguments: { text: 'x'.repeat(LINE_MB * MB) } });
  await client.close();
  const ui = await startUi(join(folder, 'bench.db'));
  const { lastSeq, session: newest } = await (await ui.ask('/api/sessions/latest')).json();
  const { session } = newest;
  const { frames } = await (
    await ui.ask(`/api/sessions/latest/frames?after=${Math.max(0, lastSeq - 10)}`)
  ).json();
  const { seq, size } = frames.reduce((most, frame) => (frame.size > most.size ? frame : most));
  const idle = ui.memoryMb('VmRSS');
  const shown = await timeOf(ui, `/api/sessions/latest/frames/${seq}`);
  const whole = await timeOf(ui, `/api/sessions/latest/frames/${seq}/bytes`);
  const grown = ui.memoryMb('VmHWM') - idle;
  const inPage = await largeFramePageRows(ui.link, `/s/${session}/f/${seq}`);
  await ui.stop();
  return [
    {
      ...figureRow(`viewer: a frame of ${LINE_MB} MB, peak memory above idle`, grown, {
        atMost: (3 * size) / MB,
        unit: 'MB',
      }),
      against: `${format(idle)} MB idle`,
      ratio: `${(grown / (size / MB)).toFixed(2)}× its size`,
      wanted: '≤ 3×',
    },
    figureRow('viewer: its facts and its beginning', shown, { atMost: 1000 }),
    figureRow('viewer: all of its bytes', whole, { atMost: 1000 }),
    ...inPage,
  ];
}
