import { expect, test } from 'vitest';
import { editConfig, openConfig } from '../../src/clients/wrapped.ts';
import { LAUNCHER, makeConfig } from '../support/configs.ts';

const SERVERS = '{"a":{"command":"a","args":["x"],"env":{"K":"v"}},"b":{"url":"https://b.example/mcp"}}';

test('an edit that would change anything but the servers that it is for is refused', () => {
  const text = `{"n":1.0,"mcpServers":${SERVERS}}`;
  const config = makeConfig('cursor', text);
  const open = openConfig(config.target, config.keeper);
  const [entry] = open.config.entries;
  if (entry === undefined) throw new Error('no entry');
  /** Replaces this text by that, and says that it is about `a`. */
  const edit = (from: string, to: string, words: string[]) => {
    const start = text.indexOf(from);
    return () => editConfig(open, [{ start, end: start + from.length, text: to }], [{ entry, words }]);
  };
  expect(edit('"command":"a"', '"command":"z"', ['z', 'x'])().toString()).toBe(
    text.replace('"command":"a"', '"command":"z"'),
  );
  const fault = /it cannot be edited without changing more than its servers/;
  expect(edit('"command":"a"', '"command":"z"', ['y', 'x'])).toThrow(fault);
  expect(edit('1.0', '1', ['a', 'x'])).toThrow(fault);
  expect(edit('"K":"v"', '"K":"w"', ['a', 'x'])).toThrow(fault);
  expect(edit('"K":"v"', '', ['a', 'x'])).toThrow(fault);
  expect(edit('https://b', 'http://b', ['a', 'x'])).toThrow(fault);
  expect(edit('"a":{', '"c":{', ['a', 'x'])).toThrow(fault);
  expect(edit('"n":1.0,', '', ['a', 'x'])).toThrow(fault);
  expect(edit('}', '', ['a', 'x'])).toThrow(fault);
});

test('what a formatter has done to a wrapped file is no hindrance', async () => {
  const formatted: ((text: string) => string)[] = [
    (text) => JSON.stringify(JSON.parse(text), null, 4),
    (text) => JSON.stringify(JSON.parse(text)),
    (text) => JSON.stringify(JSON.parse(text), null, 2).replaceAll(/(["\d}\]])(\n\s*[}\]])/g, '$1,$2'),
    (text) => text.replaceAll(',', ' /* c */ , // d\n'),
    (text) => text.replaceAll('\n', '\r\n'),
  ];
  for (const format of formatted) {
    const config = makeConfig(
      'cursor',
      `{"mcpServers":{"c":{"command":"c"},"e":{"command":"e","args":[]},${SERVERS.slice(1)}}`,
    );
    const before = JSON.parse(config.read().toString());
    await config.wrap();
    config.write(format(config.read().toString()));
    config.unwrap();
    const text = config
      .read()
      .toString()
      .replaceAll(/\/\*.*?\*\/|\/\/ d\n/g, '')
      .replaceAll(/,(\s*[}\]])/g, '$1');
    const { c, ...others } = JSON.parse(text).mcpServers;
    expect({ mcpServers: { c: { ...c, args: [] }, ...others } }).toEqual({
      mcpServers: { ...before.mcpServers, c: { command: 'c', args: [] } },
    });
  }
});

const [COMMAND, BIN] = LAUNCHER.map((word) => JSON.stringify(word));

test('new arguments are laid out as the old ones are', async () => {
  const layouts: [before: string, after: string][] = [
    ['"x"', `${BIN}, "record", "--name", "a", "--", "c", "x"`],
    [' "x", "y" ', ` ${BIN}, "record", "--name", "a", "--", "c", "x", "y" `],
    [
      '\r\n\t\t"x",\r\n\t\t"y"\r\n',
      `\r\n\t\t${BIN},\r\n\t\t"record",\r\n\t\t"--name",\r\n\t\t"a",\r\n\t\t"--",\r\n\t\t"c",\r\n\t\t"x",\r\n\t\t"y"\r\n`,
    ],
    ['/* no */ "x"', `/* no */ ${BIN}, "record", "--name", "a", "--", "c", "x"`],
    ['', `${BIN}, "record", "--name", "a", "--", "c"`],
  ];
  for (const [before, after] of layouts) {
    const config = makeConfig('cursor', `{"mcpServers":{"a":{"command":"c","args":[${before}]}}}`);
    await config.wrap();
    expect(config.read().toString()).toBe(`{"mcpServers":{"a":{"command":${COMMAND},"args":[${after}]}}}`);
  }
});

test('arguments that came later to a server without any stay', async () => {
  const config = makeConfig('cursor', '{"mcpServers":{"a":{"command":"c"}}}');
  await config.wrap();
  config.write(config.read().toString().replace('"c"]', '"c", "later"]'));
  config.unwrap();
  expect(config.read().toString()).toBe('{"mcpServers":{"a":{"command":"c", "args": ["later"]}}}');
});

test('of an edited file each literal comes back as it was written', async () => {
  const config = makeConfig(
    'cursor',
    '{"mcpServers":{"a":{"command":"\\u0063"},"b":{"url":"https:\\/\\/b.example\\/mcp"}},"n":1}',
  );
  await config.wrap();
  config.write(config.read().toString().replace('"n":1', '"n":2'));
  config.unwrap();
  expect(config.read().toString()).toBe(
    '{"mcpServers":{"a":{"command":"\\u0063"},"b":{"url":"https:\\/\\/b.example\\/mcp"}},"n":2}',
  );
});

test('a name with a character that TOML wants escaped can be wrapped', async () => {
  const text = '[mcp_servers."del\\u007f"]\ncommand = "x"\n';
  const config = makeConfig('codex', text);
  expect((await config.wrap()).rows[0]?.outcome).toBe('wrapped');
  config.unwrap();
  expect(config.read().toString()).toBe(text);
});
