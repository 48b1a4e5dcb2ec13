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

/** Where a token begins: not in the middle of a word. The `n` of an escaped line end is no part of one, nor is `%2F`. */
const START = String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]|%[0-9A-Fa-f]{2}))`;

const ALNUM = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function token(id: string, what: string, anchors: readonly string[], source: string): ShapeRule {
  return { id, what, anchors, pattern: new RegExp(`${START}(?:${source})`, 'dg') };
}

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
    String.raw`gh[pousr]_[A-Za-z0-9]{20,}(?:[_.-][\w-]+)*|github_pat_\w{20,}`,
  ),
  token(
    'gitlab-token',
    'GitLab tokens',
    ['glpat-', 'gldt-', 'glrt-', 'glcbt-', 'glptt-', 'glft-', 'glsoat-', 'glagent-', 'gloas-', 'glimt-'],
    String.raw`gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-[\w.-]{20,}`,
  ),
  token(
    'slack-token',
    'Slack tokens',
    ['xoxa-', 'xoxb-', 'xoxc-', 'xoxd-', 'xoxe-', 'xoxe.', 'xoxo-', 'xoxp-', 'xoxr-', 'xoxs-', 'xapp-'],
    String.raw`xox[a-es]-[\w%+/-]{10,}|xox[opr]-[\w-]{10,}|xoxe\.xox[bp]-[\w-]{10,}|xapp-[\w-]{10,}`,
  ),
  {
    id: 'webhook-url',
    what: 'URLs of Slack and Discord webhooks, which are secrets themselves',
    anchors: ['hooks.slack.com', '/api/webhooks/'],
    pattern:
      /hooks\.slack\.com\/(?:services|workflows|triggers)\/([\w/+-]{20,})|\/api\/webhooks\/\d+\/([\w-]{20,})/dg,
  },
  token('anthropic-key', 'Anthropic API keys', ['sk-ant-'], String.raw`sk-ant-[\w-]{16,}`),
  token(
    'openai-key',
    'OpenAI API keys, and such of other providers that begin with sk-',
    followed('sk-', ALNUM),
    String.raw`sk-(?!ant-)(?=[\w-]*[0-9])[\w-]{20,}`,
  ),
  token(
    'ai-key',
    'keys of Groq, xAI, Perplexity, Replicate, Tavily, Hugging Face, Cerebras',
    ['gsk_', 'xai-', 'pplx-', ...followed('r8_', ALNUM), 'tvly-', ...followed('hf_', ALNUM), 'csk-'],
    String.raw`(?:gsk_|pplx-|r8_|hf_|csk-)[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{40,}|tvly-[\w-]{20,}`,
  ),
  token(
    'google-key',
    'Google API keys, OAuth tokens and client secrets',
    ['AIza', 'ya29.', 'GOCSPX-', '1//0'],
    String.raw`AIza[\w-]{35}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,}|1//0[\w-]{30,}`,
  ),
  token(
    'stripe-key',
    'Stripe secret keys and webhook secrets',
    ['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_', 'whsec_'],
    '[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}',
  ),
  token(
    'sendgrid-key',
    'SendGrid API keys',
    followed('SG.', `${ALNUM}_-`),
    String.raw`SG\.[\w-]{16,}\.[\w-]{16,}`,
  ),
  token('npm-token', 'npm tokens', ['npm_'], 'npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])'),
  token('pypi-token', 'PyPI tokens', ['pypi-AgE'], String.raw`pypi-AgE[\w-]{40,}`),
  token(
    'digitalocean-token',
    'DigitalOcean tokens',
    ['dop_v1_', 'doo_v1_', 'dor_v1_'],
    'do[opr]_v1_[a-f0-9]{64}',
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
    'shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}',
  ),
  token('databricks-token', 'Databricks tokens', ['dapi'], 'dapi[a-f0-9]{32}(?:-[0-9])?'),
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
      'lin_(?:api|oauth)_[A-Za-z0-9]{32,}',
      'ntn_[A-Za-z0-9]{40,}',
      String.raw`figd_[\w-]{36,}`,
      String.raw`ATATT3[\w=-]{50,}`,
      String.raw`dckr_[po]at_[\w-]{20,}`,
      String.raw`hv[sb]\.[\w-]{20,}`,
      'PMAK-[a-f0-9]{24}-[a-f0-9]{34}',
      String.raw`sntry[su]_[\w+/=.-]{30,}`,
      String.raw`glsa_\w{32,}|glc_[\w+/=-]{32,}`,
      'NRAK-[A-Z0-9]{27}',
      'sbp_[a-f0-9]{40}',
      String.raw`sb_secret_[\w-]{20,}`,
      String.raw`pscale_(?:tkn|pw)_[\w.=-]{32,}`,
      'AGE-SECRET-KEY-1[0-9A-Z]{58}',
    ].join('|'),
  ),
  {
    id: 'azure-key',
    what: 'keys in Azure connection strings',
    anchors: ['AccountKey=', 'SharedAccessKey='],
    pattern: /(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/%]{20,}={0,2})/dg,
  },
  {
    id: 'url-password',
    what: 'passwords in URLs, before the @ (`scheme://user:password@host`)',
    anchors: [...'abcdefghijklmnopqrstuvwxyz0123456789'].map((end) => `${end}://`),
    mayFollow: hasUser,
    pattern: /:\/\/[^\s:/?#@"'`\\<>]{0,256}:([^\s/?#@"'`\\<>]{1,512})@/dg,
  },
  {
    id: 'authorization',
    what: 'credentials after Bearer or Basic',
    anchors: ['Bearer ', 'bearer ', 'BEARER ', 'Basic ', 'basic '],
    pattern:
      /(?<![A-Za-z])(?:bearer|basic)[ \t]+(?=[A-Za-z0-9._~+/-]*\d)([A-Za-z0-9._~+/-]{16,}={0,2})(?![="])/dgi,
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
