import { createHash } from 'node:crypto';
import { test } from 'vitest';
import { NAME_PIECES, NAMES_IN_BASE64 } from '../../../src/protocol/redact/names.ts';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { createRedactor } from '../../../src/protocol/redact/redactor.ts';
import { SHAPE_RULES } from '../../../src/protocol/redact/shapes.ts';
import { expectLinear } from '../../support/growth.ts';
import { IS_FULL, sample } from '../../support/scale.ts';

const digest = (secret: string) => createHash('sha256').update(secret).digest('hex').slice(0, 12);
const redactor = createRedactor(PLAIN_PROFILE, digest);

/** What stands between two of them decides where a rule may begin anew. */
const JOINTS = ['', '-', '-a', '.', '/', ' ', '=', '":"', '\\n', '%2F', 'a1', '\n'];

function search(bytes: Buffer): void {
  redactor.payload(bytes, false, true);
  redactor.event(bytes, true);
}

/** Rules with several beginnings get each third joint with the first one, and the ones after those with the next. */
const ANCHORS = SHAPE_RULES.map(({ id, anchors }) => ({
  id,
  units: anchors.flatMap((anchor, i) =>
    JOINTS.filter((_, joint) => anchors.length < 3 || (joint + i) % 3 === 0).map((joint) => joint + anchor),
  ),
}));

/** Of those that begin with any letter, a fifth of the sample. */
function some(units: readonly string[]): readonly string[] {
  const few = sample(units);
  return IS_FULL || few.length < 20 ? few : few.filter((_, i) => i % 5 === 0);
}

test.each(ANCHORS)('the beginnings of $id, again and again, cost no more than their length', ({ units }) => {
  for (const unit of some(units)) expectLinear(unit, search);
});

test('names of secrets, again and again, cost no more than their length', () => {
  const ends = ['=', ': "', '":"', '_', '>', ' --'];
  const units = NAME_PIECES.map((name, i) => name + ends[i % ends.length]);
  for (const unit of sample(units)) expectLinear(unit, search);
  for (const name of sample(NAMES_IN_BASE64)) expectLinear(Buffer.from(name).toString('base64'), search);
});

test.each([
  ['a hyphenated text that begins like a key', '-sk-a'],
  ['the parts of a token', 'eyJhbGciOiJ.'],
  ['two parts of a token', 'eyJhAAAAAA.eyJhAAAAAA.'],
  ['names without values', 'token='],
  ['names of elements', '<password>'],
  ['quotes that stay open', 'password="\\"'],
  ['escapes', '\\u0041\\/'],
  ['a form', '&token=a&'],
  ['encoded names', '%5Btoken'],
  ['encoded signs', '%5Fa%5Fkey'],
  ['names of a property list', '<key>token</key>\n'],
  ['keys without values', '<key>token</key>                    <string>'],
  ['headers', '"headers":[{"headers":{"X-Auth":'],
  ['names of headers', '"Headers":'],
  ['options', '--password a --token='],
  ['lines of base64', `${Buffer.from('a password of some').toString('base64').repeat(3)}\n`],
  ['placeholders', 'password="[redacted:a:0123456789ab]x"'],
])('%s cost no more than their length', (_what, unit) => expectLinear(unit, search));

test('a window that grows is looked at once, however many signs are in it', () => {
  // A run that a rule takes all of, and other signs far apart in it.
  expectLinear(`Basic 1${'A'.repeat(20_000)}token_${'A'.repeat(20_000)}ghp_${'A'.repeat(20_000)}`, search);
});
