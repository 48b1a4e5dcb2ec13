/**
 * The shapes of secrets that can be recognised wherever they stand. Each rule has an id, by which users switch it off, and
 * literals (`anchors`) with which every match begins. So traffic is searched for all rules at once (signs.ts), and the patterns
 * run only where an anchor was found.
 */

export type ShapeRule = {
  id: string;
  /** What it finds, as a noun. */
  what: string;
  /** At least four characters each, plain ASCII. */
  anchors: readonly string[];
  /** Global, with indices. What it matches is replaced, or what a group of it matched. */
  pattern: RegExp;
  /** Whether what follows an anchor may still become a match, as far as the bytes go; for anchors that are common. */
  mayFollow?: (bytes: Uint8Array, from: number) => boolean;
};

/**
 * Where a token begins: not inside a run of token characters. The `n` of an escaped line end is no part of one, nor is
 * `%2F`. So one run is tried once, however often the beginning of a token stands in it: hostile text costs no more than
 * its length.
 */
const START = String.raw`(?:(?<![\w-])|(?<=\\[nrtbf]|%[0-9A-Fa-f]{2}))`;

/** No documented token is longer; base64 of a file is. */
const MOST = 1024;

const ALNUM = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function token(id: string, what: string, anchors: readonly string[], source: string): ShapeRule {
  return { id, what, anchors, pattern: new RegExp(`${START}(?:${source})`, 'dg') };
}

/**
 * A whole run of characters, `least` to `most` of them. A longer run is no token: it may be an image or an archive in base64,
 * in which these literals turn up by chance.
 */
function run(characters: string, least: number, most = MOST): string {
  return `[${characters}]{${least},${most}}(?![${characters}])`;
}

const WORD = String.raw`\w-`;

const ALPHANUMERIC = 'A-Za-z0-9';

/** The literals that `start` and one of the characters make. */
function followed(start: string, characters: string): string[] {
  return [...characters].map((character) => start + character);
}

const KEY_LABEL = '(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?';

const KEY_TEXT = String.raw`[A-Za-z0-9+/=\s\\:,.*>-]`;

