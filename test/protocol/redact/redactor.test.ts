import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PLAIN_PROFILE, type RedactionProfile, ruleIds } from '../../../src/protocol/redact/profile.ts';
import { createRedactor, type Redactor } from '../../../src/protocol/redact/redactor.ts';
import { SHAPE_RULES } from '../../../src/protocol/redact/shapes.ts';
import { expectLinear } from '../../support/growth.ts';
import { scale } from '../../support/scale.ts';
import { FAKE_JWT, FAKE_KEY, FAKE_SECRETS } from '../../support/secrets.ts';

const digest = (secret: string) => createHash('sha256').update(secret).digest('hex').slice(0, 12);
const redactor = createRedactor(PLAIN_PROFILE, digest);
const TOKEN = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';

function withProfile(profile: Partial<RedactionProfile>): Redactor {
  return createRedactor({ ...PLAIN_PROFILE, ...profile }, digest);
}

function redact(text: string, by = redactor): { text: string; rules: readonly string[] } {
  const found = by.payload(Buffer.from(text), false, false);
  return { text: found?.payload.toString() ?? text, rules: found?.rules ?? [] };
}

function call(args: unknown): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'x', arguments: args },
  });
}

describe('every rule', () => {
  test.each(FAKE_SECRETS)(
    '$rule is found in a text, in JSON, in JSON in JSON, in base64',
    ({ rule, text, secret }) => {
      const forms = [
        text,
        `a log line: ${text} and more`,
        call({ value: text }),
        call([`before ${text} after`]),
        call({ value: JSON.stringify({ inner: JSON.stringify([text]) }) }),
        call({ value: Buffer.from(`x ${text}`).toString('base64') }),
        call({ value: Buffer.from(`xy ${text} z`).toString('base64') }),
        call({ value: Buffer.from(JSON.stringify({ some: text })).toString('base64url') }),
      ];
      for (const form of forms) {
        const found = redact(form);
        expect(found.rules, form).toContain(rule);
        expect(found.text).toContain(`[redacted:${rule}:`);
        expect(found.text).not.toContain(secret);
        expect(found.text).not.toContain(JSON.stringify(secret).slice(1, -1));
        if (form.startsWith('{')) expect(() => JSON.parse(found.text)).not.toThrow();
        expect(redact(found.text)).toEqual({ text: found.text, rules: [] });
      }
    },
  );

  test('has a planted secret', () => {
    const planted = new Set(FAKE_SECRETS.map(({ rule }) => rule));
    for (const { id } of SHAPE_RULES) expect(planted).toContain(id);
    expect(new Set(ruleIds()).size).toBe(ruleIds().length);
  });

  test.each(SHAPE_RULES)('$id finds nothing when it is switched off', ({ id }) => {
    for (const { rule, text } of FAKE_SECRETS) {
      if (rule === id) expect(redact(text, withProfile({ without: [id] })).rules).not.toContain(id);
    }
  });
});

test('a character of a secret that is escaped hides nothing', () => {
  const hidden = [...TOKEN]
    .map((c, i) => (i % 3 === 1 ? `\\u00${c.charCodeAt(0).toString(16)}` : c))
    .join('');
  expect(redact(`{"a":"${hidden}"}`).text).toBe(redact(`{"a":"${TOKEN}"}`).text);
  expect(redact(`no json "${hidden}`).rules).toEqual(['github-token']);
  expect(redact(`{"\\u0070assword":"hunter2"}`).rules).toEqual(['secret-value']);
  for (const text of [
    '{"a":"https:\\/\\/me:hunter2@example.com"}',
    'a log of "https:\\/\\/me:hunter2@example.com"',
  ])
    expect(redact(text).text).toMatch(/me:\[redacted:url-password:\w{12}\]@example/);
});

test('what surrounds a secret stays byte by byte', () => {
  const text = `{ "a" : "\\u00e9\\/ ${TOKEN} \\n\\"",\t"b":1.0, "a":1E3 }`;
  expect(redact(text).text).toBe(text.replace(TOKEN, redact(TOKEN).text));
});

test('a private key with escaped line ends is one secret', () => {
  expect(redact(call({ key: `${FAKE_KEY}\n` })).text).toMatch(
    /"key":"\[redacted:private-key:[0-9a-f]{12}\]\\n"/,
  );
});

