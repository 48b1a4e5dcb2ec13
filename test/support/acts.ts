/**
 * What the commands of the documents need besides the stage: a recording with secrets in it, a client on stdin, a signal
 * that ends them. A command that does not stand here is run as it is, and what it prints must be what the document shows.
 */

import { openStore } from '../../src/store/file/open.ts';
import { prepareDrain } from './operations.ts';
import { FAKE_SECRETS } from './secrets.ts';
import { type Act, type Line, perform, type Stage } from './stage.ts';

const TOKEN = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';

const request = (id: number, method: string, params?: object) => ({ id, method, params });
const toolCall = (id: number, name: string, args: object = {}) =>
  request(id, 'tools/call', { name, arguments: args });

/** A client begins so; the params are those of `recordings/everything-stdio.ndjson`. */
const HANDSHAKE = [
  request(0, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: { sampling: {} },
    clientInfo: { name: 'recordings', version: '1.0.0' },
  }),
  { method: 'notifications/initialized' },
];

/** Records a conversation with the first version of a server, as `greetings`. */
async function recordGreetings(stage: Stage): Promise<void> {
  const calls = ['greet', 'gone', 'delete'].map((name, i) => toolCall(i + 2, name));
  const said = [...HANDSHAKE, request(1, 'tools/list'), ...calls];
  await record(stage, '--name greetings -- node test/fixtures/versions.js 1', said);
  await stage.tapedeck('export', 'greetings', '--output', 'greetings.ndjson');
}

/** Records a call that is answered by an error on purpose, as `broken`. */
async function recordBroken(stage: Stage): Promise<void> {
  const said = [...HANDSHAKE, request(1, 'tools/list'), toolCall(2, 'greet')];
  const fault = `--fault 'tool=greet error(-32000,"try later")'`;
  await record(stage, `--name broken ${fault} -- node test/fixtures/versions.js 1`, said);
}

/** Records a call whose server sends progress and logs, as `talk`. */
async function recordTalk(stage: Stage): Promise<void> {
  const call = request(1, 'tools/call', { name: 'talk', arguments: {}, _meta: { progressToken: 'p' } });
  await record(stage, '--name talk -- node test/fixtures/versions.js 1', [...HANDSHAKE, call]);
}

/** Two runs of a scenario whose client says when it calls, and makes ids of its own. */
async function importDays(stage: Stage): Promise<void> {
  const days = {
    monday: [1_770_000_000, '095a4252-1704-49cb-bb31-7cb2c017fc04'],
    tuesday: [1_770_086_400, '04b2c00d-1e99-472e-a0f4-f4fe0af5735b'],
  } as const;
  for (const [name, [now, id]] of Object.entries(days)) {
    const calls = [
      toolCall(1, 'search', { city: 'Bern', now }),
      toolCall(2, 'search', { city: 'Lima', now: now + 7 }),
      toolCall(3, 'order', { items: ['umbrella', 'scarf'].map((what) => ({ id, what })) }),
    ];
    stage.writeRecording(name, answered(calls));
  }
  await stage.tapedeck('import', 'monday.ndjson', 'tuesday.ndjson');
}

/** Each request with an answer behind it. */
function answered(requests: readonly { id: number }[]): Line[] {
  return requests.flatMap((message): Line[] => [
    { from: 'client', message },
    { from: 'server', message: { id: message.id, result: {} } },
  ]);
}

/** Records what a client says to a server, each request once the one before was answered. */
async function record(stage: Stage, args: string, stdin: readonly object[]): Promise<void> {
  await perform(stage, `tapedeck record ${args}`, { stdin });
}

/** One session that was redacted when it was recorded, and one from elsewhere that was not. */
async function makeSecrets(stage: Stage): Promise<void> {
  const say = toolCall(1, 'echo', { text: `clone https://me:${'pass'}word1@example.com/x with ${TOKEN}` });
  await record(stage, '--name demo -- node test/fixtures/echo.js --api-key 12345678', [say]);
  stage.writeRecording('before', answered([say]));
  await stage.tapedeck('import', 'before.ndjson');
}

