import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Needs } from '../../engine/read/needs.ts';
import { TapedeckError } from '../../errors.ts';
import { lineFindings, type SecretFinding, sessionFindings } from '../../inspect/secrets.ts';
import { formatCount } from '../../inspect/view/text.ts';
import { PLACE_RULES, readProfile } from '../../protocol/redact/profile.ts';
import { createRedactor, type Redactor } from '../../protocol/redact/redactor.ts';
import { SHAPE_RULES } from '../../protocol/redact/shapes.ts';
import { escapeText } from '../../protocol/text.ts';
import { openFor } from '../../sources/open-for.ts';
import { openForReading } from '../../store/file/open.ts';
import { isEngineUrl } from '../../store/file/path.ts';
import { takeInSpools } from '../../store/keep/catch-up.ts';
import { eachSession, findSession } from '../../store/read/sessions.ts';
import { type Command, type Io, ignoreErrors, pathOf, say, storeOf } from '../io.ts';
import { JSON_OPTION, READ_OPTIONS } from '../options.ts';
import { notices } from '../output.ts';
import { REDACTION_OPTIONS } from '../redaction-options.ts';
import { readingOf } from '../store.ts';

type Options = {
  what: string[];
  db: string | undefined;
  json: boolean;
  rules: boolean;
  'no-redact-rule': string[];
  'redact-rule': string[];
};

const FOUND = 1;

export const scanCommand: Command<Options> = {
  command: 'scan [what..]',
  describe: 'Look for secrets in recordings',
  builder: (args) =>
    args
      .positional('what', {
        type: 'string',
        array: true,
        default: [],
        describe: 'Sessions, files, or folders with .ndjson files; all sessions of the store without it',
      })
      .options({
        ...READ_OPTIONS,
        json: JSON_OPTION,
        ...REDACTION_OPTIONS,
        rules: { type: 'boolean', default: false, describe: 'List the rules instead' },
      })
      .example('$0 scan', 'The whole store')
      .example('$0 scan recordings/ test/staging.ndjson', 'Text recordings, before they are committed')
      .example('$0 scan --rules', 'What it looks for')
      .epilog(
        'Exits with 0 if it finds nothing, with 1 if it finds something. It prints no secret.',
      ) as never,
  async run({ what, db, json, rules, ...profile }, io) {
    // The summary on stderr is worth having even where the reader of stdout has left.
    ignoreErrors(io.stdout);
    if (rules) {
      listRules(io, json);
      return;
    }
    const without = profile['no-redact-rule'];
    // No placeholder is shown, so any key will do.
    const redactor = createRedactor(readProfile(without, profile['redact-rule'], []), () => '0'.repeat(12));
    const files = what.flatMap((one) => filesOf(io, one));
    const sessions = what.filter((one) => !isFile(io, one));
    let count = 0;
    const show = (finding: SecretFinding) => {
      count += 1;
      io.stdout.write(json ? `${JSON.stringify(dataOf(finding))}\n` : `${textOf(finding)}\n`);
    };
    for (const file of files) await scanFile(io, file, redactor, show);
    const isStoreAsked = what.length === 0 || sessions.length > 0;
    const searched = isStoreAsked ? await scanStore(io, storeOf(io, db), sessions, redactor, show) : 0;
    sayResult(io, count, searched, files.length);
    io.exitCode = count > 0 ? FOUND : 0;
  },
};

function isFile(io: Io, what: string): boolean {
  return what.endsWith('.ndjson') || what.includes('/') || existsSync(pathOf(io, what));
}

/** A file is searched, whatever its name; of a folder, its text recordings. */
function filesOf(io: Io, what: string): string[] {
  if (!isFile(io, what)) return [];
  const path = pathOf(io, what);
  if (!existsSync(path))
    throw new TapedeckError('not-found', `Expected a file or folder, but there is no ${what}.`);
  if (!statSync(path).isDirectory()) return [what];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.ndjson') && !name.includes('node_modules'))
    .map((name) => join(what, name));
}

async function scanFile(
  io: Io,
  file: string,
  redactor: Redactor,
  show: (finding: SecretFinding) => void,
): Promise<void> {
  let number = 0;
  const lines = createInterface({
    input: createReadStream(pathOf(io, file)),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  for await (const line of lines) {
    number += 1;
    for (const finding of lineFindings(file, number, Buffer.from(line), redactor)) show(finding);
  }
}

async function scanStore(
  io: Io,
  db: string,
  references: readonly string[],
  redactor: Redactor,
  show: (finding: SecretFinding) => void,
): Promise<number> {
  const { store, close } = await openToScan(io, db, references);
  try {
    const sessions =
      references.length === 0 ? [...eachSession(store)] : references.map((one) => findSession(store, one));
    for (const session of sessions)
      for (const finding of sessionFindings(store, session, redactor)) show(finding);
    return sessions.length;
  } finally {
    close();
  }
}

/** What is searched needs no index. */
async function openToScan(io: Io, db: string, references: readonly string[]) {
  if (isEngineUrl(db)) {
    const needs: Needs =
      references.length > 0 ? { of: 'sessions', references } : { of: 'matches', filter: undefined };
    return openFor(db, needs, readingOf(io));
  }
  await takeInSpools(db, notices(io));
  const store = openForReading(db);
  return { store, close: () => void store.close() };
}

function dataOf({ where, place, rule }: SecretFinding): object {
  return { ...where, place, rule };
}

function textOf({ where, place, rule }: SecretFinding): string {
  const at = 'file' in where ? `${where.file}:${where.line}` : sessionPlace(where);
  return escapeText([at, place || '(the whole)', rule].join('  '));
}

function sessionPlace(where: Exclude<SecretFinding['where'], { file: string }>): string {
  if ('seq' in where) return `${where.session}  frame ${where.seq}  ${where.channel}`;
  return 'http' in where ? `${where.session}  #${where.http}` : where.session;
}

function sayResult(io: Io, count: number, sessions: number, files: number): void {
  const searched = [
    ...(sessions > 0 ? [formatCount(sessions, 'session')] : []),
    ...(files > 0 ? [formatCount(files, 'file')] : []),
  ];
  const where = searched.join(' and ') || 'nothing';
  const found = count === 0 ? 'no secrets' : formatCount(count, 'secret');
  const advice = count > 0 && sessions > 0 ? '; redact them with: tapedeck redact <session>' : '';
  say(io, `${found} found in ${where}${advice}`);
}

function listRules(io: Io, json: boolean): void {
  for (const { id, what } of [...PLACE_RULES, ...SHAPE_RULES]) {
    io.stdout.write(json ? `${JSON.stringify({ id, what })}\n` : `${id.padEnd(20)}${what}\n`);
  }
}
