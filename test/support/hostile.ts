/** Text that wants to be more than text, and recordings that have it wherever something can be recorded. */
import { rmSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { IS_FULL } from './scale.ts';
import { tapedeckInProcess } from './tapedeck.ts';

const RUN = 'globalThis.wasRun=1';

const ELSEWHERE = 'http://203.0.113.9/seen';

const HANDLERS = [
  'onerror',
  'onload',
  'onfocus',
  'ontoggle',
  'onanimationstart',
  'onbegin',
  'onpointerrawupdate',
];

const TAGS = [
  'img src=x',
  'svg',
  'body',
  'input autofocus',
  'details open',
  'video src=x',
  'iframe',
  'object data=x',
];

/** What has broken other viewers: markup, addresses, ends of scripts, names of prototypes, directions, controls. */
export const PAYLOADS: readonly string[] = [
  ...TAGS.map((tag, i) => `<${tag} ${HANDLERS[i % HANDLERS.length]}=${RUN}>`),
  ...HANDLERS.map((handler) => `"><img src=x ${handler}="${RUN}"><"`),
  ...['</script>', '</textarea>', '</title>', '-->', ']]>', '</style>', '</noscript>'].map(
    (end) => `${end}<script>${RUN}</script>`,
  ),
  ...['javascript', 'JaVaScRiPt', 'java\tscript', ' javascript', 'vbscript', 'data'].map(
    (scheme) => `${scheme}:${RUN}`,
  ),
  `data:text/html,<script>${RUN}</script>`,
  `<a href="javascript:${RUN}">x</a>`,
  `<base href="${ELSEWHERE}">`,
  `<meta http-equiv=refresh content="0;url=${ELSEWHERE}">`,
  `<link rel=stylesheet href=${ELSEWHERE}>`,
  `<img src=${ELSEWHERE}>`,
  `<form action=${ELSEWHERE}><button autofocus>`,
  `<iframe srcdoc="<script>${RUN}</script>"></iframe>`,
  `<svg><animate onbegin=${RUN} attributeName=x></svg>`,
  `<math><mtext></p><script>${RUN}</script>`,
  `![x](${ELSEWHERE})`,
  `[x](javascript:${RUN})`,
  `{{constructor.constructor('${RUN}')()}}`,
  `\${${RUN}}`,
  `'-${RUN}-'`,
  `";${RUN}//`,
  `url(${ELSEWHERE})`,
  '@import url(//203.0.113.9/x)',
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'then', 'props', 'dangerouslySetInnerHTML'],
  '../../../../etc/passwd',
  '%2e%2e%2f%00',
  '\u202etxt.exe\u202c',
  '\u2066\u2067\u2068x\u2069',
  '\u001b[31mred\u001b[2J\u001b]0;title\u0007',
  'a\u0000b\u0008\u007f\u009b',
  '\ufeff\u200b\u00ad\u2028\u2029',
  '\ud800 alone \udfff',
  'Z\u0351\u036b\u0343\u036a\u0302'.repeat(20),
  'one line '.repeat(IS_FULL ? 120_000 : 2000),
];

/** Half of a surrogate pair stands only where JSON escapes it. */
function whole(text: string): string {
  return Buffer.from(text).toString();
}

function rpc(message: object): string {
  return JSON.stringify({ jsonrpc: '2.0', ...message });
}

/** What opens a session, told by both sides. */
function handshakeOf(text: string): { asked: string; answered: string } {
  const info = { name: text, version: text, title: text };
  const told = { protocolVersion: text, capabilities: { [text]: {} } };
  return {
    asked: rpc({ id: 0, method: 'initialize', params: { ...told, clientInfo: info } }),
    answered: rpc({ id: 0, result: { ...told, serverInfo: info, instructions: text } }),
  };
}

/** Each kind of content that a tool may return. */
function contentOf(text: string): object[] {
  const data = Buffer.from(text).toString('base64');
  return [
    { type: 'text', text },
    { type: 'image', mimeType: text, data: text },
    { type: 'image', mimeType: 'image/svg+xml', data },
    { type: 'image', mimeType: 'image/png', data },
    { type: 'audio', mimeType: 'audio/wav', data },
    { type: 'resource_link', uri: text, name: text, mimeType: text },
    { type: 'resource', resource: { uri: text, mimeType: 'text/html', text } },
    { type: text },
  ];
}

/** All that a server may offer, by that name. */
function offersOf(names: readonly string[]): [method: string, result: object][] {
  const named = names.map((name) => ({ name, title: name, description: name, uri: name, uriTemplate: name }));
  const tools = named.map((one) => ({ ...one, inputSchema: { type: 'object', [one.name]: one.name } }));
  return [
    ['tools/list', { tools }],
    ['prompts/list', { prompts: named }],
    ['resources/list', { resources: named }],
    ['resources/templates/list', { resourceTemplates: named }],
  ];
}

