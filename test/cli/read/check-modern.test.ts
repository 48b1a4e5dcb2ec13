/** The rules of 2026-07-28 over what the official client and the official server have to do with each other. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { MODERN_RULES } from '../../../src/inspect/check/rules.ts';
import { recordUrlInProcess } from '../../support/http-record.ts';
import { send } from '../../support/send.ts';
import { startDualEraServer } from '../../support/servers.ts';
import { listSessions, tapedeckInProcess } from '../../support/tapedeck.ts';

const RULES: readonly string[] = [
  ...Object.keys(MODERN_RULES),
  'method-header',
  'name-header',
  'version-header',
];

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'by-hand', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

async function findings(
  db: string,
  session: string,
): Promise<{ rule: string; side: string; seen: string }[]> {
  const args = ['check', session, '--db', db, '--severity', 'note', '--json'];
  const lines = (await tapedeckInProcess(args)).stdout.toString().split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line)).filter(({ rule }) => RULES.includes(rule));
}

test('the official client and server keep them, and a client that repeats an argument wrongly is told of', async () => {
  const recording = await recordUrlInProcess(await startDualEraServer());
  const client = new Client({ name: 'official', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new StreamableHTTPClientTransport(recording.url));
  for (const region of ['nord', 'süd', ' =?base64?']) {
    await client.listTools();
    await client.callTool({ name: 'test_x_mcp_header', arguments: { region } });
  }
  await client.readResource({ uri: 'test://static-text' });
  await client.close();

  const post = async (id: number, method: string, params: object, headers: object = {}) => {
    const own = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...headers };
    const body = { id, method, params: { ...params, _meta: META } };
    const answer = await send(recording.url, { headers: own, body });
    await answer.ended;
    return answer.status;
  };
  const called = { name: 'test_x_mcp_header', arguments: { region: 'süd' } };
  expect(await post(1, 'tools/list', {})).toBe(200);
  const headers = { 'Mcp-Name': called.name, 'Mcp-Param-Region': 'nord' };
  expect(await post(2, 'tools/call', called, headers)).toBe(400);
  await recording.stop();

  const [byHand, official] = await listSessions(recording.db);
  expect([byHand?.client, official?.client]).toMatchObject([{ name: 'by-hand' }, { name: 'official' }]);
  expect(await findings(recording.db, official?.session ?? '')).toEqual([]);
  expect(await findings(recording.db, byHand?.session ?? '')).toMatchObject([
    {
      rule: 'param-header',
      side: 'client',
      expected: '`Mcp-Param-Region: =?base64?c8O8ZA==?=`',
      seen: '"nord"',
    },
  ]);
});
