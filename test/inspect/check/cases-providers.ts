/** For each rule of a provider a list of tools that it refuses, and one that it takes. */
import type { PROVIDER_RULES } from '../../../src/inspect/check/beyond/provider-rules.ts';
import type { Case } from './cases-base.ts';
import { ask, client, give, hello, type Script, server } from './session.ts';

export function listed(...tools: { name: string; inputSchema: object }[]): Script {
  return { steps: [...hello(), client(ask(1, 'tools/list')), server(give(1, { tools }))] };
}

export const tool = (name: string, properties: object = {}, more: object = {}) => ({
  name,
  inputSchema: { type: 'object', properties, ...more },
});

const text = { type: 'string' };
const either = [{ required: ['a'] }, { required: ['b'] }];
const many = (count: number) => Array.from({ length: count }, (_, i) => tool(`tool-${i}`));

export const PROVIDER_CASES: Record<keyof typeof PROVIDER_RULES, Case> = {
  'openai-name': { breaks: listed(tool('a.b')), keeps: listed(tool('a_b')) },
  'openai-top-level': {
    breaks: listed(tool('find', { a: text, b: text }, { not: { required: ['a', 'b'] } })),
    keeps: listed(tool('find', { a: { anyOf: [text, { type: 'null' }] } })),
  },
  'openai-array-items': {
    breaks: listed(tool('find', { a: { type: 'array' } })),
    keeps: listed(tool('find', { a: { type: 'array', items: text } })),
  },
  'openai-strict': {
    breaks: listed(tool('find', { a: { type: 'object', additionalProperties: text } })),
    keeps: listed(tool('find', { a: { type: 'object', properties: {}, additionalProperties: false } })),
  },
  'anthropic-name': { breaks: listed(tool('a.b')), keeps: listed(tool('a-b')) },
  'anthropic-top-level': {
    breaks: listed(tool('find', { a: text, b: text }, { anyOf: either })),
    keeps: listed(tool('find', { anyOf: text, oneOf: text })),
  },
  'anthropic-property': {
    breaks: listed(tool('find', { 'filter[id]': text })),
    keeps: listed(tool('find', { 'filter.id': text })),
  },
  'gemini-name': { breaks: listed(tool('1st')), keeps: listed(tool('_1st')) },
  'gemini-keyword': {
    breaks: listed(tool('find', { a: { type: 'number', exclusiveMinimum: 0 } })),
    keeps: listed(tool('find', { exclusiveMinimum: { type: 'number', minimum: 0 } })),
  },
  'cursor-name': { breaks: listed(tool('a'.repeat(59))), keeps: listed(tool('a'.repeat(58))) },
  'vscode-tools': { breaks: listed(...many(129)), keeps: listed(...many(128)) },
};
