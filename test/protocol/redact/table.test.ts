/**
 * The table of the secrets that are found and of the innocent text that is harmed. `npm run secrets` prints it at its full size.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { redactArgv } from '../../../src/protocol/redact/argv.ts';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { createRedactor } from '../../../src/protocol/redact/redactor.ts';
import { blob, INNOCENT } from '../../support/innocent.ts';
import { IS_FULL, scale } from '../../support/scale.ts';
import { FAKE_SECRETS } from '../../support/secrets.ts';
import { ROOT } from '../../support/tapedeck.ts';

const digest = (secret: string) => createHash('sha256').update(secret).digest('hex').slice(0, 12);
const redactor = createRedactor(PLAIN_PROFILE, digest);

/** What is left of a text in a place; null: the place cannot hold it as it is. */
type Place = (name: string, text: string) => string | null;

function payload(text: string, isForeign = false): string {
  return redactor.payload(Buffer.from(text), isForeign, false)?.payload.toString() ?? text;
}

function inUrl(text: string, left: () => string): string | null {
  return encodeURIComponent(text) === text ? left() : null;
}

function wrapped(text: string): string {
  const coded = Buffer.from(`${'x'.repeat(30)} ${text}\n${'y'.repeat(60)}`).toString('base64');
  const lines = coded.match(/.{1,76}/g) ?? [];
  const left = payload(`before\n${lines.join('\r\n')}\r\n`).replaceAll(/\s|before/g, '');
  // As anybody would read it again.
  return Buffer.from(left, 'base64').toString() + left;
}

const PLACES: Readonly<Record<string, Place>> = {
  header: (name, text) => (/[\r\n]/.test(text) ? null : redactor.header(`X-${name}`, text)),
  query: (name, text) => inUrl(text, () => redactor.url(`https://example.com/mcp?a=1&${name}=${text}&b=2`)),
  cookie: (name, text) => inUrl(text, () => redactor.header('Cookie', `a=1; ${name}=${text}`)),
  JSON: (name, text) => payload(JSON.stringify({ result: { [name]: text, list: [text.length] } })),
  headers: (name, text) =>
    payload(
      JSON.stringify({
        result: { Headers: { [`X-${name}`]: text, Accept: 'a/b' }, extra_headers: { [`x-${name}`]: [text] } },
      }),
    ),
  pairs: (name, text) =>
    payload(
      JSON.stringify({
        requestHeaders: [
          { name: 'Accept', value: 'a/b' },
          { name: `X-${name}`, value: text },
          { value: text, key: `X-${name}` },
        ],
      }),
    ),
  form: (name, text) => inUrl(text, () => payload(`grant=a&${name}=${text}&b=2`, true)),
  encoded: (name, text) =>
    inUrl(text, () => payload(`a=1&config%5B${name.replaceAll('_', '%5F')}%5D=${text}&b=2`)),
  plist: (name, text) =>
    payload(`<plist><dict>\n\t<key>${name}</key>\n\t<string>${text}</string>\n</dict></plist>`),
  env: (name, text) => payload(JSON.stringify({ env: [`${name.toUpperCase()}=${text}`] })),
  prose: (name, text) => payload(`It was set up with ${name}: ${text}\nand then it ran.`),
  wrapped: (name, text) => wrapped(`${name}=${text}`),
  argument: (name, text) => redactArgv(['run', `--${name}`, text], redactor).join(' '),
};

const VALUE = `aB3${'dE6fG7hI8jK9'}lM0nP`;

const NAMES = [
  'password',
  'api_key',
  'client_secret',
  'access_token',
  'db_passwd',
  'private_key',
  'auth_token',
];

const IN_HEADS = ['key', 'auth', 'signature', 'authentication', 'bearer'];

/** By what it is found, and the texts that it is planted with: under a name, with what must be gone. */
const PLANTED: readonly { what: string; name: string; text: string; secret: string; places: string[] }[] = [
  ...FAKE_SECRETS.map(({ rule, text, secret }) => ({
    ...{ what: rule, name: 'note', text, secret: secret.split('\n')[0] ?? '' },
    places: Object.keys(PLACES),
  })),
  ...NAMES.map((name) => ({
    ...{ what: 'by name', name, text: VALUE, secret: VALUE },
    places: Object.keys(PLACES),
  })),
  ...IN_HEADS.map((name) => ({
    ...{ what: 'by name in heads', name, text: VALUE, secret: VALUE },
    places: ['header', 'query', 'cookie', 'headers', 'pairs'],
  })),
];

