import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openForReading } from '../../../src/store/file/open.ts';
import { FAKE_SECRETS, storeHolds } from '../../support/secrets.ts';
import {
  latestSession,
  showFrames,
  tapedeckInProcess,
  tempFolder,
  tempStore,
} from '../../support/tapedeck.ts';

const TOKEN = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';

const END = { endedAt: '2026-01-01T00:00:01.000Z', endReason: 'client-closed' };

/** A folder with rules, and a text recording of both transports in it that has what they name. */
function project() {
  const cwd = tempFolder();
  mkdirSync(join(cwd, '.git'));
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'x', arguments: { card: 'card-77-of-somebody' } },
  };
  const session = {
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'serve BADGE-1001',
    command: ['serve', 'BADGE-1001'],
  };
  const lines = [
    {
      tapedeck: 1,
      session: { ...session, startedAt: '2026-01-01T00:00:00.000Z', ...END, labels: { of: 'BADGE-1002' } },
    },
    { ms: 1, channel: 'stdin', message: call },
    { ms: 1, channel: 'stderr', text: `for BADGE-1003 and ${TOKEN}` },
    { ms: 1, channel: 'stdout', unfinished: true, text: '{"a":"BADGE-1004' },
  ];
  const file = join(cwd, 'a.ndjson');
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return {
    ...{ cwd, file, db: tempStore() },
    wants: (redact: object) => writeFileSync(join(cwd, 'tapedeck.config.json'), JSON.stringify({ redact })),
  };
}

const RULES = { rules: ['badge=/BADGE-\\d+/'], paths: ['$.params.arguments.card'] };

test('import redacts by a project’s rules before it stores anything, and says so in the session', async () => {
  const { cwd, file, db, wants } = project();
  wants(RULES);
  const { code, stderr } = await tapedeckInProcess(['import', file, '--db', db], { cwd });
  expect([code, stderr]).toEqual([0, '']);
  for (const secret of ['BADGE-1001', 'BADGE-1002', 'BADGE-1003', 'BADGE-1004', 'card-77-of-somebody', TOKEN])
    expect(storeHolds(db, secret), secret).toBe(false);
  expect(await latestSession(db)).toMatchObject({ target: expect.stringContaining('[redacted:badge:') });
  expect(JSON.stringify(await showFrames(db))).toMatch(/\[redacted:path:[0-9a-f]{12}\]/);
  const store = openForReading(db);
  expect(JSON.parse(String(store.prepare('SELECT redaction FROM session').pluck().get()))).toMatchObject(
    RULES,
  );
  store.close();
  const back = await tapedeckInProcess(['export', '--db', db], { cwd });
  expect([back.code, back.stderr]).toEqual([0, '']);
});

test('import stores a file as it is where nothing asks for more', async () => {
  const { cwd, file, db } = project();
  expect((await tapedeckInProcess(['import', file, '--db', db], { cwd })).code).toBe(0);
  for (const secret of ['BADGE-1001', 'BADGE-1003', 'card-77-of-somebody', TOKEN])
    expect(storeHolds(db, secret), secret).toBe(true);
});

test('export refuses a session that has what a project wants redacted, until it is', async () => {
  const { cwd, file, db, wants } = project();
  await tapedeckInProcess(['import', file, '--db', db], { cwd });
  wants(RULES);
  const output = join(cwd, 'b.ndjson');
  for (const format of ['ndjson', 'markdown']) {
    const args = ['export', '--db', db, '--format', format, '--output', output];
    const refused = await tapedeckInProcess(args, { cwd });
    expect([refused.code, refused.stdout.toString()]).toEqual([2, '']);
    expect(refused.stderr).toMatch(
      /^tapedeck: Session \w+ has what is to be redacted: (?=.*path in 1 frame)(?=.*badge in \d frames?).*Redact it first, by the same rules: tapedeck redact \w+$/m,
    );
  }
  expect((await tapedeckInProcess(['redact', 'latest', '--db', db], { cwd })).code).toBe(0);
  const exported = await tapedeckInProcess(['export', '--db', db], { cwd });
  expect(exported.code).toBe(0);
  expect(exported.stdout.toString()).not.toMatch(/BADGE-\d|card-77-of-somebody/);
});
