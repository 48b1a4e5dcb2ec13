/**
 * JSON-RPC ids. MCP: a string or an integer, never null; unique per sender, not per session; `1` is not `"1"`
 * (specification, basic/index, "Requests"). The text is the id's own source text, for a string without its
 * quotes, so an integer above 2^53 stays exact.
 */
import { type Span, sourceText, stringText } from './json.ts';

export type IdType = 'string' | 'number';

/** `key` is equal for two ids exactly if they denote the same value of the same type. */
export type Id = { type: IdType; text: string; key: string };

export type IdProblem = 'id-null' | 'id-fractional' | 'id-not-scalar';

const PLAIN_INTEGER = /^(?:0|-?[1-9]\d*)$/;
const MAX_ZEROS = 1000;

/** Reads the value at `span` as an id, or says why it is none. */
export function readId(bytes: Buffer, span: Span): Id | IdProblem {
  if (span.type === 'null') return 'id-null';
  if (span.type === 'string') {
    const text = bytes.toString('utf8', span.start + 1, span.end - 1);
    return { type: 'string', text, key: `s${text.includes('\\') ? stringText(bytes, span) : text}` };
  }
  if (span.type !== 'number') return 'id-not-scalar';
  const text = sourceText(bytes, span);
  const integer = PLAIN_INTEGER.test(text) ? text : integerText(text);
  return integer === undefined ? 'id-fractional' : { type: 'number', text, key: `n${integer}` };
}

/** `1.0`, `1E3` and `-0` are integers too: their value in plain digits, or undefined for a true fraction. */
function integerText(text: string): string | undefined {
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = (whole + fraction).replace(/^-?0*/, '');
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  if (end === 0) return '0';

  const zeros = Number(power) - fraction.length + digits.length - end;
  if (zeros < 0) return undefined;
  const sign = text.startsWith('-') ? '-' : '';
  // The power of a hostile id is not written out: `1e999999999` would be a gigabyte.
  return sign + digits.slice(0, end) + (zeros > MAX_ZEROS ? `e${zeros}` : '0'.repeat(zeros));
}
