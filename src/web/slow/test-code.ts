/** A recorded call as a test for vitest: the recording answers in the server's place, as it does in every test of a client. */

import { TapedeckError } from '../../errors.ts';
import { sourceAt, withoutMembers } from '../../protocol/json/edit.ts';

export type TestedCall = {
  /** The session, and its store where that is not the user's own. */
  recording: string;
  db: string | null;
  isModern: boolean;
  /** Canonical. */
  method: string;
  target: string | null;
  /** The messages as JSON. */
  request: Buffer;
  answer: Buffer;
  /** Methods that the server asked its client meanwhile. */
  questions: readonly string[];
};

/** Methods of the official client that take the params as they are. */
const CALLS: Readonly<Record<string, string>> = {
  'tools/call': 'callTool',
  'prompts/get': 'getPrompt',
  'resources/read': 'readResource',
  'tools/list': 'listTools',
  'prompts/list': 'listPrompts',
  'resources/list': 'listResources',
  'resources/templates/list': 'listResourceTemplates',
  'completion/complete': 'complete',
};

/** Throws `TapedeckError` `refused` for a call that a client does not make by a method of its own. */
export function testCode(call: TestedCall): string {
  const name = CALLS[call.method];
  if (name === undefined)
    throw new TapedeckError(
      'refused',
      `Expected a call that tests make, got ${call.method}. A client sends that by itself, or it has no method for it.`,
    );
  const params = paramsOf(call.request);
  const asked = `client.${name}(${params === null ? '' : literal(params, '  ')})`;
  const error = sourceAt(call.answer, ['error']);
  const result = sourceAt(call.answer, ['result']) ?? '{}';
  const expected =
    error === undefined
      ? [`  const result = await ${asked};`, `  expect(result).toMatchObject(${literal(result, '  ')});`]
      : [
          `  await expect(${asked}).rejects.toMatchObject({ code: ${sourceAt(call.answer, ['error', 'code'])} });`,
        ];
  return [...headOf(call), ...expected, ...END].join('\n');
}

function headOf({ recording, db, isModern, method, target, questions }: TestedCall): string[] {
  const what = target === null ? method : `${method} ${target}`;
  const options = db === null ? '' : `, { db: ${quoted(db)} }`;
  const sdk = isModern ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client/index.js';
  const more = isModern ? ", { versionNegotiation: { mode: 'auto' } }" : '';
  return [
    `import { Client } from '${sdk}';`,
    `import { openRecording } from 'mcp-tapedeck';`,
    `import { expect, test } from 'vitest';`,
    '',
    `test(${quoted(`${what} is answered as recorded`)}, async () => {`,
    `  const deck = await openRecording(${quoted(recording)}${options});`,
    `  const client = new Client({ name: 'test', version: '1.0.0' }${more});`,
    ...questions.map(
      (question) => `  // The recorded server asked ${question} meanwhile: give the client a handler for it.`,
    ),
    '  await client.connect(deck.transport());',
  ];
}

const END = ['  await client.close();', '  await deck.close();', '});', ''];

/** Without what the official client sets by itself. */
function paramsOf(request: Buffer): string | null {
  const source = sourceAt(request, ['params']);
  return source === undefined ? null : withoutMembers(Buffer.from(source), ['_meta']).toString();
}

/** What an editor would show otherwise than it is, or not at all. */
const HIDDEN = /[\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** JSON is JavaScript, but for one name. Numbers beyond 2^53 lose digits here as in every client. */
function literal(json: string, indent: string): string {
  const value: unknown = JSON.parse(json);
  if (json.includes('__proto__')) return `JSON.parse(${quoted(json)})`;
  return visible(JSON.stringify(value, null, 2)).replaceAll('\n', `\n${indent}`);
}

function quoted(text: string): string {
  return visible(JSON.stringify(text));
}

function visible(code: string): string {
  return code.replace(HIDDEN, (character) =>
    [...character.split('')].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  );
}
