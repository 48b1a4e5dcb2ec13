/**
 * Recognises secrets by name: of a header, a query parameter, a cookie, a JSON member, a field of a form, an assignment in a
 * text, an option of a command. One list judges them all, by the words that a name ends with. Names alone mislead, so values
 * count too: `progressToken` and `max_tokens` are no secrets, and neither is `"password": "string"`.
 */

import { memoize } from '../bounded.ts';

/**
 * `password`: whatever its value is. `secret`: a value that looks like one word. `cookie`: that too, or pairs. `coded`: a word with
 * a digit, where such names also stand for titles of columns and for translations. `token`: a word that also looks random, because
 * many tokens are positions in a list, and many keys are names.
 */
export type SecretName = 'password' | 'secret' | 'cookie' | 'coded' | 'token';

const PASSWORD =
  /(?:passwords?|passwd|passphrase|pwd|passcode|(?:admin|auth|db|ftp|imap|login|mail|mongo|mysql|pg|proxy|redis|root|smtp|ssh|user)pass)$/;

const SECRET =
  /(?:secret|secretstring|(?:access|account|api|auth|encryption|licen[cs]e|master|private|secrets?|sharedaccess|signing|subscription)key|authorization|credential|connectionstring|(?:access|api|auth|bearer|bot|deploy|id|oauth|personal|refresh|secret|security|service|session|user)token)$/;

const COOKIE = /cookie$/;

const TOKEN =
  /(?:token|jwt|sessionid|(?:admin|app|application|client|consumer|functions?|hmac|ingest|integration|root|security|server|service|session|shared|sign|signature|storage|webhook|write)key|secrets|apikeys|credentials)$/;

/** They count, point to a place, or are sent in the open. */
const NO_SECRET =
  /(?:progress|page|next|previous|prev|continuation|sync|cursor|resume|cancel|cancellation|change|delta|stop|start|end|begin|bos|eos|pad|unk|mask|sep|special|max|min|first|last|input|output|total|this|per|watch|partial|pagination|scroll|position|skip|design|public|completion|prompt|cached?)(?:token|cookie|secret)$|publickey$|^accesscontrol/;

const MAX_NAME = 64;

const REMEMBERED = { maxEntries: 512, maxLength: MAX_NAME };

/** Returns what a name says about its value; null for a name that says nothing. */
export const secretName: (name: string) => SecretName | null = memoize(
  (name) =>
    // A secret may have stood as a name: what it was replaced by says what it was, and nothing about the value.
    name.length > MAX_NAME || name.includes(REPLACED) ? null : kindOf(plainName(name)),
  REMEMBERED,
);

/** A placeholder begins so. */
const REPLACED = '[redacted:';

function kindOf(plain: string): SecretName | null {
  if (NO_SECRET.test(plain)) return null;
  if (PASSWORD.test(plain)) return 'password';
  if (SECRET.test(plain)) return 'secret';
  if (COOKIE.test(plain)) return 'cookie';
  return TOKEN.test(plain) ? 'token' : null;
}

/** Letters only, small: `API-Key`, `api_key_2`, `apiKeyValue` and `api%5Fkey` are one name. */
function plainName(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/%[0-9a-f]{2}|[^a-z0-9]/g, '')
    .replace(/(?:value|b64|base64|\d+)$/, '');
}

/** As the last word of a header's or a parameter's name they mean credentials; elsewhere they mean many things. */
const LAST_IN_HEADS =
  /(?:^|[^a-z])(?:assertion|auth|authentication|bearer|credentials?|hmac|otp|pass|session|sig|sign|signature|verifier)(?:[^a-z0-9](?:ed|sha|v)\d+)?[^a-z]*$/;

/** So does the whole name, with or without an X before it. */
const WHOLE_IN_HEADS = /^x?(?:key|code|devicecode|codeverifier|dpop|sid|xamzsignature|xgoogsignature)$/;

/** Whether a header or a query parameter carries a secret by its name, whatever its value is. */
export const isSecretInHeads: (name: string) => boolean = memoize((name) => {
  const end = name.slice(-MAX_NAME);
  const plain = plainName(end);
  if (kindOf(plain) !== null || WHOLE_IN_HEADS.test(plain)) return true;
  const words = end.replaceAll(/([a-z0-9])(?=[A-Z])/g, '$1-').toLowerCase();
  return LAST_IN_HEADS.test(words) && !NO_SECRET.test(plain);
}, REMEMBERED);

