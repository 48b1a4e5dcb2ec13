/**
 * What well-known providers of models, and clients, refuse in tools that MCP allows. A row for each: whose it is, the rule, the
 * page that proves it, and how it is found. The pages are the provider's own documentation, or a report with the provider's own
 * error. What clients mend by themselves before they send a tool on is left out, such as `additionalProperties` that are missing.
 */

import { jsonPointer } from '../../../protocol/json/diff.ts';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import type { SubSchema } from '../../schema/walk.ts';

/** A tool as its server lists it. `schemas`: its `inputSchema`, and all inside that. */
type ListedTool = { name: string; input: JsonObject; schemas: readonly SubSchema[] };

export type ProviderRule = {
  provider: string;
  /** The rule in a sentence. */
  text: string;
  /** The page that proves it. */
  source: string;
  /** What a tool should be; continues "expected the tool …". */
  wanted: string;
  /** What of a tool is against it; continues "saw …". Null where nothing is. */
  find: (tool: ListedTool) => string | null;
};

const MANAGED_AGENTS = 'https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes';

const COMBINED = ['oneOf', 'anyOf', 'allOf'];

/** In the order of their weight: of several rules of one provider the first is told. */
const TABLE = {
  'openai-name': {
    provider: 'OpenAI',
    text: 'OpenAI: the name of a function has 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`.',
    source: 'https://platform.openai.com/docs/api-reference/chat/create',
    wanted: 'named by at most 64 of these characters',
    find: ({ name }) => oddName(name, /[^a-zA-Z0-9_-]/u, 64),
  },
  'openai-top-level': {
    provider: 'OpenAI',
    text: 'OpenAI: the parameters of a function have no `oneOf`, `anyOf`, `allOf`, `enum` or `not` at their top level.',
    source: 'https://github.com/langchain-ai/langchainjs/issues/9804',
    wanted: 'without these keywords at the top level of its `inputSchema`',
    find: ({ input }) => atTopLevel(input, [...COMBINED, 'enum', 'not']),
  },
  'openai-array-items': {
    provider: 'OpenAI',
    text: 'OpenAI: an array in the parameters of a function has `items`.',
    source: 'https://github.com/PrefectHQ/fastmcp/issues/2464',
    wanted: 'with `items` in every array',
    find: ({ schemas }) =>
      placed(schemas, ({ type, items }) => (type === 'array' && items === undefined ? ['no `items`'] : [])),
  },
  'openai-strict': {
    provider: 'OpenAI',
    text: 'OpenAI, in strict mode: objects are closed, and few keywords that combine schemas are known.',
    source: 'https://platform.openai.com/docs/guides/structured-outputs',
    wanted: 'without open objects and without such keywords',
    find: ({ schemas }) => placed(schemas, notStrict),
  },
  'anthropic-name': {
    provider: 'Anthropic',
    text: 'Anthropic: the name of a tool has 1 to 128 characters of A-Z, a-z, 0-9, `_`, `-`.',
    source: 'https://github.com/github/copilot-cli/issues/1879',
    wanted: 'named by at most 128 of these characters',
    find: ({ name }) => oddName(name, /[^a-zA-Z0-9_-]/u, 128),
  },
  'anthropic-top-level': {
    provider: 'Anthropic',
    text: 'Anthropic: the schema of a tool has no `oneOf`, `anyOf` or `allOf` at its top level.',
    source: MANAGED_AGENTS,
    wanted: 'without these keywords at the top level of its `inputSchema`',
    find: ({ input }) => atTopLevel(input, COMBINED),
  },
  'anthropic-property': {
    provider: 'Anthropic',
    text: 'Anthropic: the name of an argument has 1 to 64 characters of A-Z, a-z, 0-9, `_`, `.`, `-`.',
    source: MANAGED_AGENTS,
    wanted: 'with arguments that are named by at most 64 of these characters',
    find: ({ input }) => oddArgument(input),
  },
  'gemini-name': {
    provider: 'Gemini',
    text: 'Gemini: the name of a function begins with a letter or `_`, and has up to 128 characters of A-Z, a-z, 0-9, `_`, `.`, `:`, `-`.',
    source:
      'https://pub.dev/documentation/googleapis/17.0.0/aiplatform_v1/GoogleCloudAiplatformV1FunctionDeclaration/name.html',
    wanted: 'named so',
    find: ({ name }) => oddName(name, /^[^a-zA-Z_]|[^a-zA-Z0-9_.:-]/u, 128),
  },
  'gemini-keyword': {
    provider: 'Gemini',
    text: 'Gemini: the `parameters` of a function have only the keywords of its own `Schema`, a part of OpenAPI 3.0.',
    source: 'https://docs.cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/Schema',
    wanted: 'with the keywords of that `Schema` alone',
    find: ({ schemas }) => placed(schemas, (schema) => wordsOf(schema, GEMINI_LACKS)),
  },
  'cursor-name': {
    provider: 'Cursor',
    text: 'Cursor: the names of a server and of its tool have at most 60 characters together.',
    source: 'https://github.com/ComposioHQ/composio/issues/2788',
    wanted: 'named by at most 58 characters, which leaves one for the server',
    find: ({ name }) => (name.length > 58 ? `${name.length} characters` : null),
  },
} as const satisfies Record<string, ProviderRule>;