describe('by name', () => {
  test.each([
    ['password', 'correct horse battery staple'],
    ['db_password', 'y'],
    ['clientSecret', 'hunter22'],
    ['API-Key', 'abcdef'],
    ['access_token', 'opaque-value'],
    ['authToken', 'abcdefgh'],
    ['GITHUB_TOKEN', 'abcdefgh12345678'],
    ['DISCORD_TOKEN', 'abcdefgh12345678.abcdef'],
    ['discordBotToken', 'abcdefgh'],
    ['TWILIO_AUTH_TOKEN', 'abcdefgh'],
    ['TWILIO_API_KEY_SECRET', 'abcdefgh'],
    ['DD-APPLICATION-KEY', 'abcdefgh12345678'],
    ['X-Auth-Key', 'abcdefgh'],
    ['cookie', 'sid=abcdefgh; theme=dark'],
    ['SMTP_PASS', 'y'],
    ['apiKeyValue', 'abcdefgh'],
    ['API_KEY_2', 'abcdefgh'],
  ])('the value of %s is replaced', (name, value) => {
    expect(redact(JSON.stringify({ [name]: value })).text).toMatch(
      /^\{"[\w-]+":"\[redacted:secret-value:[0-9a-f]{12}\]"\}$/,
    );
  });

  test.each([
    '{"progressToken":"abcdefgh12345678"}',
    '{"nextPageToken":"abcdefgh12345678"}',
    '{"max_tokens":4096,"token":17,"tokens":["abcdefgh12345678"]}',
    '{"token":"next","signature":"f(a, b)","code":"E404","auth":"required","key":"name","bypass":"yes"}',
    '{"credentials":"include","secrets":"inherit","appKey":"my-app","cookie":"chocolate chip","sessionKey":"name"}',
    '{"token_count":12345678,"max_tokens":"4096","usage":{"input_tokens":12,"tokens":"12345678abcdefgh"}}',
    '{"properties":{"password":{"type":"string"},"api_key":{"type":"string"}},"required":["password","api_key"]}',
    '{"password":"string","secret":"<your secret>","api_key":"{{API_KEY}}","token":null}',
    '{"headers":{"key":"Schlüssel","session":"Sitzung","signature":"Unterschrift","code":"Code 17"}}',
    '{"headers":[{"key":"Content-Type","value":"application/json"},{"key":"X-Session","value":"none"}]}',
    '{"headers":{"X-Auth":{"schema":{"type":"string","format":"uuid4"},"description":"auth2"}}}',
    '{"headers":{"X-Auth":"%AUTH_2%","Authentication":"Bearer <token2>","X-Key":"{{key2}}"}}',
    '{"headers":["key","session1"],"rows":[["auth","signature12"]],"session":"session12"}',
    '<key>password</key><string>Passwort</string><key>SECRET</key><string>Please tell us 1 secret</string>',
    '<key>token</key><integer>1234567</integer><key>password</key><true/><key>next</key><string>password12</string>',
    'max%5Ftokens=123456&filter%5Bsort%5D=password&progress%5Ftoken=abcdef123456789012',
    'The password must not be empty, and the token is refreshed.',
    'https://example.com/a?page=2&cursor=abc',
  ])('%s is left as it is', (text) => {
    expect(redact(text)).toEqual({ text, rules: [] });
  });

  const VALUE = `abcdefgh${'12345678'}`;

  test.each([
    `{"name":"API_KEY","value":"${VALUE}"}`,
    `{ "value" : "${VALUE}", "other": [1, {"a":"b"}], "key" : "db_password" }`,
    `{"env":[{"name":"A","value":"b"},{"name":"GITHUB_TOKEN","value":"${VALUE}"}]}`,
    `{"headers":[{"Name":"Authorization","Value":"Bearer ${VALUE}"}]}`,
    `{"headers":{"X-Auth":"${VALUE}"}}`,
    `{"HTTP_HEADERS" : {"x-signature":["${VALUE}"],"Authentication":"Bearer ${VALUE}"}}`,
    `{"extraHeaders":{"Mcp-Auth":{"value":"${VALUE}"}}}`,
    `{"requestHeaders":[{"name":"Accept","value":"a/b"},{"value":"${VALUE}","name":"X-Auth"}]}`,
    `{"\\u0068eaders":{"X-Auth":"${VALUE}"}}`,
    JSON.stringify({ text: JSON.stringify({ headers: { 'X-Auth': VALUE } }, null, 2) }),
    `{"password":{"value":"${VALUE}"}}`,
    `{"client_secret":{"type":"string","plaintext":"${VALUE}"}}`,
    `{"passwords":["${VALUE}"],"apiKeys":["${VALUE}"],"credentials":["${VALUE}"],"secrets":["${VALUE}"]}`,
    `{"apiKeys":"${VALUE}"}`,
    `{"env":["API_KEY=${VALUE}"]}`,
    `{"a":"<config><password>${VALUE}</password></config>"}`,
    `<ns:Password xml:id="a">${VALUE}</ns:Password>`,
    `{"command":"mysql --user me --password ${VALUE} db"}`,
    `user%5Bpassword%5D=${VALUE}&user%5Bname%5D=me`,
    `a=b&api%5fkey=${VALUE}&client%2Dsecret=${VALUE}&next%3Fdb%5Fpass=${VALUE}`,
    `<key>API_KEY</key>\n\t<string>${VALUE}</string>`,
    `{"a":"<dict><key>dbPassword</key><string>${VALUE}</string></dict>"}`,
    `run --api-key "${VALUE}" now`,
    `{"command":"curl -s -u me:${VALUE} https://example.com"}`,
    `curl --user "me:${VALUE}" https://example.com`,
    `machine example.com\n  login me\n  password ${VALUE}\n`,
    `default login me password ${VALUE}`,
    `{"a":"DISCORD_TOKEN=${VALUE}"}`,
    `passwords: ${VALUE}`,
  ])('the secret in %s is found, wherever its name stands', (text) => {
    const found = redact(text).text;
    expect(found).not.toContain(VALUE);
    expect(found).toContain('[redacted:');
    if (text.startsWith('{')) expect(() => JSON.parse(found)).not.toThrow();
    expect(redact(found)).toEqual({ text: found, rules: [] });
  });

  test.each([
    '{"name":"get_token","description":"Gets a token","value":"of sixteen digits"}',
    '{"name":"password","value":"Ihr Kennwort"}',
    '{"key":"token","value":"next"}',
    '{"errors":{"password":["is too short (minimum is 8 characters)","too_short_by_2"]}}',
    '{"password":{"type":"string","description":"At least 8","title":"Secret1"}}',
    '{"secrets":["API_KEY","DB_PASSWORD"],"credentials":["same-origin"]}',
    'usage: login <user> <password> [--token TOKEN] <file>',
    'Use --password to be asked for it, and --token when you have one.',
    'sudo -u www-data:www-data id; docker run -u 1000:1000 alpine',
    'the machine with that login and password is gone',
  ])('%s is left as it is', (text) => {
    expect(redact(text)).toEqual({ text, rules: [] });
  });

  test('the scheme of an authorization stays', () => {
    expect(redact('{"Authorization":"Bearer abc"}').text).toMatch(/"Bearer \[redacted:secret-value:/);
  });

  test('OAuth has more such names, in JSON and in forms', () => {
    const form = Buffer.from(
      'grant_type=authorization_code&code=SplxlOBeZQ&code_verifier=dBjftJeZ4CVP&client_id=me',
    );
    const found = redactor.payload(form, true, false)?.payload.toString();
    expect(found).toMatch(
      /^grant_type=authorization_code&code=\[redacted:[^&]*\]&code_verifier=\[redacted:[^&]*\]&client_id=me$/,
    );
    const json = redactor.payload(
      Buffer.from('{"device_code":"GmRhmhcxhw","error":"slow_down","code":"SplxlOBeZQ"}'),
      true,
      false,
    );
    expect(json?.payload.toString()).not.toMatch(/GmRh|Splx/);
  });
});

test('ids, methods and tokens of progress are never replaced', () => {
  const text = `{"jsonrpc":"2.0","id":"${TOKEN}","method":"${TOKEN}","params":{"_meta":{"progressToken":"${TOKEN}"},"requestId":"${TOKEN}"}}`;
  expect(redact(text).text).toBe(text);
  expect(redact(`[${text}]`).text).toBe(text.replace(/^|$/g, (_, at) => (at === 0 ? '[' : ']')));
});

test('a path replaces the value that it leads to, of any type', () => {
  const by = withProfile({ paths: ['$.params.arguments.card', '$..pin'] });
  const found = redact(call({ card: { number: 1 }, pin: 1234, other: 5 }), by);
  expect(JSON.parse(found.text).params.arguments).toEqual({
    card: expect.stringMatching(/^\[redacted:path:[0-9a-f]{12}\]$/),
    pin: expect.stringMatching(/^\[redacted:path:/),
    other: 5,
  });
  expect(redact(found.text, by).rules).toEqual([]);
});

test('a rule of one’s own finds what it matches, or what its group does', () => {
  const by = withProfile({ rules: ['ticket=/TCK-\\d{4}/i', 'user=/user: (\\w+)/', 'city=/Zür(ich)/'] });
  expect(redact('{"a":"see tck-1234"}', by).text).toMatch(/^\{"a":"see \[redacted:ticket:\w{12}\]"\}$/);
  expect(redact('user: ada', by).text).toMatch(/^user: \[redacted:user:\w{12}\]$/);
  expect(redact('ü in Zürich', by).text).toMatch(/^ü in Zür\[redacted:city:\w{12}\]$/);
});

test('a rule of one’s own takes time by the length of the text alone, whatever the rule and the text', () => {
  for (const rule of ['a=/(x|x)+y/', 'a=/(x+)+$/', 'a=/(?:x?){20}x{20}y/', 'a=/(\\w+\\s?)+!/']) {
    const by = withProfile({ rules: [rule] });
    expect(redact(`${'x'.repeat(50_000)}z`, by).rules).toEqual([]);
  }
  const by = withProfile({ rules: ['ticket=/TCK-\\d{8}/i'] });
  for (const unit of ['TCK-1234567', 'é tck-12345678 ', 'TCK-TCK-', '\xff', 'ü'])
    expectLinear(unit, (bytes) => by.payload(bytes, false, false));
});

test('a rule of one’s own matches characters, where the text is UTF-8, and bytes as they are', () => {
  const by = withProfile({ rules: ['name=/^name: (.+?);/m', 'sign=/[\\[(](secret)[\\])]/'] });
  expect(redact('é\nname: Zoë Müller; (secret)', by).text).toMatch(
    /^é\nname: \[redacted:name:\w{12}\]; \(\[redacted:sign:\w{12}\]\)$/,
  );
  const bytes = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('[secret]'), Buffer.from([0xc3])]);
  const found = by.payload(bytes, false, false)?.payload.toString('latin1');
  expect(found).toMatch(/^\xff\xfe\[\[redacted:sign:\w{12}\]\]\xc3$/);
});

