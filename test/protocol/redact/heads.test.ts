import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redactHeader, redactHeaders, redactUrl } from '../../../src/protocol/redact/heads.ts';

const seen = new Map<string, string>();
/** Tells secrets apart, and gives nothing of them away. */
function placeholder(secret: string): string {
  if (!seen.has(secret)) seen.set(secret, `masked-${seen.size}`);
  return seen.get(secret) ?? '';
}

const SECRET = 's3cr3t';
const maskOf = (secret: string) => placeholder(secret);

describe('headers', () => {
  test.each([
    ['Authorization', `Bearer ${SECRET}`, `Bearer ${maskOf(SECRET)}`],
    ['AUTHORIZATION', `bearer   ${SECRET}`, `bearer   ${maskOf(SECRET)}`],
    ['authorization', `Basic ${SECRET}`, `Basic ${maskOf(SECRET)}`],
    ['Proxy-Authorization', `Negotiate ${SECRET}`, `Negotiate ${maskOf(SECRET)}`],
    ['Authorization', SECRET, maskOf(SECRET)],
    ['Authorization', `Bearer ${SECRET} and more`, `Bearer ${maskOf(`${SECRET} and more`)}`],
    ['X-API-Key', SECRET, maskOf(SECRET)],
    ['Api-Key', SECRET, maskOf(SECRET)],
    ['X-Auth-Token', SECRET, maskOf(SECRET)],
    ['X-Gitlab-Token', SECRET, maskOf(SECRET)],
    ['CF-Access-Client-Secret', SECRET, maskOf(SECRET)],
    ['Ocp-Apim-Subscription-Key', SECRET, maskOf(SECRET)],
    ['x-functions-key', SECRET, maskOf(SECRET)],
    ['DPoP', SECRET, maskOf(SECRET)],
    ['Mcp-Session-Id', SECRET, maskOf(SECRET)],
    ['Cookie', `a=${SECRET}; b=2`, `a=${maskOf(SECRET)}; b=${maskOf('2')}`],
    ['Set-Cookie', `a=${SECRET}; Path=/; HttpOnly`, `a=${maskOf(SECRET)}; Path=/; HttpOnly`],
    ['Location', `/cb?code=${SECRET}&state=1`, `/cb?code=${maskOf(SECRET)}&state=1`],
  ])('%s: %s keeps what is no secret', (name, value, expected) => {
    expect(redactHeader(name, value, placeholder)).toBe(expected);
  });

  // Names that services and frameworks use for credentials.
  test.each(
    [
      'X-Auth-Key DD-API-KEY DD-APPLICATION-KEY X-Secret-Key X-Private-Key X-Master-Key X-Signing-Key X-Authorization X-Auth',
      'Authentication X-Session-Id X-Credential X-Credentials X-Passphrase OK-ACCESS-PASSPHRASE KC-API-PASSPHRASE X-Pwd X-Cookie',
      'Cookie2 X-Connection-String CB-ACCESS-SIGN X-Hub-Signature-256 X-Bearer X-Bearer-Token X-JWT X-Amz-Security-Token',
      'X-Goog-Api-Key X-RapidAPI-Key X-Shopify-Access-Token X-Vault-Token PRIVATE-TOKEN X-Figma-Token X-Slack-Signature',
      'Stripe-Signature X-Twilio-Signature X-Signature-Ed25519 X-Client-Secret X-Encryption-Key X-Storage-Key X-App-Key',
      'X-Consumer-Key X-Service-Key X-License-Key X-Admin-Key X-Access-Key X-Account-Key X-CSRF-Token X-XSRF-TOKEN',
      'X-GitHub-OTP X-User-Password X-Db-Pass X-Client-Key X-Functions-Key X-Webhook-Secret X-Api-Key-2 X-Api-Token X-Key',
      'Proxy-Authentication X-Session X-Session-Token X-Hmac Ocp-Apim-Subscription-Key Api-Secret apiToken X-Goog-IAP-JWT-Assertion',
    ].flatMap((names) => names.split(' ')),
  )('%s: is a secret in a header, a parameter, and a command line', (name) => {
    expect(redactHeader(name, SECRET, placeholder)).toBe(maskOf(SECRET));
    expect(redactHeader(name.toLowerCase(), SECRET, placeholder)).toBe(maskOf(SECRET));
    for (const way of [name, name.toLowerCase(), name.replaceAll('-', '_'), name.replaceAll('-', '%2D')])
      expect(redactUrl(`/mcp?${way}=${SECRET}&a=b`, placeholder)).toBe(`/mcp?${way}=${maskOf(SECRET)}&a=b`);
  });

  test.each([
    'Access-Control-Allow-Credentials Access-Control-Allow-Headers Sec-Fetch-Mode WWW-Authenticate Proxy-Authenticate',
    'Cache-Control ETag Idempotency-Key Surrogate-Key X-Cache-Key Sec-WebSocket-Key Sort-Key X-Request-Id Mcp-Method',
    'X-RateLimit-Remaining-Tokens X-RateLimit-Limit-Tokens Max-Tokens X-Country-Code X-Design X-Author Mcp-Name',
    'Public-Key Signature-Input Accept-Encoding Page-Token Next-Page-Token X-Compass X-Bypass Retry-After Authority',
  ])('%s are no secrets', (names) => {
    for (const name of names.split(' ')) {
      expect(redactHeader(name, 'some value', placeholder)).toBe('some value');
      expect(redactUrl(`/mcp?${name}=some`, placeholder)).toBe(`/mcp?${name}=some`);
    }
  });

  test.each([
    ['Content-Type', 'application/json'],
    ['Authorization', ''],
    ['Mcp-Protocol-Version', '2025-11-25'],
    ['Idempotency-Key', 'abc'],
    ['WWW-Authenticate', 'Bearer resource_metadata="https://a/b"'],
  ])('%s: %s is no secret', (name, value) => {
    expect(redactHeader(name, value, placeholder)).toBe(value);
  });

  test.each([
    ['Authorization', `${SECRET} other`],
    ['Authorization', `Bearer\t${SECRET}`],
    ['Authorization', ` Bearer ${SECRET}`],
    ['Authorization', `AKIA${SECRET} x`],
    ['Cookie', SECRET],
    ['Cookie', `a=1; ${SECRET}`],
    ['Cookie', `my name=${SECRET}`],
    ['Cookie', `a="${SECRET}"; b=${SECRET}=${SECRET}`],
    ['Set-Cookie', `=${SECRET}; Path=/`],
    ['Set-Cookie', `${SECRET}; Path=/`],
    ['Referer', `https://user:${SECRET}@host/?x=1`],
  ])('of %s: %s nothing of the secret is left', (name, value) => {
    expect(redactHeader(name, value, placeholder)).not.toContain(SECRET);
  });

  test('names, order and plain values of a head stay', () => {
    expect(redactHeaders(['Host', 'a', 'Cookie', 'x=1', 'cookie', 'x=1'], placeholder)).toEqual([
      'Host',
      'a',
      'Cookie',
      `x=${maskOf('1')}`,
      'cookie',
      `x=${maskOf('1')}`,
    ]);
  });

  test('whatever the secret is, only its placeholder is left', () => {
    const secret = fc.stringMatching(/^[!#-+\--:<>-~]{8,40}$/);
    fc.assert(
      fc.property(secret, (it) => {
        for (const [name, value] of [
          ['authorization', it],
          ['authorization', `Bearer ${it}`],
          ['authorization', `${it} ${it}`],
          ['cookie', `a=${it}`],
          ['cookie', it],
          ['set-cookie', it],
          ['x-api-key', it],
        ] as const) {
          expect(redactHeader(name, value, () => '')).not.toContain(it);
        }
      }),
    );
  });
});

describe('URLs', () => {
  test.each([
    `/mcp?token=${SECRET}`,
    `/mcp?ACCESS_TOKEN=${SECRET}&x=1`,
    `/mcp?a=1&api-key=${SECRET}`,
    `/mcp?apiKey=${SECRET}`,
    `/mcp?exaApiKey=${SECRET}`,
    `/mcp?access%5Ftoken=${SECRET}`,
    `/mcp?a=1;password=${SECRET}`,
    `/mcp?sessionId=${SECRET}`,
    `/mcp?session_id=${SECRET}`,
    `/cb#access_token=${SECRET}&token_type=bearer`,
    `https://${SECRET}@host/`,
    `https://user:${SECRET}@host/`,
    `https://user:p@${SECRET}@host/`,
    `//user:${SECRET}@host/`,
    `https://host/?code=${SECRET}&code_verifier=${SECRET}`,
  ])('of %s nothing of the secret is left', (url) => {
    const masked = redactUrl(url, placeholder);
    expect(masked).not.toContain(SECRET);
    expect(masked).toContain('masked-');
  });

  test.each(['/mcp', '/mcp?cursor=abc&state=1', '*', 'https://host/a@b?x=y', '/?token=', '/%zz?%zz=1'])(
    '%s has nothing to mask',
    (url) => {
      expect(redactUrl(url, placeholder)).toBe(url);
    },
  );

  test('masking again leaves placeholders only', () => {
    const once = redactUrl(`https://u:${SECRET}@h/?token=${SECRET}&a=b`, placeholder);
    expect(redactUrl(once, () => 'X')).toBe('https://X@h/?token=X&a=b');
  });
});

test('a parameter is masked whatever stands before it, in a query of any length', () => {
  const mask = (url: string) => redactUrl(url, (secret) => `<${secret.length}>`);
  expect(mask('/mcp??token=secret')).toBe('/mcp??token=<6>');
  // In quadratic time each of these would outlast the test.
  for (const piece of ['?', '&', '?a', '&a=', '#', ';', 'a']) {
    expect(mask(`/mcp?${piece.repeat(500_000)}&token=secret`)).toMatch(/token=<6>$/);
  }
});
