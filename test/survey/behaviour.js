// What a client does, as cells of the tables of docs/clients.md: of its recorded sessions alone, the oldest first. Of each it takes what
// `list --json`, `show --json` and `show --http --json` print (docs/json.md). Recorded text comes out as code, or escaped.

const NOT_EXERCISED = 'not exercised';

const OVER = ['over', ({ transport }) => (transport === 'stdio' ? 'stdio' : 'HTTP')];

/** The tables: what stands above each, and its columns with the cells' makers. */
const TABLES = [
  {
    title: 'The first requests',
    columns: [
      OVER,
      ['handshake', handshakeOf],
      ['asks for', ({ hellos }) => list(hellos.map(({ version }) => code(version)))],
      ['speaks then', ({ sessions }) => list(sessions.map(({ facts }) => code(facts.protocolVersion)))],
      [
        'declares',
        ({ hellos }) =>
          list(
            hellos.map(({ capabilities }) => capabilitiesOf(capabilities)),
            '; ',
          ),
      ],
      [
        'calls itself',
        ({ hellos }) =>
          list(hellos.map(({ info }) => code([info?.name, info?.version].filter(Boolean).join(' ')))),
      ],
    ],
  },
  {
    title: 'Lists and calls',
    columns: [
      OVER,
      ['lists', listsOf],
      ['progress token', progressTokensOf],
      ['a `ping` of the server', pingsOf],
      ['a call that never ends', endlessOf],
      ['at the end', endOf],
    ],
  },
  {
    title: 'Headers of its POST requests',
    isFor: isHttp,
    columns: [
      ['`Accept`', (client) => headerOf(client, 'accept')],
      ['`User-Agent`', (client) => headerOf(client, 'user-agent')],
      ['`MCP-Protocol-Version`', (client) => headerOf(client, 'mcp-protocol-version')],
      ['`Mcp-Method`', (client) => presenceOf(client, 'mcp-method')],
      ['`Mcp-Name`', (client) => presenceOf(client, 'mcp-name')],
      ['`Authorization`', (client) => presenceOf(client, 'authorization')],
      ['`traceparent`', (client) => presenceOf(client, 'traceparent')],
    ],
  },
  {
    title: 'When HTTP fails',
    isFor: isHttp,
    columns: [
      ['opens a stream by GET', streamOf],
      ['a call is answered by 500', (client) => failureOf(client, 'fail')],
      ['its connection is closed', (client) => failureOf(client, 'drop')],
      ['its event stream is cut', (client) => failureOf(client, 'cut')],
    ],
  },
];

function isHttp({ transport }) {
  return transport !== 'stdio';
}