test.each([
  ['nothing', 'expected id=/pattern/flags'],
  ['a=/(b/', 'at character 4: '],
  ['a=/b/q', 'expected some of the flags'],
  ['a=/x{2}(?=y)/', 'at character 8: expected a pattern that RE2 can run, got a look-ahead'],
  [
    'a=/\\((?<!x)y/',
    'got a look-behind. Write what stands around the secret out, and put the secret in a group',
  ],
  ['a=/(x)\\1/', 'at character 7: expected a pattern that RE2 can run, got a back-reference'],
  ['a=/x{5000}/', 'expected a pattern that RE2 can run: '],
  ['a=/x*/', 'it matches the empty text'],
])('the rule %s is refused, and why', (rule, why) => {
  expect(() => withProfile({ rules: [rule] })).toThrow(why);
});

test('a secret that the text breaks off in is replaced', () => {
  for (const { text } of FAKE_SECRETS.filter(({ rule }) => rule.endsWith('-token') || rule === 'jwt')) {
    const cut = Buffer.from(`{"a":"${text.slice(0, 18)}`);
    expect(redactor.payload(cut, false, true)?.payload.toString(), text).not.toContain(text.slice(0, 18));
  }
  const open = redactor.payload(Buffer.from('{"password":"correct horse bat'), false, true);
  expect(open?.payload.toString()).toMatch(/^\{"password":"\[redacted:secret-value:\w{12}\]$/);
});

test('a private key in base64 is one secret, in one line or in many', () => {
  const lines = Array.from(
    { length: 24 },
    (_, i) => `${'FAKEfake0123/+'.repeat(5).slice(i % 13, 64 + (i % 13))}`,
  );
  const begin = `-----BEGIN ${'PRIVATE'} KEY-----`;
  const key = [begin, ...lines, `-----END ${'PRIVATE'} KEY-----`, ''].join('\n');
  for (const cut of [0, 1, 2])
    for (const width of [64, 76, 120, 5000])
      for (const end of ['\n', '\r\n', '\n    ', '\\n']) {
        const coded = Buffer.from(key.slice(0, key.length - cut)).toString('base64');
        const wrapped = (coded.match(new RegExp(`.{1,${width}}`, 'g')) ?? []).join(end);
        const text = `key: ${wrapped}${end}and prose after it.`;
        for (const form of [text, call({ text })]) {
          const found = redact(form).text;
          expect(found).toMatch(/key: \[redacted:private-key:\w{12}\]\S* *(?:\\?\\?n *)*\s*and prose/);
          expect(redact(found).text).toBe(found);
        }
      }
});

test('what stands beside a placeholder is no less a secret', () => {
  const before = '[redacted:github-token:0123456789ab]';
  for (const [text, left] of [
    [`password="${before}hunter22"`, 'hunter22'],
    [`password="hunter22 ${before}"`, 'hunter22'],
    [`${before} password=hunter22 ${before}`, 'hunter22'],
    [`https://me:${before}hunter22@example.com`, 'hunter22'],
    [`{"a":"masked-0123456789ab ${TOKEN}"}`, TOKEN],
  ] as const) {
    const found = redact(text).text;
    expect(found).not.toContain(left);
    expect(redact(found)).toEqual({ text: found, rules: [] });
  }
  const by = withProfile({
    rules: ['line=/^.*internal.*$/m', 'hex=/[0-9a-f]{12}\\] and \\w+/', 'word=/redacted:\\w+/'],
  });
  expect(redact(`a\nsee ${before}, internal\nb`, by).text).toMatch(/^a\n\[redacted:line:\w{12}\]\nb$/);
  expect(redact(`see ${before} and more`, by).text).toMatch(
    /^see \[redacted:github-token:0123456789ab\]\[redacted:hex:\w{12}\]$/,
  );
  for (const kept of [
    before,
    `Cookie: a=masked-0123456789ab`,
    `password=${before}`,
    `"token":"Bearer ${before}"`,
  ])
    expect(redact(kept).text).toBe(kept);
});

test('a token is found however long it is', () => {
  const [head, body, end] = FAKE_JWT.split('.');
  const long = [head, `${body}${'A'.repeat(40_000)}`, end].join('.');
  for (const text of [`log ${long} end`, call({ long })]) expect(redact(text).rules).toEqual(['jwt']);
});

// Each of them would take minutes if the search went back over what it has seen.
test.each([
  ['a megabyte of assignments', 'password=hunter22 '.repeat(60_000), ['secret-value']],
  ['a string full of escapes', `{"a":"${'\\n password=hunter22 \\"'.repeat(50_000)}"}`, ['secret-value']],
  ['base64 without an end', Buffer.alloc(3_000_000, 'secretsecretx').toString('base64'), []],
  ['keys that begin and never end', `-----BEGIN ${'PRIVATE'} KEY-----`.repeat(20_000), ['private-key']],
  ['backslashes', `password="${'\\'.repeat(500_000)}`, []],
])('the search through %s comes to an end', (_what, text, rules) => {
  expect(redact(text).rules).toEqual(rules);
});

test('an event keeps its fields', () => {
  const event = `id: 7\r\nevent: message\r\ndata: ${call({ t: FAKE_JWT })}\r\n\r\n`;
  const found = redactor.event(Buffer.from(event), false);
  expect(found?.payload.toString()).toBe(event.replace(FAKE_JWT, `[redacted:jwt:${digest(FAKE_JWT)}]`));
});

test('a secret that stood as a name says nothing about its value', () => {
  for (const { text } of FAKE_SECRETS) {
    const { text: once } = redact(JSON.stringify({ [text]: `Bearer ${'FAKEfake'.repeat(4)}1 and more` }));
    expect(redact(once).text).toBe(once);
  }
});

test('any JSON stays JSON, and any bytes are redacted once and for all', () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom(...FAKE_SECRETS.map(({ text }) => text), 'password', 'token='),
  );
  const value = fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      fc.tuple(piece, piece).map((both) => both.join(' ')),
      fc.integer(),
      fc.array(tie('any')),
      fc.dictionary(piece, tie('any')),
      tie('any').map((inner) => JSON.stringify(inner)),
    ),
  })).any;
  fc.assert(
    fc.property(value, (any) => {
      const { text } = redact(JSON.stringify(any));
      expect(() => JSON.parse(text)).not.toThrow();
      expect(redact(text).text).toBe(text);
    }),
    { numRuns: scale(300) },
  );
});
