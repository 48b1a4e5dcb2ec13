import { expect, test } from 'vitest';
import type { RequestMessage } from '../../../src/protocol/message/message.ts';
import { createMatching } from '../../../src/replay/match/matching.ts';
import { readRecording } from '../../../src/replay/recording/recording.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import { startHttpMock } from '../../support/http-mock.ts';
import { parseOne } from '../../support/messages.ts';
import { importSaid, type SaidLine } from '../../support/stdio-replay.ts';

const IO = 'io.modelcontextprotocol/';

/** What a client of 2026-07-28 says of itself. */
const meta = (version = '2026-07-28', capabilities: object = {}) => ({
  _meta: {
    [`${IO}protocolVersion`]: version,
    [`${IO}clientInfo`]: { name: 'c', version: '1' },
    [`${IO}clientCapabilities`]: capabilities,
  },
});

type Asked = [method: string, params: object, answer: object];

const refused = (code: number, data?: object): object => ({ error: { code, message: 'no', data } });

const result = (n: number): object => ({ result: { n } });

async function storeOf(asked: readonly Asked[]): Promise<string> {
  const lines = asked.flatMap(([method, params, answer], id): SaidLine[] => [
    ['stdin', JSON.stringify({ jsonrpc: '2.0', id, method, params })],
    ['stdout', JSON.stringify({ jsonrpc: '2.0', id, ...answer })],
  ]);
  return importSaid('calls', lines);
}

/** Asks a replay as one client; gives the results by their `n`, and errors by their code. */
async function openMatching(asked: readonly Asked[]) {
  const store = openStore(await storeOf(asked));
  const recording = readRecording(store, findSession(store, 'latest'));
  const matching = createMatching(recording, { repeat: 'error', ignore: [], ignoreTool: [] });
  return {
    matching,
    connect() {
      const client = matching.connect();
      return (method: string, params: object) => {
        const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
        const decision = client.decide(parseOne(json) as RequestMessage, json);
        if (decision.kind === 'refuse') return decision.refusal.error.code;
        if (decision.kind === 'answer') return JSON.parse(decision.json).code;
        const answer = recording.script.stepsOf(decision.call).at(-1);
        const text = recording.load(answer?.place ?? { seq: 0, n: 0 }).toString();
        const { result, error } = JSON.parse(text) as { result?: { n: number }; error?: { code: number } };
        return result?.n ?? error?.code;
      };
    },
  };
}

const CALL = 'tools/call';
const tool = (more: object) => ({ name: 't', ...more });
const lacking = refused(-32021, { requiredCapabilities: { elicitation: { form: {} } } });
const old = (protocolVersion: string) => ({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: 'c', version: '1' },
});

/** What was refused, what was answered, and other requests with the fault or without it. */
test.each<[string, Asked[], [method: string, params: object, expected: number][]]>([
  [
    'a revision, when the client asks what there is',
    [
      ['server/discover', meta('2099-01-01'), refused(-32022, { supported: ['2026-07-28', '2027-07-28'] })],
      ['server/discover', meta(), result(1)],
      ['tools/list', meta(), result(2)],
    ],
    [
      ['server/discover', meta('2099-01-01'), -32022],
      ['server/discover', meta(), 1],
      ['server/discover', meta('2027-07-28'), 1],
      ['server/discover', meta('2088-01-01'), -32022],
      ['tools/list', meta('2099-01-01'), -32022],
      ['tools/list', meta(), 2],
    ],
  ],
  [
    'a revision, in a call',
    [
      [CALL, tool(meta('2099-01-01')), refused(-32022, { supported: ['2026-07-28'] })],
      [CALL, tool(meta()), result(1)],
    ],
    [
      [CALL, tool(meta('2099-01-01')), -32022],
      [CALL, tool(meta('2099-01-01')), -32022],
      [CALL, tool(meta()), 1],
      [CALL, tool(meta()), 1404],
    ],
  ],
  [
    'a revision of the older era, in the handshake',
    [
      ['initialize', old('1999-01-01'), refused(-32602, { supported: ['2025-11-25'] })],
      ['initialize', old('2025-11-25'), result(1)],
    ],
    [
      ['initialize', old('2025-11-25'), 1],
      ['initialize', old('1999-01-01'), -32602],
    ],
  ],
  [
    'a request without `_meta`',
    [
      [CALL, tool({}), refused(-32602)],
      [CALL, tool(meta()), result(1)],
      ['tools/list', {}, refused(-32602)],
      ['tools/list', meta(), result(2)],
    ],
    [
      [CALL, tool(meta()), 1],
      [CALL, tool({}), -32602],
      ['tools/list', meta(), 2],
      ['tools/list', {}, -32602],
    ],
  ],
  [
    'a capability that was not declared',
    [
      [CALL, tool(meta()), lacking],
      [CALL, tool(meta('2026-07-28', { elicitation: { form: {} } })), result(1)],
    ],
    [
      [CALL, tool(meta('2026-07-28', { elicitation: { form: {}, url: {} }, sampling: {} })), 1],
      [CALL, tool(meta('2026-07-28', { sampling: {} })), -32021],
      [CALL, tool(meta('2026-07-28', { elicitation: { url: {} } })), -32021],
    ],
  ],
  [
    'arguments, which is no fault of the client’s own words and comes once',
    [
      [CALL, tool(meta()), refused(-32602)],
      [CALL, tool(meta()), result(1)],
    ],
    [
      [CALL, tool(meta()), -32602],
      [CALL, tool(meta()), 1],
    ],
  ],
])('a refusal of %s is played to that fault alone, and uses nothing up', async (_name, recorded, asked) => {
  const { connect } = await openMatching(recorded);
  for (let i = 0; i < 2; i += 1) {
    const ask = connect();
    expect(asked.map(([method, params]) => ask(method, params))).toEqual(
      asked.map(([, , expected]) => expected),
    );
  }
});

test('refusals of a fault are not among the calls that nobody asked for', async () => {
  const { matching, connect } = await openMatching([
    [CALL, tool(meta()), lacking],
    [CALL, tool(meta('2026-07-28', { elicitation: {} })), result(1)],
  ]);
  expect([matching.size, matching.unasked()]).toEqual([1, [1]]);
  connect()(CALL, tool(meta('2026-07-28', { elicitation: { form: {} } })));
  expect(matching.unasked()).toEqual([]);
});

test('a client that negotiates its revision over HTTP gets through, every time', async () => {
  const db = await storeOf([
    ['server/discover', meta('2099-01-01'), refused(-32022, { supported: ['2026-07-28'] })],
    ['server/discover', meta(), result(1)],
    [CALL, tool(meta()), result(2)],
  ]);
  const { url } = await startHttpMock(db);
  async function post(method: string, params: { _meta: Record<string, unknown> }): Promise<unknown[]> {
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': String(params._meta[`${IO}protocolVersion`]),
      'mcp-method': method,
    };
    if (method === CALL) headers['mcp-name'] = 't';
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const response = await fetch(url, { method: 'POST', headers, body });
    const { result, error } = JSON.parse(await response.text());
    return [response.status, result?.n ?? error?.code];
  }
  for (let i = 0; i < 2; i += 1) {
    expect(await post('server/discover', meta('2099-01-01'))).toEqual([400, -32022]);
    expect(await post('server/discover', meta())).toEqual([200, 1]);
    expect(await post(CALL, tool(meta()) as never)).toEqual([200, 2]);
  }
});
