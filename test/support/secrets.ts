/** Secrets that are none: each has the shape that a rule knows, and is put together here so that no scanner trips. */
import { existsSync, readFileSync } from 'node:fs';

const LETTERS = 'FAKEfake';
const DIGITS = '0123456789';

function fill(length: number, alphabet: string): string {
  return alphabet.repeat(Math.ceil(length / alphabet.length)).slice(0, length);
}

const word = (length: number) => fill(length, `${LETTERS}${DIGITS}`);
const hex = (length: number) => fill(length, `${DIGITS}abcdef`);
const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

export const FAKE_JWT = [
  base64url({ alg: 'HS256', typ: 'JWT' }),
  base64url({ sub: 'nobody', fake: true }),
  word(43),
].join('.');
export const FAKE_KEY = [
  `-----BEGIN RSA ${'PRIVATE'} KEY-----`,
  word(64),
  word(64),
  `${word(30)}==`,
  `-----END RSA ${'PRIVATE'} KEY-----`,
].join('\n');

/** By the rule that finds it: the text, and what of it must not be in any file. */
export const FAKE_SECRETS: readonly { rule: string; text: string; secret: string }[] = [
  secret('private-key', FAKE_KEY, word(64)),
  secret('jwt', FAKE_JWT),
  secret('aws-access-key', `AK${'IA'}${fill(16, 'FAKEFAKE234567')}`),
  secret('github-token', `gh${'p_'}${word(36)}`),
  secret('github-token', `github_${'pat_'}${word(22)}_${word(59)}`),
  secret('gitlab-token', `gl${'pat-'}${word(20)}`),
  secret('slack-token', `xo${'xb-'}${fill(12, DIGITS)}-${word(24)}`),
  secret(
    'webhook-url',
    `https://hooks.${'slack'}.com/services/${word(9)}/${word(9)}/${word(24)}`,
    `${word(9)}/${word(9)}`,
  ),
  secret('anthropic-key', `sk-${'ant-'}api03-${word(90)}`),
  secret('openai-key', `sk-${'proj-'}${word(60)}`),
  secret('ai-key', `gs${'k_'}${word(52)}`),
  secret('ai-key', `hf${'_'}${word(34)}`),
  secret('google-key', `AI${'za'}${word(35)}`),
  secret('google-key', `GOC${'SPX-'}${word(28)}`),
  secret('stripe-key', `sk_${'live_'}${word(24)}`),
  secret('sendgrid-key', `SG${'.'}${word(22)}.${word(43)}`),
  secret('npm-token', `npm${'_'}${word(36)}`),
  secret('pypi-token', `pypi-${'AgE'}${word(60)}`),
  secret('digitalocean-token', `dop_${'v1_'}${hex(64)}`),
  secret('telegram-token', `${fill(9, DIGITS)}:${'AA'}${word(33)}`, `AA${word(33)}`),
  secret('shopify-token', `shp${'at_'}${hex(32)}`),
  secret('databricks-token', `dap${'i'}${hex(32)}`),
  secret('service-token', `lin_${'api_'}${word(40)}`),
  ...[
    ['xa', 'i-', word(80)],
    ['pp', 'lx-', word(48)],
    ['r8', '_', word(37)],
    ['tv', 'ly-', word(32)],
    ['cs', 'k-', word(48)],
  ].map((parts) => secret('ai-key', parts.join(''))),
  ...[
    ['lin_', 'oauth_', word(64)],
    ['nt', 'n_', word(46)],
    ['fig', 'd_', word(40)],
    ['ATA', 'TT3', word(60)],
    ['dckr_', 'pat_', word(27)],
    ['hv', 's.', word(24)],
    ['PM', 'AK-', `${hex(24)}-${hex(34)}`],
    ['sntr', 'ys_', word(60)],
    ['gl', 'sa_', `${word(32)}_${hex(8)}`],
    ['gl', 'c_', word(60)],
    ['NR', 'AK-', fill(27, 'FAKE0123')],
    ['sb', 'p_', hex(40)],
    ['sb_', 'secret_', word(31)],
    ['pscale_', 'tkn_', word(43)],
    ['AGE-', 'SECRET-KEY-1', fill(58, 'FAKE0123')],
  ].map((parts) => secret('service-token', parts.join(''))),
  ...['gho', 'ghu', 'ghs', 'ghr'].map((start) => secret('github-token', `${start}${'_'}${word(36)}`)),
  secret('slack-token', `xa${'pp-'}1-A${fill(10, DIGITS)}-${fill(13, DIGITS)}-${hex(40)}`),
  secret('webhook-url', `https://discord.com/api/${'webhooks'}/${fill(18, DIGITS)}/${word(68)}`, word(68)),
  secret('openai-key', `sk${'-'}${word(48)}`),
  secret('google-key', `ya${'29.'}${word(60)}`),
  secret('google-key', `1/${'/0'}${word(60)}`),
  secret('stripe-key', `wh${'sec_'}${word(32)}`),
  secret('azure-key', `DefaultEndpointsProtocol=https;Account${'Key='}${word(86)}==`, word(86)),
  secret('url-password', `postgres://fake:${word(12)}@db.example.com/x`, word(12)),
  secret('login', `curl -s ${'-u'} fake:${word(12)} https://example.com`, word(12)),
  secret('login', `machine example.com login fake ${'password'} ${word(12)}`, word(12)),
  secret('authorization', `Bearer ${word(32)}`, word(32)),
  secret('secret-value', `DB_${'PASSWORD'}=${word(18)}`, word(18)),
];

function secret(rule: string, text: string, part = text) {
  return { rule, text, secret: part };
}

/** What is shorter has base64 forms of two or three characters, which stand in a store by chance: in an id, in the name of a folder. */
const TELLING_LENGTH = 7;

/** Whether any file of a store has these bytes in it, as they are, escaped, or in base64. */
export function storeHolds(db: string, secret: string): boolean {
  if (secret.length < TELLING_LENGTH)
    throw new Error(
      `expected at least ${TELLING_LENGTH} characters to look for, got ${JSON.stringify(secret)}`,
    );
  const files = ['', '-wal', '-shm'].map((end) => `${db}${end}`).filter((file) => existsSync(file));
  const forms = [secret, JSON.stringify(secret).slice(1, -1), ...base64Forms(secret)];
  return files.some((file) => {
    const bytes = readFileSync(file);
    return forms.some((form) => bytes.includes(form));
  });
}

/** Whether the index of texts beside a store has these three characters. */
export function indexHolds(db: string, three: string): boolean {
  const files = ['', '-wal'].map((end) => `${db}.index${end}`).filter((file) => existsSync(file));
  return files.some((file) => readFileSync(file).includes(three));
}

/** What of a text's base64 does not depend on what stands around it. */
function base64Forms(text: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const length = Math.floor((text.length + before) / 3) * 3 - before;
    const coded = Buffer.from('\0'.repeat(before) + text.slice(0, length)).toString('base64');
    const own = coded.slice(before === 0 ? 0 : before + 1);
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
}