type Total = { found: number; planted: number };

function recall(): { rows: string[][]; missed: string[]; totals: Map<string, Total> } {
  const missed: string[] = [];
  const totals = new Map<string, Total>();
  const rows = [...new Set(PLANTED.map(({ what }) => what))].map((what) => {
    const cells = Object.entries(PLACES).map(([place, plant]) => {
      const tried = PLANTED.filter((one) => one.what === what && one.places.includes(place))
        .map((one) => ({ ...one, left: plant(one.name, one.text) }))
        .filter(({ left }) => left !== null);
      const left = tried.filter((one) => one.left?.includes(one.secret));
      missed.push(...left.map(({ name, text }) => `${what} in ${place}: ${name} ${text.slice(0, 40)}`));
      const { found, planted } = totals.get(place) ?? { found: 0, planted: 0 };
      totals.set(place, { found: found + tried.length - left.length, planted: planted + tried.length });
      return tried.length === 0 ? '–' : `${tried.length - left.length}/${tried.length}`;
    });
    return [what, ...cells];
  });
  return { rows: [['secret', ...Object.keys(PLACES)], ...rows], missed, totals };
}

/** The code of the project itself, without the lines that are about secrets. */
function code(): string[] {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/redact|secret/.test(file))
    .toSorted();
  return files.slice(0, scale(files.length, 60)).map((file) => readFileSync(join(ROOT, 'src', file), 'utf8'));
}

/** In MB. */
const RANDOM_BYTES = 60;

const HARMLESS: Readonly<Record<string, () => Iterable<string>>> = {
  ...Object.fromEntries(
    Object.entries(INNOCENT).map(([kind, text]) => [kind, () => [text, ...text.split('\n')]]),
  ),
  code,
  *'base64url of random bytes'() {
    for (let i = 0; i < scale(RANDOM_BYTES, 4); i += 1) yield blob(i, scale(1024, 256) * 1024);
  },
};

function harm(): { rows: string[][]; harmed: string[] } {
  const harmed: string[] = [];
  const rows = Object.entries(HARMLESS).map(([kind, texts]) => {
    let [count, bytes, before] = [0, 0, harmed.length];
    for (const text of texts()) {
      count += 1;
      bytes += text.length;
      const message = JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        result: { content: [{ type: 'text', text }] },
      });
      if (payload(text) !== text || payload(message) !== message) harmed.push(`${kind}: ${changeOf(text)}`);
    }
    return [kind, String(count), String(bytes), String(harmed.length - before)];
  });
  return { rows: [['innocent', 'texts', 'bytes', 'harmed'], ...rows], harmed };
}

function changeOf(text: string): string {
  const left = payload(text);
  const at = [...left].findIndex((character, i) => character !== text[i]);
  return `${text.slice(Math.max(0, at - 30), at + 30)} → ${left.slice(Math.max(0, at - 30), at + 60)}`;
}

function table(rows: readonly string[][]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const FOUND = recall();

test('every secret is found in every place that can hold it, and no innocent text is harmed', () => {
  const left = harm();
  if (IS_FULL) process.stdout.write(`\n${table(FOUND.rows)}\n\n${table(left.rows)}\n`);
  expect(FOUND.missed).toEqual([]);
  expect(left.harmed).toEqual([]);
});

/** The places as the page about secrets calls them. */
const IN_WORDS: Readonly<Record<string, string>> = {
  headers: 'object of headers',
  pairs: 'list of headers',
  encoded: 'form with encoded names',
  plist: 'property list',
  env: 'list of variables',
  wrapped: 'wrapped base64',
  argument: 'argument of a command',
};

test('the page about secrets has the figures of the table', () => {
  const page = readFileSync(join(ROOT, 'docs/secrets.md'), 'utf8');
  const [, rows = ''] = /\| place \|.*\n\|[-|]+\n((?:\|.*\n)+)/.exec(page) ?? [];
  const shown = rows.split('\n').flatMap((row) => {
    const [places = [], figures = []] = row
      .split('|')
      .slice(1, 3)
      .map((cell) => cell.trim().split(', '));
    return places.map((place, i) => `${place}: ${figures[i]}`);
  });
  const printed = [...FOUND.totals].map(
    ([place, { found, planted }]) => `${IN_WORDS[place] ?? place}: ${found} of ${planted}`,
  );
  expect(shown.toSorted()).toEqual(printed.toSorted());
  expect(page).toContain(`and ${RANDOM_BYTES} MB of random bytes`);
});