/** Whether a member of JSON holds headers: `headers`, `requestHeaders`, `http_headers`. */
export function isHeadersName(name: string): boolean {
  return name.length <= MAX_NAME && /headers$/i.test(name);
}

/** What the name of a header in JSON says about its value; null for a name that says nothing. */
export function headerName(name: string): SecretName | null {
  return secretName(name) ?? (isSecretInHeads(name) ? 'coded' : null);
}

/** Names of secrets in OAuth (RFC 6749, 7521, 7636, 8628), which elsewhere mean something else. */
const OAUTH_NAMES = new Set([
  'code',
  'token',
  'code_verifier',
  'device_code',
  'user_code',
  'assertion',
  'client_assertion',
  'subject_token',
  'actor_token',
  'registration_access_token',
  'logout_token',
  'state',
  'nonce',
]);

export function isOAuthName(name: string): boolean {
  return OAUTH_NAMES.has(name) || secretName(name) !== null;
}

/** As far as the bytes show: a piece of such a name. */
export const OAUTH_SIGN = /code|token|assertion|state|nonce/i;

const MIN_SECRET = 6;

const MIN_TOKEN = 16;

/** Words that stand in schemas, examples and logs where a secret would. */
const NO_VALUE =
  /^(?:|string|text|password|passwd|secret|token|true|false|null|none|nil|undefined|required|optional|missing|invalid|empty|unset|hidden|redacted|masked|changeme|example|x+|\*+|\.+|…+|•+|[<{$%].*|your[-_ ].*|-+)$/i;

const PLACEHOLDER = /^(?:\[redacted:[a-z0-9-]+:[0-9a-f]{12}\]|masked-[0-9a-f]{12})$/;

/** Whether a secret was there, and has been replaced. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value);
}

/** Of a cookie header. */
const PAIRS = /^[\w.$-]{1,64}=[^\s;]{6}/;

/** Whether a value under such a name is taken for a secret. `value` without the scheme of an authorization. */
export function isSecretValue(kind: SecretName, value: string): boolean {
  if (isPlaceholder(value) || NO_VALUE.test(value)) return false;
  if (kind === 'password') return true;
  if (kind === 'cookie' && PAIRS.test(value)) return true;
  if (/\s/.test(value)) return false;
  if (kind === 'coded') return value.length >= MIN_SECRET && /\d/.test(value);
  if (kind !== 'token') return value.length >= MIN_SECRET;
  return value.length >= MIN_TOKEN && /\d/.test(value) && /[A-Za-z]/.test(value);
}

/** `Bearer `, `Basic ` and their like say how, not what. */
const SCHEME = /^(?:basic|bearer|digest|dpop|negotiate|token|apikey|api-key) +(?=\S)/i;

/** How much of a value under a secret name is no secret. */
export function schemeLength(value: string): number {
  return SCHEME.exec(value)?.[0].length ?? 0;
}

/** Pieces of such names, in any case: where none of them stands, no such name does. */
export const NAME_PIECES: readonly string[] = [
  ...['pass', 'secret', 'token', 'cookie', 'authoriz', 'credential', 'sessionid'],
  ...['session_id', 'session-id', 'onstring', 'on_string', 'on-string'],
  ...['pwd', 'jwt'].flatMap((name) => ['"', "'", '\\', '=', ':', ' ', '>'].map((after) => name + after)),
  // What stands before the key: a hyphen, also as `%2D` or `%5F`, or the last letter of `api`, `access`, `signing`, `app` …
  ...[...'-_dfiseghnprtc'].flatMap((last) => [`${last}key`, `${last}Key`]),
];

/** Those that are looked for in base64 too. */
export const NAMES_IN_BASE64: readonly string[] = [
  ...['password', 'secret', 'token', 'api_key', 'apikey', 'private_key', 'access_key'].flatMap((name) => [
    name,
    name.toUpperCase(),
    name.slice(0, 1).toUpperCase() + name.slice(1),
  ]),
  ...['apiKey', 'privateKey', 'accessKey', 'Token', 'Secret', 'Password'],
];
