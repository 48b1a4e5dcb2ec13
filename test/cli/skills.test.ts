/** Skills of a real server, read by the official client, which verifies every file. */
import { Client } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, test } from 'vitest';
import { inFull } from '../support/scale.ts';
import { FAKE_SECRETS } from '../support/secrets.ts';
import { BIN, fixture, tapedeckInProcess, tempStore } from '../support/tapedeck.ts';

const FILES = ['SKILL.md', 'notes.md', 'stamp.png'];

const SECRET = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';

/** What the official client makes of each file, and what the server's process said on stderr. */
async function readSkill(args: string[], skillText = 'nothing of note', mode: 'legacy' | 'auto' = 'legacy') {
  const env = { SKILL_TEXT: skillText };
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, ...args],
    env,
    stderr: 'pipe',
  });
  const said: Buffer[] = [];
  transport.stderr?.on('data', (chunk: Buffer) => void said.push(chunk));
  const client = new Client({ name: 'host', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  const skills = new SkillsClient(client);
  const { skills: listed } = await skills.list();
  const { skill } = await skills.get(listed[0]?.uri ?? '');
  const read: string[] = [];
  for (const name of FILES) {
    const outcome = skills.read(skill, name).then(
      ({ verified }) => (verified ? 'verified' : 'unverified'),
      ({ reason }) => `refused: ${reason}`,
    );
    read.push(await outcome);
  }
  await skills.readDirectory('skill://acme/refunds');
  const over = new Promise((resolve) => transport.stderr?.once('close', resolve));
  await client.close();
  await over;
  return { read, stderr: Buffer.concat(said).toString() };
}

function recordSkill(db: string, { stale = false, skillText = '', options = [] as string[] }) {
  const server = [process.execPath, fixture('skills.js'), ...(stale ? ['stale'] : [])];
  return readSkill(['record', '--db', db, ...options, '--', ...server], skillText);
}

async function run(...args: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess(args);
  return { code, stderr, text: stdout.toString() };
}

const VERIFIED = ['verified', 'verified', 'verified'];

test('skills pass, are named, are clean, and are replayed so that the client verifies them again', async () => {
  const db = tempStore();
  expect((await recordSkill(db, {})).read).toEqual(VERIFIED);
  expect(await run('check', '--db', db, '--severity', 'note')).toMatchObject({ code: 0, stderr: '' });
  const { text } = await run('show', '--db', db);
  expect(text).toMatch(/result 1 skill .* ok {2}skills\/list$/m);
  expect(text).toMatch(
    /result skill refunds, 3 files .* ok {2}skills\/get skill:\/\/acme\/refunds\/SKILL\.md$/m,
  );
  expect(text).toMatch(/result 3 resources .* ok {2}resources\/directory\/read skill:\/\/acme\/refunds$/m);
  const replayed = await readSkill(['replay', 'latest', '--db', db]);
  expect(replayed).toEqual({ read: VERIFIED, stderr: '' });
});

inFull('a file that is not what its entry says is found, as the client finds it', async () => {
  const db = tempStore();
  expect((await recordSkill(db, { stale: true })).read).toEqual(['refused: size', 'verified', 'verified']);
  const { code, text } = await run('check', '--db', db, '--json');
  expect(code).toBe(1);
  expect(
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { rule: 'skill-digest', side: 'server', seen: expect.stringMatching(/^118 bytes of sha256:/) },
  ]);
});

inFull('replay names a file of a skill that redaction changed, because a host will refuse it', async () => {
  const db = tempStore();
  expect((await recordSkill(db, { skillText: SECRET })).read).toEqual(VERIFIED);
  expect(await run('check', '--db', db)).toMatchObject({ code: 0 });
  const { read, stderr } = await readSkill(['replay', 'latest', '--db', db]);
  expect(read[1]).toMatch(/^refused: /);
  expect(stderr.trimEnd().split('\n')).toEqual([
    expect.stringMatching(
      /^tapedeck: redaction changed the skill file skill:\/\/acme\/refunds\/notes\.md: the digest cannot hold/,
    ),
  ]);
});

inFull('replay says nothing of skills where nothing was redacted', async () => {
  const db = tempStore();
  await recordSkill(db, { skillText: SECRET, options: ['--no-redact'] });
  const { read, stderr } = await readSkill(['replay', 'latest', '--db', db]);
  expect({ read, stderr }).toEqual({ read: VERIFIED, stderr: '' });
});
