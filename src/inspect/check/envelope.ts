/** The form of each message: its envelope, encoding and framing. JSON-RPC 2.0, sections 4 to 6; specification, basic. */
import { BoundedMap } from '../../protocol/bounded.ts';
import { isObject } from '../../protocol/json/read.ts';
import { type InvalidReason, problemText, type Remark } from '../../protocol/message/message.ts';
import {
  type CheckedHttpExchange,
  type CheckedMessage,
  type Inspector,
  MAX_REMEMBERED,
  shown,
} from './checked-message.ts';
import type { Report, RuleId } from './rules.ts';

const OF_REASON: Partial<Record<InvalidReason, RuleId>> = {
  'not-object': 'not-object',
  'empty-batch': 'batch-empty',
  'no-jsonrpc': 'jsonrpc-version',
  'wrong-jsonrpc': 'jsonrpc-version',
  'result-and-error': 'result-and-error',
  'method-and-answer': 'call-and-answer',
  neither: 'empty-envelope',
  'method-not-string': 'method-type',
  'id-null': 'id-null',
  'id-fractional': 'id-fractional',
  'id-not-scalar': 'id-scalar',
  'result-without-id': 'id-scalar',
  'params-array': 'params-type',
  'params-not-object': 'params-type',
};

const OF_REMARK: Partial<Record<Remark, RuleId>> = {
  'invalid-utf8': 'encoding',
  bom: 'byte-order-mark',
  'lsp-framing': 'framing',
  'duplicate-key': 'duplicate-member',
  'extra-member': 'extra-member',
  'error-shape': 'error-shape',
  'wrong-type': 'content-type',
};

const EXPECTED: Partial<Record<RuleId, string>> = {
  'not-object': 'a JSON object',
  'batch-empty': 'at least one message',
  'jsonrpc-version': '"jsonrpc":"2.0"',
  'result-and-error': 'one of `result` and `error`',
  'call-and-answer': 'a `method`, or an answer',
  'empty-envelope': '`method`, `result` or `error`',
  'method-type': 'a string',
  'id-null': 'a string or an integer',
  'id-fractional': 'an integer',
  'id-scalar': 'a string or an integer',
  'params-type': 'an object',
  encoding: 'valid UTF-8',
  'byte-order-mark': 'JSON from the first byte on',
  framing: 'one line',
  'duplicate-member': 'each member once',
  'extra-member': 'no members but those of JSON-RPC',
  'error-shape': 'an integer `code` and a string `message`',
  'content-type': 'application/json or text/event-stream',
};

export function inspectEnvelope(report: Report): Inspector {
  /** By number of the HTTP exchange: a message of another content type, of which only the status says whether it is wrong. */
  const ofOtherType = new BoundedMap<string, CheckedMessage>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    const { message, side } = seen;
    if (message.kind === 'invalid') {
      if (message.reason === 'not-json') {
        notJson(seen);
        return;
      }
      const rule = OF_REASON[message.reason];
      if (rule !== undefined) report(rule, side, seen, EXPECTED[rule] ?? '', faultOf(seen, message.reason));
    }
    for (const remark of message.remarks) {
      const rule = OF_REMARK[remark];
      if (remark === 'wrong-type' && seen.channel === 'response') ofOtherType.set(String(seen.http), seen);
      else if (rule !== undefined) report(rule, side, seen, EXPECTED[rule] ?? '', faultOf(seen, remark));
    }
    batch(seen);
    if (message.kind === 'result' && seen.value !== null && !isObject(seen.value['result']))
      report('result-type', side, seen, 'an object', shown(seen.value['result']));
  }

  function notJson(seen: CheckedMessage): void {
    if (seen.channel === 'stdout')
      report('stdout-pollution', 'server', seen, 'a message', 'text that is not JSON');
    else report('not-json', seen.side, seen, 'JSON', 'bytes that are not JSON');
  }

  function batch(seen: CheckedMessage): void {
    if (!seen.isBatch) return;
    const isKnown = seen.revision === null || seen.revision === '2025-03-26';
    if (!isKnown && seen.place.n === 0)
      report('batch', seen.side, seen, 'one message', `a batch, in revision ${seen.revision}`);
    if (seen.message.kind === 'request' && seen.message.canonical === 'initialize')
      report('batch-initialize', seen.side, seen, '`initialize` by itself', '`initialize` in a batch');
  }

  /** A server that has no stream to give refuses a GET as it likes (basic/transports); a DELETE likewise. */
  function httpExchange({ number, method, status }: CheckedHttpExchange): void {
    const seen = ofOtherType.get(String(number));
    ofOtherType.delete(String(number));
    const isRefusal = method !== 'POST' && status !== null && status >= 400;
    if (seen !== undefined && !isRefusal)
      report('content-type', seen.side, seen, EXPECTED['content-type'] ?? '', faultOf(seen, 'wrong-type'));
  }

  return { message, httpExchange };
}

const KNOWN = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);

/** What was there in place of what was expected. */
function faultOf({ value }: CheckedMessage, problem: InvalidReason | Remark): string {
  if (value === null) return `a message that ${problemText(problem)}`;
  switch (problem) {
    case 'wrong-jsonrpc':
      return shown(value['jsonrpc']);
    case 'id-null':
    case 'id-fractional':
    case 'id-not-scalar':
      return shown(value['id']);
    case 'method-not-string':
      return shown(value['method']);
    case 'params-array':
    case 'params-not-object':
      return shown(value['params']);
    case 'error-shape':
      return shown(value['error']);
    case 'extra-member':
      return Object.keys(value)
        .filter((name) => !KNOWN.has(name))
        .map((name) => `\`${name}\``)
        .join(', ');
    default:
      return `a message that ${problemText(problem)}`;
  }
}
