/** Reads a client's config: its servers, and where each says how it is reached. */

import { TapedeckError } from '../errors.ts';
import {
  type ListNode,
  type MapNode,
  type Member,
  type Node,
  parseJson,
  parseToml,
  type StringNode,
} from './source.ts';

export type ConfigFormat = 'json' | 'toml';

export type Config = { text: string; root: Node; entries: readonly Entry[] };

export type Entry = {
  /** The keys on the way to it; the last one is its name. */
  path: readonly string[];
  name: string;
  isDisabled: boolean;
  server: StdioServer | UrlServer | NoServer;
  /** So many settings it has. */
  members: number;
};

export type StdioServer = {
  kind: 'stdio';
  command: Member<StringNode>;
  args: Member<ListNode> | null;
  /** The command and its arguments. */
  words: readonly string[];
};

export type UrlServer = { kind: 'url'; url: Member<StringNode> };

/** An entry that cannot be wrapped, and why. */
type NoServer = { kind: 'none'; reason: string };

const PARSERS: Record<ConfigFormat, (text: string) => Node> = { json: parseJson, toml: parseToml };

/** Where there are several, the last one counts, as for Gemini CLI, the only client with two. */
const URL_KEYS = ['url', 'serverUrl', 'httpUrl'] as const;

/** Throws `TapedeckError` `corrupt` where the text is not of this format, or has its map of servers twice. */
export function readConfig(
  text: string,
  format: ConfigFormat,
  sections: readonly (readonly string[])[],
): Config {
  const root = parse(text, format);
  const entries = sections.flatMap((section) => [...eachEntry(root, section, [])]);
  return { text, root, entries };
}

function parse(text: string, format: ConfigFormat): Node {
  try {
    return PARSERS[format](text);
  } catch (error) {
    if (error instanceof RangeError)
      throw new TapedeckError('refused', 'it is nested too deeply to be read', { cause: error });
    throw error;
  }
}

function* eachEntry(node: Node, section: readonly string[], path: readonly string[]): Generator<Entry> {
  if (node.kind !== 'map') return;
  const [key, ...rest] = section;
  if (key === undefined) {
    for (const member of node.members) yield toEntry(node, member, [...path, member.key]);
    return;
  }
  const members = key === '*' ? node.members : node.members.filter((member) => member.key === key);
  if (key !== '*' && members.length > 1)
    throw new TapedeckError('corrupt', `it has \`${[...path, key].join('.')}\` twice`);
  for (const member of members) yield* eachEntry(member.value, rest, [...path, member.key]);
}

function toEntry(section: MapNode, { key, value }: Member, path: readonly string[]): Entry {
  const isTwice = section.members.filter((member) => member.key === key).length > 1;
  const server = isTwice ? none('it is there twice') : serverOf(value);
  const members = value.kind === 'map' ? value.members.length : 0;
  return { path, name: key, isDisabled: isDisabled(value), server, members };
}

function serverOf(node: Node): Entry['server'] {
  if (node.kind !== 'map') return none('it is no map of settings');
  const keys = node.members.map(({ key }) => key);
  const twice = keys.find((key, i) => keys.indexOf(key) < i);
  if (twice !== undefined) return none(`it has \`${twice}\` twice`);
  const command = memberOf(node, 'command');
  const url = URL_KEYS.map((key) => memberOf(node, key)).findLast((member) => member !== undefined);
  if (command !== undefined && url !== undefined)
    return none(`it has both \`command\` and \`${url.key}\`, and clients differ on which one counts`);
  if (command !== undefined) return stdioOf(node, command);
  if (url === undefined) return none('it has neither a command nor a URL');
  return isString(url) ? { kind: 'url', url } : none(`its \`${url.key}\` is no text`);
}

/** Zed's older form has `path` and `args` inside `command`. */
function stdioOf(node: MapNode, command: Member): StdioServer | NoServer {
  if (command.value.kind === 'map') {
    const path = memberOf(command.value, 'path');
    return path === undefined
      ? none('its `command` has no `path`')
      : stdioAt(path, memberOf(command.value, 'args'));
  }
  return stdioAt(command, memberOf(node, 'args'));
}

function stdioAt(command: Member, args: Member | undefined): StdioServer | NoServer {
  if (!isString(command) || command.value.value.trim() === '')
    return none(`its \`${command.key}\` names no command`);
  const path = command.value.value;
  if (args === undefined) return { kind: 'stdio', command, args: null, words: [path] };
  if (!isList(args) || !args.value.items.every((item) => item.kind === 'string'))
    return none('its `args` are no list of texts');
  const words = args.value.items.map((item) => (item as StringNode).value);
  return { kind: 'stdio', command, args, words: [path, ...words] };
}

/** `disabled: true` for most, `enabled: false` for Codex and Zed. */
function isDisabled(node: Node): boolean {
  return isOther(node, 'disabled', 'true') || isOther(node, 'enabled', 'false');
}

function isOther(node: Node, key: string, source: string): boolean {
  const value = node.kind === 'map' ? memberOf(node, key)?.value : undefined;
  return value?.kind === 'other' && value.source === source;
}

function memberOf({ members }: MapNode, key: string): Member | undefined {
  return members.find((member) => member.key === key);
}

function isString(member: Member): member is Member<StringNode> {
  return member.value.kind === 'string';
}

function isList(member: Member): member is Member<ListNode> {
  return member.value.kind === 'list';
}

function none(reason: string): NoServer {
  return { kind: 'none', reason };
}
