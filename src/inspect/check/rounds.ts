/** Requests that take several rounds. Specification 2026-07-28, basic/patterns/mrtr. */
import { createRecent } from './recent.ts';
import type { Report } from './rules.ts';
import { type Inspector, isObject, type Json, resultOf, type Seen, shown } from './seen.ts';

const METHODS = new Set(['tools/call', 'prompts/get', 'resources/read']);
const INPUTS = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list']);

export function inspectRounds(report: Report): Inspector {
  /** By place of the request: its id. */
  const ids = createRecent<string>();

  function message(seen: Seen): void {
    if (seen.message.kind === 'request') request(seen, seen.message.id.key, seen.message.id.text);
    const result = resultOf(seen);
    if (result?.['resultType'] === 'input_required') required(seen, result);
  }

  function request(seen: Seen, key: string, text: string): void {
    ids.set(`${seen.place.seq}.${seen.place.n}`, key);
    const { relation, to } = seen.correlation;
    const isRetry =
      seen.params?.['inputResponses'] !== undefined || seen.params?.['requestState'] !== undefined;
    if (relation === 'round' && to !== null) {
      if (ids.get(`${to.seq}.${to.n}`) === key)
        report('round-id', seen.side, seen, 'an id of its own', `id ${text} again`);
    } else if (isRetry && METHODS.has(seen.message.kind === 'request' ? seen.message.canonical : ''))
      report(
        'round-unknown',
        seen.side,
        seen,
        'a request that required this input',
        'none with these params and this `requestState`',
      );
  }

  function required(seen: Seen, result: Json): void {
    const { inputRequests, requestState } = result;
    if (seen.asked !== null && !METHODS.has(seen.asked.method))
      report('round-method', seen.side, seen, `an answer to ${seen.asked.method}`, '`input_required`');
    if (inputRequests === undefined && requestState === undefined)
      report('round-empty', seen.side, seen, '`inputRequests` or `requestState`', 'neither');
    if (!isObject(inputRequests)) return;
    for (const [key, input] of Object.entries(inputRequests)) {
      const method = isObject(input) ? input['method'] : undefined;
      if (!INPUTS.has(String(method)))
        report('round-input', seen.side, seen, [...INPUTS].join(', '), `${shown(method)} as ${shown(key)}`);
    }
  }

  return { message };
}