export const SHAPE_RULES: readonly ShapeRule[] = [
  {
    id: 'private-key',
    what: 'private keys in PEM, whole ones and such as break off',
    anchors: ['-----BEGIN '],
    pattern: new RegExp(
      `-----BEGIN ${KEY_LABEL}-----(?:(?:(?!-----)${KEY_TEXT}){0,16384}-----END ${KEY_LABEL}-----|[A-Za-z0-9+/=\\s\\\\]*)`,
      'dg',
    ),
  },
  token(
    'jwt',
    'JSON Web Tokens, signed and encrypted ones',
    followed('eyJ', 'hH0rRlLjJqQ46ipzN'),
    String.raw`eyJ[\w-]{6,2048}\.(?:[\w-]{6,}\.[\w-]*|[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+)`,
  ),
  token(
    'aws-access-key',
    'AWS access key ids',
    ['AKIA', 'ASIA', 'ABIA', 'ACCA'],
    '(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])',
  ),
  token(
    'github-token',
    'GitHub tokens',
    ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'],
    String.raw`gh[pousr]_(?=[A-Za-z0-9]{20})${run(WORD, 20)}(?:\.[\w-]{1,4096}){0,2}|github_pat_${run(WORD, 20)}`,
  ),
  token(
    'gitlab-token',
    'GitLab tokens',
    ['glpat-', 'gldt-', 'glrt-', 'glcbt-', 'glptt-', 'glft-', 'glsoat-', 'glagent-', 'gloas-', 'glimt-'],
    `gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-${run(String.raw`\w.-`, 20, 512)}`,
  ),
  token(
    'slack-token',
    'Slack tokens',
    ['xoxa-', 'xoxb-', 'xoxc-', 'xoxd-', 'xoxe-', 'xoxe.', 'xoxo-', 'xoxp-', 'xoxr-', 'xoxs-', 'xapp-'],
    `xox[a-es]-${run(String.raw`\w%+/-`, 10, 512)}|(?:xox[opr]|xoxe\\.xox[bp]|xapp)-${run(WORD, 10)}`,
  ),
  {
    id: 'webhook-url',
    what: 'URLs of Slack and Discord webhooks, which are secrets themselves',
    anchors: ['hooks.slack.com', '/api/webhooks/'],
    pattern:
      /hooks\.slack\.com\/(?:services|workflows|triggers)\/([\w/+-]{20,256})(?![\w/+-])|\/api\/webhooks\/\d{1,20}\/([\w-]{20,256})(?![\w-])/dg,
  },
  token('anthropic-key', 'Anthropic API keys', ['sk-ant-'], `sk-ant-[a-z]{2,8}[0-9]{2}-${run(WORD, 16)}`),
  token(
    'openai-key',
    'OpenAI API keys, and such of other providers that begin with sk-',
    followed('sk-', ALNUM),
    [
      `sk-(?:proj|svcacct|admin|service|None)-${run(WORD, 20)}`,
      'sk-or-v1-[a-f0-9]{64}(?![A-Za-z0-9])',
      'sk-lf-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}(?![A-Za-z0-9])',
      // One piece, unlike the words of a style's or an article's name: sk-hynix-unveils-2025.
      String.raw`sk-(?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9]{20,128}(?![\w-])`,
    ].join('|'),
  ),
  token(
    'ai-key',
    'keys of Groq, xAI, Perplexity, Replicate, Tavily, Hugging Face, Cerebras',
    ['gsk_', 'xai-', 'pplx-', ...followed('r8_', ALNUM), 'tvly-', ...followed('hf_', ALNUM), 'csk-'],
    `(?:gsk_|pplx-|r8_|hf_|csk-)${run(ALPHANUMERIC, 30)}|xai-${run(ALPHANUMERIC, 40)}|tvly-${run(WORD, 20)}`,
  ),
  token(
    'google-key',
    'Google API keys, OAuth tokens and client secrets',
    ['AIza', 'ya29.', 'GOCSPX-', '1//0'],
    `AIza${run(WORD, 35, 35)}|ya29\\.${run(String.raw`\w.-`, 20, 2048)}|GOCSPX-${run(WORD, 20)}|1//0${run(WORD, 30)}`,
  ),
  token(
    'stripe-key',
    'Stripe secret keys and webhook secrets',
    ['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_', 'whsec_'],
    `[rs]k_(?:live|test)_${run(ALPHANUMERIC, 16)}|whsec_${run('A-Za-z0-9+/=', 24)}`,
  ),
  token(
    'sendgrid-key',
    'SendGrid API keys',
    followed('SG.', `${ALNUM}_-`),
    String.raw`SG\.[\w-]{16,128}\.${run(WORD, 16, 128)}`,
  ),
  token('npm-token', 'npm tokens', ['npm_'], 'npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])'),
  token('pypi-token', 'PyPI tokens', ['pypi-AgE'], `pypi-AgE${run(WORD, 40)}`),
  token(
    'digitalocean-token',
    'DigitalOcean tokens',
    ['dop_v1_', 'doo_v1_', 'dor_v1_'],
    'do[opr]_v1_[a-f0-9]{64}(?![A-Za-z0-9])',
  ),
  {
    id: 'telegram-token',
    what: 'tokens of Telegram bots',
    anchors: [...'0123456789'].map((digit) => `${digit}:AA`),
    pattern: /(?<=\d{8,10}):(AA[\w-]{33})(?![\w-])/dg,
  },
  token(
    'shopify-token',
    'Shopify tokens',
    ['shpat_', 'shpca_', 'shppa_', 'shpss_'],
    'shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}(?![A-Za-z0-9])',
  ),
  token('databricks-token', 'Databricks tokens', ['dapi'], 'dapi[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])'),
  token(
    'service-token',
    'tokens of Linear, Notion, Figma, Atlassian, Docker Hub, Vault, Postman, Sentry, Grafana, New Relic, Supabase, PlanetScale, age',
    [
      'lin_api_',
      'lin_oauth_',
      'ntn_',
      'figd_',
      'ATATT3',
      'dckr_pat_',
      'dckr_oat_',
      'hvs.',
      'hvb.',
      'PMAK-',
      'sntrys_',
      'sntryu_',
      'glsa_',
      'glc_',
      'NRAK-',
      'sbp_',
      'sb_secret_',
      'pscale_tkn_',
      'pscale_pw_',
      'AGE-SECRET-KEY-1',
    ],
    [
      `lin_(?:api|oauth)_${run(ALPHANUMERIC, 32)}`,
      `ntn_${run(ALPHANUMERIC, 40)}`,
      `figd_${run(WORD, 36)}`,
      `ATATT3${run(String.raw`\w=-`, 50)}`,
      `dckr_[po]at_${run(WORD, 20)}`,
      // A digit, unlike the name of a member or of a column.
      String.raw`(?:hv[sb]\.|sb_secret_)(?=[A-Za-z_-]{0,64}[0-9])${run(WORD, 20)}`,
      'PMAK-[a-f0-9]{24}-[a-f0-9]{34}(?![A-Za-z0-9])',
      `sntry[su]_${run(String.raw`\w+/=.-`, 30)}`,
      String.raw`glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}(?!\w)`,
      `glc_${run('A-Za-z0-9+/=', 32)}`,
      'NRAK-[A-Z0-9]{27}(?![A-Za-z0-9])',
      'sbp_[a-f0-9]{40}(?![A-Za-z0-9])',
      `pscale_(?:tkn|pw)_${run(String.raw`\w.=-`, 32)}`,
      'AGE-SECRET-KEY-1[0-9A-Z]{58}(?![A-Za-z0-9])',
    ].join('|'),
  ),
  {
    id: 'azure-key',
    what: 'keys in Azure connection strings',
    anchors: ['AccountKey=', 'SharedAccessKey='],
    pattern: /(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/%]{20,256}={0,2})(?![A-Za-z0-9+/%=])/dg,
  },
  {
    id: 'url-password',
    what: 'passwords in URLs, before the @ (`scheme://user:password@host`)',
    anchors: [...'abcdefghijklmnopqrstuvwxyz0123456789'].map((end) => `${end}://`),
    mayFollow: hasUser,
    pattern: /:\/\/[^\s:/?#@"'`\\<>]{0,256}:([^\s/?#@"'`\\<>]{1,512})@/dg,
  },
  {
    id: 'login',
    what: 'passwords after a user: of `curl -u user:…`, of .netrc',
    anchors: [' -u ', ' --user ', ' --user=', ' -U ', ' --proxy-user ', 'machine ', 'default login '],
    // Not of another command after a pipe, where -u takes a user and a group.
    pattern:
      / (?:-[uU] |--(?:proxy-)?user[ =])(?:\\*["'])?[^\s:"'\\$<>{}]{1,128}:([^\s"'\\$<>{}]{1,256})(?<=\bcurl(?:\.exe)?[^\n|;&]{0,600})|(?<![\w-])(?:machine\s{1,16}\S{1,256}|default)\s{1,16}login\s{1,16}\S{1,256}\s{1,16}password\s{1,16}([^\s"'\\]{1,256})/dg,
  },
  {
    id: 'authorization',
    what: 'credentials after Bearer or Basic',
    anchors: ['Bearer ', 'bearer ', 'BEARER ', 'Basic ', 'basic '],
    // Not words and numbers joined by hyphens, as in "bearer token-based-authentication-v2".
    pattern:
      /(?<![A-Za-z])(?:bearer|basic)[ \t]{1,16}(?!(?:[a-z]+|v?\d{1,4})(?:[._~+/-](?:[a-z]+|v?\d{1,4}))*[.~/-]*(?![\w+=]))(?=[A-Za-z0-9._~+/-]*\d)([A-Za-z0-9._~+/-]{16,}={0,2})(?![="])/dgi,
  },
];

/** Characters that end the authority of a URL, or the URL itself. */
const AFTER_AUTHORITY = new Set([...'/?#"\'`\\<> \t\r\n'].map((character) => character.charCodeAt(0)));

const AT = 0x40;

const MAX_AUTHORITY = 800;

/** By far the most URLs have nobody before their host. */
function hasUser(bytes: Uint8Array, from: number): boolean {
  for (let i = from; i < from + MAX_AUTHORITY; i += 1) {
    const byte = bytes[i];
    if (byte === undefined || byte === AT) return true;
    if (AFTER_AUTHORITY.has(byte)) return false;
  }
  return true;
}
