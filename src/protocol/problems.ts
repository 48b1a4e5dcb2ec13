/**
 * What can be wrong with a message, as a table: code → sentence. Malformed traffic is data, never an exception.
 * The first group makes a message `invalid`; the second leaves its kind as it is.
 */

export const INVALID = {
  'not-json': 'is not JSON',
  'not-object': 'is JSON, but neither an object nor a batch of objects',
  'empty-batch': 'is a batch without messages',
  'no-jsonrpc': 'has no `jsonrpc` member',
  'wrong-jsonrpc': 'has a `jsonrpc` member other than "2.0"',
  'result-and-error': 'has both `result` and `error`',
  'method-and-answer': 'has a `method` beside a `result` or an `error`',
  neither: 'has neither `method` nor `result` nor `error`',
  'method-not-string': 'has a `method` that is not a string',
  'id-null': 'has the id null',
  'id-fractional': 'has a fractional number as its id',
  'id-not-scalar': 'has an id that is neither a string nor a number',
  'result-without-id': 'is a result without an id',
  'params-array': 'has an array as its `params`',
  'params-not-object': 'has `params` that are not an object',
  truncated: 'was not recorded whole, so it cannot be read',
} as const;

export const REMARK = {
  'invalid-utf8': 'holds bytes that are not valid UTF-8',
  bom: 'begins with a byte order mark',
  'lsp-framing': 'is framed by Content-Length, not by lines',
  'duplicate-key': 'repeats a member of its envelope; the last one counts',
  'extra-member': 'has a member that JSON-RPC does not know',
  'error-shape': 'has an `error` without an integer `code` and a string `message`',
  'error-without-id': 'is an error that names no request',
  'id-in-use': 'takes the id of a request that is still open',
  undecoded: 'is still in its content coding, which is unknown or broken',
  'wrong-type': 'came under another content type than that of messages',
  incomplete: 'broke off before its end',
  replayed: 'came before: it was sent again to a client that resumed its stream',
  'no-open-request': 'answers no open request of the other side',
} as const;

export type InvalidReason = keyof typeof INVALID;
export type Remark = keyof typeof REMARK;
export type Problem = InvalidReason | Remark;

/** The sentence of a problem code, to follow "this message". */
export function problemText(code: string): string {
  return { ...INVALID, ...REMARK }[code as Problem] ?? code;
}
