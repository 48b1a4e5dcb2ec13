/**
 * Recognises secrets by the name of a JSON member, of an assignment in a text, or of an option of a command. Names alone
 * mislead, so values count too: `progressToken` and `max_tokens` are no secrets, and neither is `"password": "string"`.
 */

/**
 * `password`: whatever its value is. `secret`: a value that looks like one word. `token`: one that also looks random,
 * because many tokens are positions in a list.
 */
export type SecretName = 'password' | 'secret' | 'token';

const PASSWORD = /(?:password|passwd|passphrase|pwd|passcode)$/;

const SECRET =
  /(?:secret|secrets?key|apikey|apikeyvalue|apisecret|accesskey|privatekey|signingkey|encryptionkey|masterkey|accountkey|sharedaccesskey|authkey|licensekey|subscriptionkey|authorization|setcookie|cookie|credential|connectionstring|(?:access|refresh|id|auth|api|bearer|bot|session|security|secret|oauth|user|personal|deploy|service)token|xapikey)$/;

const TOKEN = /(?:token|jwt|sessionid)$/;

/** They count, point to a place, or are sent in the open. */
const NO_SECRET =
  /(?:progress|page|next|previous|prev|continuation|sync|cursor|resume|cancel|cancellation|change|delta|stop|start|end|begin|bos|eos|pad|unk|mask|sep|special|max|min|first|last|input|output|total|this|per|watch|partial|pagination|scroll|position|skip|design|public|completion|prompt|cached?)(?:token|cookie|secret)$|publickey$/;

/** Returns what a name says about its value; null for a name that says nothing. */
export function secretName(name: string): SecretName | null {
  if (name.length > MAX_NAME) return null;
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  if (NO_SECRET.test(plain)) return null;
  if (PASSWORD.test(plain)) return 'password';
  if (SECRET.test(plain)) return 'secret';
  return TOKEN.test(plain) ? 'token' : null;
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

const MAX_NAME = 64;

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

/** Whether a value under such a name is taken for a secret. `value` without the scheme of an authorization. */
export function isSecretValue(kind: SecretName, value: string): boolean {
  if (isPlaceholder(value) || NO_VALUE.test(value)) return false;
  if (kind === 'password') return true;
  if (/\s/.test(value)) return false;
  if (kind === 'secret') return value.length >= MIN_SECRET;
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
  ...['passw', 'passp', 'passc', 'secret', 'token', 'cookie', 'authoriz', 'credential', 'sessionid'],
  ...['session_id', 'session-id', 'onstring', 'on_string', 'on-string'],
  ...['pwd', 'jwt'].flatMap((name) => ['"', "'", '\\', '=', ':', ' '].map((after) => name + after)),
  // API key, access key, private key, signing key, encryption key, account key, auth key, master key, license key
  ...['api', 'ess', 'ate', 'ing', 'ion', 'unt', 'uth', 'ter', 'nse'].flatMap((end) =>
    ['', '_', '-'].map((between) => `${end}${between}key`),
  ),
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
