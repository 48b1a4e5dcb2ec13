/** Texts that hold no secret, and look as if they might: what redaction must leave as it is. */
import { createHash } from 'node:crypto';

/** Bytes that look random and are the same in every run. */
function noise(seed: string, length: number): Buffer {
  const pieces: Buffer[] = [];
  for (let i = 0; i * 64 < length; i += 1) pieces.push(createHash('sha512').update(`${seed} ${i}`).digest());
  return Buffer.concat(pieces).subarray(0, length);
}

function hash(name: string, text: string): string {
  return createHash(name).update(text).digest('hex');
}

const NUMBERS = Array.from({ length: 40 }, (_, i) => i);

export const INNOCENT: Readonly<Record<string, string>> = {
  slugs: [
    '/news/sk-hynix-unveils-2025-hbm4-memory-roadmap',
    'https://scikit.example/blog/sk-learn-1-7-released-with-array-api-2025',
    '/shop/sk-ii-facial-treatment-essence-230ml-2024-edition',
    '/a/sk-ant-colony-optimisation-explained-in-2025',
    '/wiki/hf_transfer_benchmarks_for_large_model_downloads_2024',
    '/docs/bearer-token-based-authentication-v2',
    '/r/xai-explainable-artificial-intelligence-a-survey-of-2024',
    '/npm_config_registry_and_other_environment_variables_2025',
  ].join('\n'),
  css: [
    '.sk-fading-circle .sk-circle-fade-dot-12:before { animation-delay: -0.1s }',
    '.sk-chase-dot-with-a-long-name-2025 { width: 100% } .sk-cube-grid-9-of-9-cells-in-total { float: left }',
    '--sk-color-surface-container-highest-2: #e6e0e9; --sk-shape-corner-extra-large-28: 28px;',
    '.r8_grid-template-columns-12 { grid-template-columns: repeat(12, minmax(0, 1fr)) }',
  ].join('\n'),
  locales: 'sk-SK-x-private-2025-variant-1, sk-Latn-SK-u-ca-gregory-nu-latn-2025, eo-x-sk-lang, de-DE-1996',
  hashes: NUMBERS.flatMap((i) => [
    `commit ${hash('sha1', `${i}`)}`,
    `sha256:${hash('sha256', `${i}`)}`,
    `"integrity": "sha512-${noise(`integrity ${i}`, 64).toString('base64')}"`,
    `etag: W/"${hash('md5', `${i}`)}"`,
  ]).join('\n'),
  identifiers: [
    'this.hvs.calculateHorizontalVisibilityOfSeries(hvs.somethingElseThatIsLong)',
    'const sb_secret_key_rotation_is_enabled = glc_parse_the_whole_configuration_file_now;',
    'import { ntn_types } from "./pplx-module"; call(dapi_client, whsec_verifier)',
    'AKIAN, ASIAN_CUISINE, ABIATHAR, ACCADEMIA_DELLA_CRUSCA; SG.map((x) => x); "eyJ".repeat(20)',
    'user_id_token_type, next_page_token_field_name, max_tokens, tokenizer, secretary, passwordless',
  ].join('\n'),
  uuids: NUMBERS.map((i) => {
    const digits = hash('md5', `uuid ${i}`);
    return [0, 8, 12, 16, 20].map((from, n, all) => digits.slice(from, all[n + 1] ?? 32)).join('-');
  }).join(' '),
  prose: [
    'The bearer of this letter, aged 42, asked for basic necessities-2 pairs of socks, and a token of gratitude.',
    'Basic troubleshooting-guide-v2 explains bearer token-based-authentication-v2 and basic 3-way-handshakes.',
    'Your password must have 12 characters. Tokens: 1024. The secret: there is none. Cookie recipes follow.',
    'It is said that basic training-camp-2025-edition helps; bearer shares 2024/2025/2026 are another thing.',
    'At 10:30://noon we met bob@example.com, at http://example.com:8080/a@b, then ftp://example.org/x:y@z.',
  ].join('\n'),
  schema: JSON.stringify({
    type: 'object',
    required: ['password', 'api_key', 'client_secret'],
    properties: {
      password: { type: 'string', format: 'password', description: 'At least 12 characters.' },
      api_key: { type: 'string', pattern: '^[a-z0-9]{32}$', example: '<your api key>' },
      client_secret: { type: ['string', 'null'], default: null },
      token: { $ref: '#/definitions/token' },
      next_page_token: { type: 'string', example: 'CAUQAA1234567890abcdef' },
    },
  }),
  translations: [
    '<plist version="1.0"><dict>',
    '<key>password</key><string>Passwort</string>',
    '<key>enter_your_password</key>\n\t<string>Bitte geben Sie Ihr Passwort ein (8 Zeichen)</string>',
    '<key>api_key</key><string>API-Schlüssel</string><key>CFBundleSignature</key><string>????</string>',
    '</dict></plist>',
  ].join('\n'),
  headers: JSON.stringify({
    headers: {
      'Content-Type': 'application/json',
      ETag: '"33a64df551425fcc"',
      'X-Request-Id': 'req_0123456789',
    },
    columnHeaders: { key: 'Key', session: 'Session', signature: 'Signature', code: 'Code' },
    requestHeaders: [
      { key: 'Accept', value: 'text/html' },
      { name: 'X-Auth', value: '<your auth>' },
      { name: 'Cache-Control', value: 'max-age=604800' },
    ],
  }),
  tools: JSON.stringify({
    tools: [
      {
        name: 'set_password',
        description: 'Sets a password: the new one is asked for.',
        inputSchema: { type: 'object' },
      },
      { name: 'list_secrets', annotations: { title: 'Secrets', readOnlyHint: true } },
    ],
    nextCursor: 'eyJwYWdlIjoyLCJzaXplIjo1MH0=',
    usage: { input_tokens: 1234, output_tokens: 567, total_tokens: 1801 },
  }),
};

/** Base64 of random bytes, as of images and archives: whatever begins like a token in it does so by chance. */
export function blob(i: number, bytes: number): string {
  return noise(`blob ${i}`, bytes).toString('base64url');
}