/** All tables in Markdown, of clients as `readClient` makes them. */
export function tablesOf(clients) {
  return TABLES.map(({ title, columns, isFor = () => true }) => {
    const rows = joined(
      clients.filter(isFor).map((client) => rowOf(client, columns)),
      columns.indexOf(OVER) + 1,
    );
    const head = ['client', ...columns.map(([name]) => name)];
    return [`### ${title}`, '', line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
  }).join('\n\n');
}

function rowOf(client, columns) {
  return [code(client.name), ...columns.map(([, cell]) => cell(client))];
}

/** Rows that differ in nothing but what it was over, which stands at `over`, as one; `over` is 0 where no cell says so. */
function joined(rows, over) {
  if (over === 0) return rows;
  const byRest = new Map();
  for (const row of rows) {
    const rest = JSON.stringify(row.toSpliced(over, 1));
    const same = byRest.get(rest);
    if (same === undefined) byRest.set(rest, row);
    else same[over] = `${same[over]}, ${row[over]}`;
  }
  return [...byRest.values()];
}

function line(cells) {
  return `| ${cells.join(' | ')} |`;
}

/** `sessions`: each with `facts`, `frames` and `exchanges`, as parsed lines of JSON. */
export function readClient(sessions) {
  const messages = sessions
    .flatMap(({ facts, frames }) => frames.flatMap((frame) => messagesOf(facts.session, frame)))
    .sort((a, b) => (a.at < b.at ? -1 : 1));
  const asked = messages.filter(({ isClients }) => isClients);
  const [first] = sessions;
  return {
    name: first.facts.name,
    transport: first.facts.transport,
    sessions,
    messages,
    hellos: sessions.flatMap(({ facts }) => helloOf(asked.find(({ session }) => session === facts.session))),
    calls: asked.filter(({ value }) => value.method === 'tools/call'),
    exchanges: sessions.flatMap((session) => session.exchanges).sort((a, b) => (a.at < b.at ? -1 : 1)),
  };
}

function messagesOf(session, frame) {
  if (frame.messages.length === 0) return [];
  const value = JSON.parse(frame.sse?.data ?? frame.text);
  const isClients = frame.direction === 'client-to-server';
  const about = { session, at: frame.at, seq: frame.seq, http: frame.http?.exchange, isClients };
  return (Array.isArray(value) ? value : [value]).map((one, n) => ({
    ...about,
    value: one,
    replyTo: frame.messages[n]?.replyTo ?? null,
  }));
}

const META = 'io.modelcontextprotocol/';

/** What the client says of itself in the first message of a session. */
function helloOf(first) {
  if (first === undefined) return [];
  const { params = {} } = first.value;
  const meta = params._meta ?? {};
  return [
    {
      version: params.protocolVersion ?? meta[`${META}protocolVersion`],
      capabilities: params.capabilities ?? meta[`${META}clientCapabilities`],
      info: params.clientInfo ?? meta[`${META}clientInfo`],
    },
  ];
}

/** Everything up to its first request that asks for something. */
function handshakeOf({ messages }) {
  const asked = messages.filter(({ isClients, value }) => isClients && value.method !== undefined);
  const work = asked.findIndex(({ value }) => /\/(?:list|call)$/.test(value.method));
  return asked
    .slice(0, work)
    .map(({ value }) => code(value.method))
    .join(', ');
}

/** `roots` (`listChanged`). */
function capabilitiesOf(capabilities = {}) {
  const names = Object.entries(capabilities).map(([name, own]) => {
    const parts = Object.keys(own ?? {});
    return parts.length === 0 ? code(name) : `${code(name)} (${parts.map(code).join(', ')})`;
  });
  return names.length === 0 ? 'nothing' : names.join(', ');
}

/** Per session, in the order in which they were asked for; sessions that do alike are told once. */
function listsOf({ sessions, messages }) {
  const each = sessions.map(({ facts }) => {
    const asked = messages.filter(({ session, value }) => session === facts.session && isList(value));
    const methods = [...new Set(asked.map(({ value }) => value.method))];
    return methods.map((method) => {
      const count = asked.filter(({ value }) => value.method === method).length;
      const pages = asked.filter(({ value }) => value.method === method && value.params?.cursor).length;
      const times = pages > 0 ? `, ${pages + 1} pages` : count > 1 ? `, ${count} times` : '';
      const isCut = pages === 0 && hasMore(messages, facts.session, method);
      return `${code(method)}${times}${isCut ? ', the first page only' : ''}`;
    });
  });
  const told = [...new Set(each.map((one) => one.join(', then ')))].filter((one) => one !== '');
  return told.join('; or ') || 'none';
}

function isList({ method }) {
  return typeof method === 'string' && method.endsWith('/list');
}

/** Whether an answer to it named a next page. */
function hasMore(messages, session, method) {
  const own = messages.filter((message) => message.session === session);
  const asked = new Set(own.filter(({ value }) => value.method === method).map(({ seq }) => seq));
  return own.some(({ replyTo, value }) => asked.has(replyTo) && value.result?.nextCursor !== undefined);
}

function progressTokensOf({ calls }) {
  const withToken = calls.filter(({ value }) => value.params?._meta?.progressToken !== undefined);
  if (withToken.length === calls.length) return 'on every call';
  if (withToken.length === 0) return 'never';
  return `on calls of ${list(withToken.map(({ value }) => code(value.params.name)))}`;
}

function pingsOf({ messages }) {
  const asked = messages.filter(({ isClients, value }) => !isClients && value.method === 'ping');
  if (asked.length === 0) return NOT_EXERCISED;
  const isAnswered = ({ session, seq }) =>
    messages.some((one) => one.session === session && one.isClients && one.replyTo === seq);
  return asked.every(isAnswered) ? 'answered' : 'not answered';
}

/** Each such call: what the client told the server about it, and whether it closed the stream. */
function endlessOf({ calls, messages, sessions, transport }) {
  const endless = calls.filter(({ value }) => value.params?.name === 'endless');
  if (endless.length === 0) return NOT_EXERCISED;
  const told = endless.map((call) => {
    const cancel = messages.find(
      ({ session, value }) =>
        session === call.session &&
        value.method === 'notifications/cancelled' &&
        value.params?.requestId === call.value.id,
    );
    const exchange = transport === 'stdio' ? undefined : exchangeOf(sessions, call);
    const what = [
      ...(cancel === undefined ? [] : [`${code('notifications/cancelled')}${reasonOf(cancel)}`]),
      ...(exchange?.closedBy === 'client' ? ['the stream closed'] : []),
    ];
    return what.join(' and ') || 'nothing is sent';
  });
  return list(told, '; ');
}

function reasonOf({ value }) {
  return value.params.reason === undefined ? '' : ` (${code(value.params.reason)})`;
}

function exchangeOf(sessions, { session, http }) {
  const own = sessions.find(({ facts }) => facts.session === session);
  return own?.exchanges.find((exchange) => exchange.http === http);
}

function endOf({ transport, exchanges, sessions }) {
  if (transport !== 'stdio')
    return exchanges.some(({ method }) => method === 'DELETE') ? '`DELETE`' : 'no `DELETE`';
  return list(
    sessions.map(({ facts }) =>
      facts.endReason === 'client-closed' ? 'closes stdin' : code(facts.signal ?? facts.endReason),
    ),
  );
}

/** The values of a header, and on which requests it is missing. */
function headerOf(client, name) {
  const values = postsOf(client).map((post) => headerIn(post.exchange, name));
  const told = list(values.filter((value) => value !== undefined).map(code));
  return told === '' ? 'no' : `${told}${onWhich(client, name)}`;
}

/** The same for a header whose values say nothing, or must not be shown. */
function presenceOf(client, name) {
  const isAnywhere = postsOf(client).some(({ exchange }) => headerIn(exchange, name) !== undefined);
  return isAnywhere ? `yes${onWhich(client, name)}` : 'no';
}

/** Told by methods, the fewer of those with it and those without. */
function onWhich(client, name) {
  const has = (isThere) =>
    new Set(
      postsOf(client)
        .filter(({ exchange }) => (headerIn(exchange, name) !== undefined) === isThere)
        .map(({ method }) => method),
    );
  const [on, off] = [has(true), has(false)];
  if (off.size === 0) return '';
  if ([...on].some((method) => off.has(method))) return ', not on all';
  return on.size < off.size ? `, on ${list([...on].map(nameOf))}` : `, not on ${list([...off].map(nameOf))}`;
}

const ANSWER = null;

function nameOf(method) {
  return method === ANSWER ? 'answers' : code(method);
}

/** Its POST exchanges, with the method of the message that each has. */
function postsOf({ exchanges, messages }) {
  return exchanges.flatMap((exchange) => {
    if (exchange.method !== 'POST') return [];
    const own = messages.find(
      ({ session, http, isClients }) => isClients && session === exchange.session && http === exchange.http,
    );
    return [{ exchange, method: own?.value.method ?? ANSWER }];
  });
}

function headerIn({ requestHeaders }, name) {
  return requestHeaders.find(([key]) => key.toLowerCase() === name)?.[1];
}

function streamOf({ exchanges }) {
  const isOwn = (exchange) => exchange.method === 'GET' && headerIn(exchange, 'last-event-id') === undefined;
  return exchanges.some(isOwn) ? 'yes' : 'no';
}

/** What follows the first call of a tool that fails. */
function failureOf({ calls, exchanges, sessions }, tool) {
  const own = calls.filter(({ value }) => value.params?.name === tool);
  const [first, again] = own;
  if (first === undefined) return NOT_EXERCISED;
  const failedAt = exchangeOf(sessions, first)?.endedAt ?? first.at;
  const resumed = exchanges.filter(
    (one) => headerIn(one, 'last-event-id') !== undefined && one.at > failedAt,
  );
  const what = [
    ...(tool === 'cut' && resumed.length > 0
      ? [`resumed by GET with \`Last-Event-ID\` after ${secondsBetween(failedAt, resumed[0].at)}`]
      : []),
    ...(again === undefined
      ? []
      : [
          `sent again after ${secondsBetween(failedAt, again.at)}${again.value.id === first.value.id ? ' with the same id' : ''}`,
        ]),
  ];
  return what.join(', ') || 'not sent again';
}

function secondsBetween(from, to) {
  return `${Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000).toFixed(1)} s`;
}

/** Each once, in their order. */
function list(words, separator = ', ') {
  return [...new Set(words)].filter((word) => word !== '').join(separator);
}

const MOST_CHARACTERS = 60;

/** Recorded text as code of a Markdown table: on one line, without what would end the cell or the code. */
function code(text) {
  if (text === undefined || text === null || text === '') return '';
  const plain = String(text).replaceAll(/[\p{C}`|]/gu, '?');
  return `\`${plain.length > MOST_CHARACTERS ? `${plain.slice(0, MOST_CHARACTERS - 1)}…` : plain}\``;
}
