/** A run of a client with three servers, in two stretches, with a call that fails and is made again. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { storeOnce } from './once.ts';
import { tapedeckInProcess, tempFolder } from './tapedeck.ts';

type Call = { at: number; took: number; tool: string; fails?: boolean };

const SERVERS: Record<string, readonly Call[]> = {
  files: [{ at: 0, took: 100, tool: 'read' }],
  search: [
    { at: 1000, took: 500, tool: 'search', fails: true },
    { at: 2000, took: 250, tool: 'search' },
  ],
  database: [
    { at: 2100, took: 900, tool: 'query' },
    { at: 600_000, took: 10, tool: 'later' },
  ],
};

export const runOfThree = storeOnce(async (db) => {
  const folder = tempFolder();
  for (const [name, calls] of Object.entries(SERVERS)) {
    const file = join(folder, `${name}.ndjson`);
    writeFileSync(file, recordingOf(name, calls));
    const { code, stderr } = await tapedeckInProcess(['import', file, '--db', db]);
    if (code !== 0) throw new Error(stderr);
  }
});

function recordingOf(name: string, calls: readonly Call[]): string {
  const events = calls
    .flatMap(({ at, took, tool, fails = false }, id) => [
      { at, channel: 'stdin', message: { jsonrpc: '2.0', id, method: 'tools/call', params: { name: tool } } },
      {
        at: at + took,
        channel: 'stdout',
        message: { jsonrpc: '2.0', id, result: { content: [], isError: fails } },
      },
    ])
    .toSorted((one, other) => one.at - other.at);
  let last = 0;
  const lines = events.map(({ at, ...frame }) => {
    const ms = at - last;
    last = at;
    return { ms, ...frame };
  });
  const session = {
    ...{
      name,
      basis: 'stdio-process',
      transport: 'stdio',
      target: `${name} server`,
      labels: { run: 'demo' },
    },
    startedAt: '2026-11-20T10:00:00Z',
    ...{ endedAt: '2026-11-20T10:20:00Z', endReason: 'client-closed' },
    run: { evidence: 'process', process: 'of-the-demo' },
  };
  return [{ tapedeck: 1, session }, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('');
}
