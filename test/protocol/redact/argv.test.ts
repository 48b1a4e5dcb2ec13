import { expect, test } from 'vitest';
import { redactArgv } from '../../../src/protocol/redact/argv.ts';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { createRedactor } from '../../../src/protocol/redact/redactor.ts';
import { commandLine } from '../../../src/protocol/text.ts';

const redactor = createRedactor(PLAIN_PROFILE, () => '0'.repeat(12));
const VALUE = '[redacted:secret-value:000000000000]';
const MASKED = 'masked-000000000000';

test.each([
  [
    ['npx', '--api-key', 'hunter2', 'server'],
    ['npx', '--api-key', VALUE, 'server'],
  ],
  [['--token=hunter2 and more'], [`--token=${VALUE}`]],
  [
    ['-e', 'DB_PASSWORD=open sesame'],
    ['-e', `DB_PASSWORD=${VALUE}`],
  ],
  [
    ['--header', 'Authorization: Bearer abc'],
    ['--header', `Authorization: Bearer ${MASKED}`],
  ],
  [
    ['-H', 'X-Api-Key:abc'],
    ['-H', `X-Api-Key:${MASKED}`],
  ],
  [
    ['curl', '-s', '-u', 'me:pass word', 'https://example.com'],
    ['curl', '-s', '-u', 'me:[redacted:login:000000000000]', 'https://example.com'],
  ],
  [['https://me:pass@example.com/?token=abc&x=1'], [`https://${MASKED}@example.com/?token=${MASKED}&x=1`]],
])('%j is stored as %j', (argv, stored) => {
  expect(redactArgv(argv, redactor)).toEqual(stored);
  expect(redactArgv(stored, redactor)).toEqual(stored);
});

test.each([
  [['--max-tokens', '100']],
  [['--token', '--other']],
  [['docker', 'run', '-u', '1000:1000', 'curl']],
  [['--env', 'HOME=/home/me', 'https://example.com/a?b=c']],
])('%j is left as it is', (argv) => {
  expect(redactArgv(argv, redactor)).toEqual(argv);
});

test('a command line quotes what a shell would split', () => {
  expect(commandLine(['a', 'b c', "d'e"])).toBe("a 'b c' 'd'\\''e'");
});
