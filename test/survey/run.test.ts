/** `npm run clients`, for one client: the official one. */
import { expect } from 'vitest';
import { textOf } from '../support/documents.ts';
import { inFull } from '../support/scale.ts';
import { ROOT, start } from '../support/tapedeck.ts';

inFull('a client is recorded anew, and its handshake and headers are those of docs/clients.md', async () => {
  const run = start(process.execPath, ['test/survey/run.js', 'sdk-1'], { cwd: ROOT });
  run.child.stdin.end();
  const { code, stdout, stderr } = await run.ended;
  expect(code, stderr).toBe(0);
  const tables = stdout.toString().split('### ');
  const page = textOf('docs/clients.md').split('\n');
  for (const title of ['The first requests', 'Headers of its POST requests']) {
    const rows =
      tables
        .find((table) => table.startsWith(title))
        ?.split('\n')
        .slice(2) ?? [];
    expect(rows.length, stdout.toString()).toBeGreaterThan(2);
    for (const row of rows.filter((line) => line !== ''))
      expect(page, '`npm run clients` writes them anew').toContain(row);
  }
});