/** The frames of a session over stdio in which each of these stands in every field that a message has. */
function stdioLines(payloads: readonly string[]): object[] {
  const lines: object[] = [];
  const say = (channel: string, text: string) => lines.push({ ms: 1, channel, text });
  for (const payload of payloads) {
    const i = PAYLOADS.indexOf(payload);
    const id = i + 1;
    const params = {
      name: payload,
      arguments: { [payload]: payload },
      _meta: { progressToken: id, [payload]: payload },
    };
    say('stdin', rpc({ id, method: 'tools/call', params }));
    const progress = { progressToken: id, progress: 1, message: payload };
    say('stdout', rpc({ method: 'notifications/progress', params: progress }));
    const log = { level: payload, logger: payload, data: payload };
    say('stdout', rpc({ method: 'notifications/message', params: log }));
    say(
      'stdout',
      rpc({ id: `${i}${payload}`, method: 'sampling/createMessage', params: { systemPrompt: payload } }),
    );
    const result = {
      content: contentOf(payload),
      structuredContent: { [payload]: payload },
      isError: i % 2 === 0,
    };
    const error = { code: -1, message: payload, data: payload };
    say('stdout', i % 3 === 0 ? rpc({ id, error }) : rpc({ id, result }));
    say('stdin', rpc({ id: payload, method: payload, params: { uri: payload } }));
    say('stderr', whole(payload));
    say('stdout', whole(payload));
  }
  for (const [method, result] of offersOf(payloads)) {
    say('stdin', rpc({ id: method, method }));
    say('stdout', rpc({ id: method, result }));
  }
  return lines;
}

/** HTTP exchanges, two for each of these: a page of an error, and a stream with an event that has a name and an id. */
function httpLines(payloads: readonly string[]): object[] {
  return payloads.flatMap((payload, i) => {
    const value = payload.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 2000);
    const oneLine = whole(payload).replaceAll(/[\r\n\0]/g, '?');
    const { asked, answered } = handshakeOf(payload);
    const exchange = (http: number, type: string, rest: readonly object[]) => {
      const headers = [
        ['x-hostile', value],
        ['mcp-session-id', value],
        ['content-type', type],
      ];
      const head = { method: 'POST', path: `/mcp?${encodeURIComponent(value)}`, version: '1.1' };
      return [
        { ms: 1, http, request: { ...head, client: '127.0.0.1:1', headers, body: { ms: 1, bytes: 1 } } },
        { ms: 1, http, channel: 'request', text: asked },
        {
          ms: 1,
          http,
          response: { status: type === 'text/html' ? 500 : 200, statusText: value, headers, bytes: 1 },
        },
        ...rest.map((one) => ({ ms: 1, http, ...one })),
        { ms: 1, http, end: { closedBy: 'server', error: value } },
      ];
    };
    return [
      ...exchange(2 * i + 1, 'text/html', [
        { channel: 'response', part: 'foreign-body', text: `<!doctype html>${whole(payload)}` },
      ]),
      ...exchange(2 * i + 2, 'text/event-stream', [
        { channel: 'sse', sse: { event: oneLine, id: oneLine }, text: answered },
        { channel: 'sse', part: 'block', text: `: ${oneLine}\n${oneLine}: ${oneLine}\n\n` },
      ]),
    ];
  });
}

/** What a session is called, by whom, and what it offers: all of it this text. */
function sessionOf(payload: string): { session: object; lines: object[] } {
  const text = whole(payload.slice(0, 4000));
  const { asked, answered } = handshakeOf(text);
  const offers = offersOf([text]).flatMap(([method, result]) => [
    { ms: 1, channel: 'stdin', text: rpc({ id: method, method }) },
    { ms: 1, channel: 'stdout', text: rpc({ id: method, result }) },
  ]);
  return {
    session: {
      ...{ name: text, basis: 'stdio-process', transport: 'stdio', target: text, command: [text, text] },
      labels: { [text.replaceAll('=', ':')]: text, run: text },
    },
    lines: [
      { ms: 1, channel: 'stdin', text: asked },
      { ms: 1, channel: 'stdout', text: answered },
      ...offers,
      { ms: 1, channel: 'stderr', text },
    ],
  };
}

/** The last and longest one has sessions of its own: what the server says of a session that has it everywhere is megabytes. */
const [SHORT, LONG] = [PAYLOADS.slice(0, -1), PAYLOADS.slice(-1)];

/** The sessions in which payloads stand in every field: each of them in one over stdio and in one over HTTP. */
export const STDIO_SESSIONS = ['stdio', 'stdio-long'] as const;
export const HTTP_SESSIONS = ['http', 'http-long'] as const;

/**
 * Fills a store with these, and with one session that is called by each of `names`; returns the ids of the latter.
 */
export async function fillWithPayloads(db: string, names: readonly string[]): Promise<readonly string[]> {
  const stdio = { basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'] };
  const http = { basis: 'stateless', transport: 'http', target: 'http://127.0.0.1:1/mcp' };
  const sessions = [
    ...names.map(sessionOf),
    ...[SHORT, LONG].flatMap((payloads, i) => [
      { session: { name: STDIO_SESSIONS[i], ...stdio }, lines: stdioLines(payloads) },
      { session: { name: HTTP_SESSIONS[i], ...http }, lines: httpLines(payloads) },
    ]),
  ];
  const files = sessions.map(({ session, lines }, i) => {
    const head = { tapedeck: 1, session: { startedAt: '2026-01-02T03:04:05.000000Z', ...session } };
    const file = `${db}.${i}.ndjson`;
    writeFileSync(file, [head, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''));
    return file;
  });
  const { code, stdout, stderr } = await tapedeckInProcess(['import', ...files, '--db', db]);
  expect([code, stderr]).toEqual([0, '']);
  for (const file of files) rmSync(file);
  const ids = stdout.toString().match(/\b[0-9a-f]{12}\b/g) ?? [];
  expect(ids).toHaveLength(sessions.length);
  return ids.slice(0, names.length);
}