/** Sessions without errors that ended so many hours ago. */
async function importOldSessions(stage: Stage): Promise<void> {
  const ages = { files: 48 * 24 + 4, search: 33 * 24 + 2, recent: 2 };
  for (const name of Object.keys(ages)) stage.writeRecording(name, answered([toolCall(1, name)]));
  await stage.tapedeck('import', ...Object.keys(ages).map((name) => `${name}.ndjson`));
  const store = openStore(stage.store);
  const setAge = store.prepare(
    'UPDATE session SET started_at = ?, ended_at = ?, imported_at = NULL WHERE name = ?',
  );
  for (const [name, hours] of Object.entries(ages)) {
    const end = (Date.now() - hours * 3_600_000) * 1000;
    setAge.run(end - 600_000, end, name);
  }
  store.close();
}

const CONFIGURATION = `{
  "db": "~/recordings/mcp.db",
  "retention": { "olderThan": "30d", "maxSize": "2gb", "keepErrors": true }
}
`;

export const ACTS: Readonly<Record<string, Act>> = {
  'npx mcp-tapedeck run --forward https://api.example.com/mcp -- node -p process.env.HTTPS_PROXY': {
    isLive: true,
  },
  'HTTPS_PROXY=http://me:secret@proxy.example:3128 npx mcp-tapedeck run --forward https://api.example.com/mcp -- node -p 1':
    { isLive: true },
  'npx mcp-tapedeck record --forward https://api.example.com/mcp --listen 127.0.0.1:8808': {
    stopAfter: /CURL_CA_BUNDLE=.*\n/,
    isLive: true,
  },
  'npx mcp-tapedeck record https://api.example.com/mcp --listen 127.0.0.1:8808': {
    stopAfter: /listening on .*\n/,
    isLive: true,
  },
  'npx mcp-tapedeck record http://127.0.0.1:3001/mcp --admin 127.0.0.1:9464': {
    stopAfter: /listening on .*\n/,
    isLive: true,
  },
  'npx mcp-tapedeck record http://127.0.0.1:3001/mcp --admin 127.0.0.1:9464 --log json --log-level debug --grace 60':
    {
      before: () => prepareDrain(3001, new URL('http://127.0.0.1:8808/mcp')),
      stopAfter: /session-started.*\n/,
      isLive: true,
    },
  'npx mcp-tapedeck record http://127.0.0.1:3001/mcp --log json': {
    stopAfter: /listening.*\n/,
    isLive: true,
  },
  'npx mcp-tapedeck tail everything-stdio --slow 100': { stopAfter: /trigger-sampling-request\n$/ },
  'npx mcp-tapedeck replay everything-stdio': {
    stdin: [
      ...HANDSHAKE,
      ...['Hello, tape.', 'Hello, disc.'].map((message, i) => toolCall(i + 1, 'echo', { message })),
    ],
  },
  'npx mcp-tapedeck replay monday --suggest-ignore tuesday': { before: importDays },
  'npx mcp-tapedeck replay greetings.ndjson --mode new_episodes -- node test/fixtures/versions.js 2': {
    before: recordGreetings,
    stdin: [...HANDSHAKE, ...['greet', 'mood', 'crash'].map((name, i) => toolCall(i + 1, name))],
    isLive: true,
  },
  'npx mcp-tapedeck verify greetings -- node test/fixtures/versions.js 2': { before: recordGreetings },
  'npx mcp-tapedeck verify talk -- node test/fixtures/versions.js 2': { before: recordTalk },
  'npx mcp-tapedeck show broken': { before: recordBroken, isLive: true },
  'npx mcp-tapedeck show demo': { before: makeSecrets, isLive: true },
  'npx mcp-tapedeck prune --older-than 30d --keep-errors --dry-run': {
    before: importOldSessions,
    isLive: true,
  },
  'npx mcp-tapedeck wrap cursor': { isLive: true },
  'cat .cursor/mcp.json': { folder: '.', isLive: true },
  'npx mcp-tapedeck record --wrapped cursor': { stopAfter: /docs at .*\n/, isLive: true },
  'npx mcp-tapedeck config': {
    before(stage) {
      stage.put('.config/tapedeck/config.json', CONFIGURATION);
      stage.put('work/search/tapedeck.config.json', '{ "ignoreTool": ["search:$.now"] }\n');
    },
    folder: 'work/search',
    isLive: true,
  },
  'npx mcp-tapedeck list --config slip.json': {
    before: (stage) => stage.put('clone/slip.json', CONFIGURATION.replace('maxSize', 'maxsize')),
  },
};
