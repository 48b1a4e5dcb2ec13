// What reading from an engine costs as it grows: list, pull, stats and search by the commands themselves, on a tenth of the messages and
// on all of them. `ENGINE_MESSAGES` says how many these are. The engine makes them itself: they are never in a store.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../build/store/file/open.js';
import { figureRow, median } from './figures.js';
import { startEngine } from './ship.js';

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');
const WEEKS = 10;
const SESSION_MESSAGES = 1000;
const US_A_DAY = 86_400_000_000;

/** What the design wants of the whole, in seconds: of 10 million messages. */
const READS = [
  { what: 'list', atMost: 0.5, words: () => ['list'] },
  { what: 'list of what failed', words: () => ['list', '--filter', 'status~error', '--limit', '20'] },
  { what: 'pull of a session', atMost: 0.3, words: ({ session, file }) => ['pull', session, '--out', file] },
  { what: 'stats of a day', atMost: 2, words: ({ day }) => ['stats', '--all', '--filter', day] },
  {
    what: 'search in a day, no index',
    atMost: 10,
    words: ({ day, word }) => ['search', word, '--filter', day],
  },
];
const INDEXED = {
  what: 'search in a day, with the index of texts',
  atMost: 0.5,
  words: ({ day, word }) => ['search', word, '--filter', day],
};

export async function benchEngine(folder, { messages: usual, engineRounds: rounds, progress }) {
  const messages = Number(process.env.ENGINE_MESSAGES ?? usual);
  progress('an engine');
  const engine = await startEngine(folder);
  try {
    const sessions = Math.round(messages / SESSION_MESSAGES / WEEKS / 10) * 10;
    const monday = Math.floor((Date.now() / 86_400_000 - 4) / 7) * 7 + 4 - 7;
    const small = await measured(engine, folder, { from: 0, to: sessions / 10, monday, rounds, progress });
    const whole = await measured(engine, folder, {
      from: sessions / 10,
      to: sessions,
      monday,
      rounds,
      progress,
    });
    const million = (share) =>
      `${((sessions * WEEKS * SESSION_MESSAGES * share) / 1e6).toLocaleString('en-US')} million`;
    const rows = [...READS, INDEXED].map(({ what, atMost }) =>
      figureRow(`${what}, of ${million(1)} messages`, whole.seconds[what], {
        ...(atMost !== undefined && { atMost }),
        unit: 's',
        against: `${small.seconds[what].toFixed(2)} s of ${million(0.1)}; ${whole.processor[what].toFixed(2)} s of our processor`,
      }),
    );
    return [...rows, dropped(engine, monday)];
  } finally {
    await engine.stop();
  }
}

/** Makes these sessions of each week, and reads. Without what the same command takes for an empty store. */
async function measured(engine, folder, { from, to, monday, rounds, progress }) {
  for (let week = 0; week < WEEKS; week += 1) {
    progress(`sessions ${from} to ${to} of week ${week + 1} of ${WEEKS}`);
    engine.sql(fillSql({ from, to, monday: monday - 7 * week }));
  }
  engine.sql('ANALYZE tapedeck.session, tapedeck.frame, tapedeck.message, tapedeck.http_exchange');
  // A Wednesday four weeks ago, and a word that one of its frames has.
  const day = monday - 7 * 4 + 2;
  const date = (days) => new Date(days * 86_400_000).toISOString().slice(0, 10);
  const [session, word] = engine
    .sql(
      `SELECT id, 'needle' || md5(id) FROM tapedeck.session WHERE started_at >= ${day * US_A_DAY} ORDER BY started_at LIMIT 1`,
    )
    .split('|');
  const file = join(folder, 'pulled.db');
  const asked = { day: `since=${date(day)} until=${date(day + 1)}`, session, word, file };
  const empty = join(folder, 'empty.db');
  openStore(empty).close();
  const figures = { seconds: {}, processor: {} };
  const measure = async ({ what, words }) => {
    progress(what);
    const base = await timed(['list', '--db', empty], {});
    const each = [];
    for (let round = 0; round <= rounds; round += 1) {
      rmSync(file, { force: true });
      each.push(await timed(words(asked), { TAPEDECK_DB: engine.url, TAPEDECK_CACHE: '0' }));
    }
    // The first one warms the engine.
    figures.seconds[what] = median(each.slice(1).map(({ seconds }) => seconds)) - base.seconds;
    figures.processor[what] = median(each.slice(1).map(({ cpu }) => cpu)) - base.cpu;
  };
  for (const read of READS) await measure(read);
  progress('the index of texts of that week');
  const week = date(monday - 7 * 4).replaceAll('-', '');
  engine.sql('CREATE EXTENSION IF NOT EXISTS pg_trgm');
  engine.sql(
    `CREATE INDEX frame_${week}_text ON tapedeck.frame_${week} USING gin (tapedeck.payload_text(payload) public.gin_trgm_ops);
     CREATE INDEX frame_${week}_large ON tapedeck.frame_${week} (size) WHERE size > 32768`,
  );
  await measure(INDEXED);
  engine.sql(`DROP INDEX tapedeck.frame_${week}_text, tapedeck.frame_${week}_large`);
  return figures;
}