/** The rule about a whole list: in one chat request of VS Code. */
const VSCODE_TOOLS = 128;

const LIST_RULE = {
  provider: 'VS Code',
  text: 'VS Code: a chat request has at most 128 tools, those of all servers together.',
  source: 'https://code.visualstudio.com/docs/copilot/agents/agent-tools',
};

export type ToolRuleId = keyof typeof TABLE;

export const TOOL_RULES: Readonly<Record<ToolRuleId, ProviderRule>> = TABLE;

/** The facts of every rule, by id. */
export const PROVIDER_RULES: Readonly<
  Record<ToolRuleId | 'vscode-tools', Pick<ProviderRule, 'provider' | 'text' | 'source'>>
> = { ...TABLE, 'vscode-tools': LIST_RULE };

/** Whether a list of so many tools is against `vscode-tools`; what was expected, where it is. */
export function tooManyTools(count: number): string | null {
  return count > VSCODE_TOOLS ? `at most ${VSCODE_TOOLS} tools` : null;
}

/** `"."`, or `70 characters`. */
function oddName(name: string, odd: RegExp, max: number): string | null {
  if (name === '') return 'an empty name';
  // The rest is not worth a search.
  const [found] = odd.exec(name.slice(0, max)) ?? [];
  if (found !== undefined) return JSON.stringify(found);
  return name.length > max ? `${name.length} characters` : null;
}

function oddArgument({ properties }: JsonObject): string | null {
  const names = isObject(properties) ? Object.keys(properties) : [];
  const odd = names.filter((name) => oddName(name, /[^a-zA-Z0-9_.-]/u, 64) !== null);
  return odd.length === 0 ? null : andMore(JSON.stringify(odd[0]?.slice(0, 80)), odd.length);
}

function atTopLevel(schema: JsonObject, keywords: readonly string[]): string | null {
  return wordsOf(schema, keywords).join(', ') || null;
}

/** Those of the keywords that the schema has. */
function wordsOf(schema: JsonObject, keywords: readonly string[]): string[] {
  return keywords.filter((word) => Object.hasOwn(schema, word)).map((word) => `\`${word}\``);
}

/** The first place of what `find` finds, and how many more there are. */
function placed(
  schemas: readonly SubSchema[],
  find: (schema: JsonObject) => readonly string[],
): string | null {
  let first: string | undefined;
  let count = 0;
  for (const { path, schema } of schemas)
    for (const what of find(schema)) {
      first ??= `${what} at ${jsonPointer(path).slice(0, 200) || 'the top level'}`;
      count += 1;
    }
  return first === undefined ? null : andMore(first, count);
}

function andMore(first: string, count: number): string {
  return count === 1 ? first : `${first}, and ${count - 1} more`;
}

const STRICT_LACKS = [
  'oneOf',
  'allOf',
  'not',
  'if',
  'then',
  'else',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
];

function notStrict(schema: JsonObject): string[] {
  const { additionalProperties: more } = schema;
  const isOpen = more !== undefined && more !== false;
  const lacking = wordsOf(schema, STRICT_LACKS);
  return isOpen ? ['open `additionalProperties`', ...lacking] : lacking;
}

/** `$schema`, `additionalProperties` and references are left out: clients of Gemini take those away. */
const GEMINI_LACKS = [
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'uniqueItems',
  'const',
  'oneOf',
  'allOf',
  'not',
  'if',
  'then',
  'else',
  'patternProperties',
  'propertyNames',
  'prefixItems',
  'contains',
  'dependentRequired',
  'dependentSchemas',
  'unevaluatedProperties',
];
