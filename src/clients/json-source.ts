/** JSON as clients write it: with comments and trailing commas. */
import { type Node as JsonNode, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { TapedeckError } from '../errors.ts';
import { indentAt, lineEndOf, type Member, type Node, placeOf } from './source.ts';

/** Throws `TapedeckError` `usage` where it is none. A text without any value is an empty map. */
export function parseJson(text: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  const [first] = errors;
  if (first !== undefined) {
    const what = printParseErrorCode(first.error);
    throw new TapedeckError('usage', `it is not valid JSON: ${what} at ${placeOf(text, first.offset)}`);
  }
  if (root === undefined) return { kind: 'map', members: [], start: text.length, end: text.length };
  return toNode(text, root);
}

function toNode(text: string, { type, offset: start, length, children = [], value }: JsonNode): Node {
  const end = start + length;
  switch (type) {
    case 'object':
      return { kind: 'map', start, end, members: children.map((property) => toMember(text, property)) };
    case 'array':
      return { kind: 'list', start, end, items: children.map((item) => toNode(text, item)) };
    case 'string':
      return { kind: 'string', start, end, value: value as string };
    default:
      return { kind: 'other', start, end, source: text.slice(start, end) };
  }
}

function toMember(text: string, { offset, children }: JsonNode): Member {
  const [key, value] = children as [JsonNode, JsonNode];
  return {
    key: key.value as string,
    value: toNode(text, value),
    // Not before it is asked for: a line may be as long as the file.
    beside(name, source) {
      const indent = indentAt(text, offset);
      const gap = indent === null ? ' ' : lineEndOf(text) + indent;
      return `,${gap}${JSON.stringify(name)}: ${source}`;
    },
  };
}
