import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HEAVY_MODULES, runsHeavy } from '../support/heavy.ts';
import { exchangesOf, expectWhole, recordUrl, sessionsOf } from '../support/http-record.ts';
import { startDualEra, startEverything } from '../support/servers.ts';
import { start, tempFolder } from '../support/tapedeck.ts';

const INSPECTOR = join(HEAVY_MODULES, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');

/** What the inspector's command line prints. */
async function inspect(url: URL, ...args: string[]): Promise<unknown> {
  const run = start(process.execPath, [INSPECTOR, '--cli', url.href, '--transport', 'http', ...args], {
    env: { HOME: tempFolder() },
  });
  run.child.stdin.end();
  const { code, stdout, stderr } = await run.ended;
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout.toString());
}

for (const [name, startUpstream] of [
  ['the official server', async () => new URL(await startEverything('streamableHttp'))],
  ['a server of both eras', async () => (await startDualEra()).url],
] as const) {
  test.runIf(runsHeavy)(
    `the inspector’s command line sees the same of ${name}, and each of its runs is a session`,
    async () => {
      const upstream = await startUpstream();
      const recording = await recordUrl(upstream);
      const list = ['--method', 'tools/list'];
      const direct = (await inspect(upstream, ...list)) as { tools: { name: string }[] };
      expect(await inspect(recording.url, ...list)).toEqual(direct);
      const tool =
        direct.tools.find((one) => one.name === 'echo' || one.name === 'test_simple_text')?.name ?? '';
      const call = ['--method', 'tools/call', '--tool-name', tool];
      if (tool === 'echo') call.push('--tool-arg', 'message=hi');
      expect(await inspect(recording.url, ...call)).toEqual(await inspect(upstream, ...call));
      await recording.stop();

      expectWhole(recording);
      expect(sessionsOf(recording)).toMatchObject([
        { basis: 'session-header', transport: 'http', era: 'legacy', errors: 0, unanswered: 0 },
        { basis: 'session-header', transport: 'http', era: 'legacy', errors: 0, unanswered: 0 },
      ]);
      expect(exchangesOf(recording, 1)).toContain('tools/list ok');
      expect(exchangesOf(recording, 2)).toContain(`tools/call ${tool} ok`);
    },
  );
}