async function timed(words, env) {
  const cache = join(process.env.TMPDIR ?? '/tmp', 'tapedeck-bench-cache');
  mkdirSync(cache, { recursive: true });
  const script = `process.on('exit', () => { const u = process.resourceUsage(); process.stderr.write('@' + (u.userCPUTime + u.systemCPUTime) / 1e6); });`;
  const began = performance.now();
  const child = spawn(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(script)}`, BIN, ...words],
    { env: { ...process.env, XDG_CACHE_HOME: cache, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let said = '';
  let printed = 0;
  child.stdout.on('data', (bytes) => {
    printed += bytes.length;
  });
  child.stderr.on('data', (bytes) => {
    said += bytes;
  });
  const [code] = await once(child, 'close');
  if (code !== 0 || (printed === 0 && !words.includes('pull')))
    throw new Error(`${words.join(' ')}: ${said}`);
  return { seconds: (performance.now() - began) / 1000, cpu: Number(said.slice(said.lastIndexOf('@') + 1)) };
}

/** The sessions of a week, evenly over its days; of each hundred calls one fails, and each session has a word of its own in one frame. */
function fillSql({ from, to, monday }) {
  const day = `(date '1970-01-01' + ${monday} + n % 7)`;
  const sessions = `(SELECT n, md5('${monday}.' || n) AS hash, ${day} AS day,
    (${monday} + n % 7)::bigint * ${US_A_DAY} + (n / 7)::bigint * 60000000 % ${US_A_DAY - 3_600_000_000} AS started
    FROM generate_series(${from}, ${to - 1}) AS n) AS s`;
  const key = `overlay(s.hash PLACING '8' FROM 13 FOR 1)::uuid`;
  const at = 's.started + i * 1000000';
  return `SELECT tapedeck.add_week(date '1970-01-01' + ${monday});
  INSERT INTO tapedeck.session (session, day, id, host, recorder, revision, cursor, sealed_at, received_at, basis, transport, target,
      command, cwd, started_at, ended_at, end_reason, pid, tapedeck, frames, indexed, bytes, exchanges, errors, unanswered, dropped,
      dropped_bytes, truncated, server_name, server_version, client_name, client_version, redaction, labels, runs)
    SELECT ${key}, s.day, left(s.hash, 12), 'host' || n % 50, gen_random_uuid(), 0, ${SESSION_MESSAGES}, now(), now(), 'stdio-process',
      'stdio', 'server', '["server"]', '/', s.started, s.started + 1000000000, 'client-closed', 1, '0', ${SESSION_MESSAGES}, ${SESSION_MESSAGES},
      ${SESSION_MESSAGES * 245}, ${SESSION_MESSAGES / 2}, 5, 0, 0, 0, 0, 'server', '1', 'client', '1', '{}', '{}', '[]' FROM ${sessions};
  INSERT INTO tapedeck.frame (session, day, seq, at, channel, size, payload)
    SELECT session, day, i, at, channel, octet_length(payload), payload FROM (
      SELECT ${key} AS session, s.day, i, ${at} AS at, CASE WHEN i % 2 = 1 THEN 'stdin' ELSE 'stdout' END AS channel,
        convert_to(CASE WHEN i % 2 = 1 THEN '{"jsonrpc":"2.0","id":' || i || ',"method":"tools/call","params":{"name":"tool' || i % 20 || '","arguments":{"text":"'
          ELSE '{"jsonrpc":"2.0","id":' || i - 1 || ',"result":{"content":[{"type":"text","text":"' END
          || CASE WHEN i = 500 THEN 'needle' || md5(left(s.hash, 12)) ELSE md5(s.hash || i) END || ' ' || md5(i || s.hash) || repeat(' some words of prose', 4) || '"}]}}', 'UTF8') AS payload
      FROM ${sessions}, generate_series(1, ${SESSION_MESSAGES}) AS i) AS f;
  INSERT INTO tapedeck.message (session, day, seq, n, kind, id_type, id, method, canonical, target, relation, to_seq, to_n, latency, outcome)
    SELECT ${key}, s.day, i, 0, CASE WHEN i % 2 = 1 THEN 'request' ELSE 'result' END, 'number', (i - (i + 1) % 2)::text,
      CASE WHEN i % 2 = 1 THEN 'tools/call' END, CASE WHEN i % 2 = 1 THEN 'tools/call' END, CASE WHEN i % 2 = 1 THEN 'tool' || i % 20 END,
      CASE WHEN i % 2 = 0 THEN 'reply' END, CASE WHEN i % 2 = 0 THEN i - 1 END, CASE WHEN i % 2 = 0 THEN 0 END,
      CASE WHEN i % 2 = 0 THEN 1000 + (i * 7919) % 1000000 END, CASE WHEN i % 2 = 0 THEN CASE WHEN i % 200 = 0 THEN 'error' ELSE 'ok' END END
    FROM ${sessions}, generate_series(1, ${SESSION_MESSAGES}) AS i;`;
}

/** The oldest week goes. */
function dropped(engine, monday) {
  const days = Math.floor(Date.now() / 86_400_000) - (monday - 7 * (WEEKS - 1)) - 8;
  const began = performance.now();
  const said = execFileSync(
    process.execPath,
    [BIN, 'engine', 'maintain', '--to', engine.url, '--older-than', `${days}d`],
    { encoding: 'utf8' },
  );
  const seconds = (performance.now() - began) / 1000;
  const [, sessions] = /deleted ([\d,]+) sessions/.exec(said) ?? [];
  if (sessions === undefined) throw new Error(`no week was deleted: ${said}`);
  return figureRow(`engine maintain that drops a week of ${sessions} sessions, with its start`, seconds, {
    unit: 's',
  });
}
