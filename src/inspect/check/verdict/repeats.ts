/** Calls that are made again before the fate of the first is known. Specification, schema, ToolAnnotations. */

import { BoundedMap } from '../../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import type { Place } from '../../../protocol/message/correlate.ts';
import { createRepeats, type RepeatedCall } from '../../verdict/repeats.ts';
import { formatDuration } from '../../view/text.ts';
import {
  type CheckedHttpExchange,
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  resultOf,
  shown,
} from '../checked-message.ts';
import type { Report } from '../rules.ts';

/** `safe`: it only reads, or calling it again changes nothing more. */
type Tool = 'safe' | 'unsafe';

export function inspectRepeats(report: Report, { basis, mayMissFrames = false }: CheckedSession): Inspector {
  const repeats = createRepeats();
  const tools = new BoundedMap<string, Tool>(MAX_REMEMBERED);
  /** By place of the first call: where frames may be missing, only a later answer proves that it was open. */
  const doubtful = new BoundedMap<string, (() => void)[]>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    const { message, correlation, asked } = seen;
    if (message.kind === 'request' && methodOf(seen) === 'tools/call') call(seen);
    if (asked?.method === 'tools/list') learn(resultOf(seen));
    if (correlation.relation === 'reply' && correlation.to !== null) {
      const { seq, n } = correlation.to;
      for (const tell of doubtful.get(`${seq}.${n}`) ?? []) tell();
      doubtful.delete(`${seq}.${n}`);
      repeats.settle(correlation.to);
    }
  }

  function learn(result: JsonObject | null): void {
    const list = result?.['tools'];
    for (const tool of Array.isArray(list) ? list : [])
      if (isObject(tool) && typeof tool['name'] === 'string') tools.set(tool['name'], hintOf(tool));
  }

  function call(seen: CheckedMessage): void {
    const repeat = repeats.call(seen.place, seen.at, seen.params);
    if (repeat === null) return;
    const tell = () => reportCall(seen, repeat);
    const first = `${repeat.first.seq}.${repeat.first.n}`;
    if (mayMissFrames) doubtful.set(first, [...(doubtful.get(first) ?? []), tell]);
    else tell();
  }

  function reportCall(seen: CheckedMessage, { first, gap }: RepeatedCall): void {
    const name = seen.params?.['name'];
    const tool = typeof name === 'string' ? tools.get(name) : undefined;
    const again = `${shown(name)} again with the same arguments, ${formatDuration(gap / 1000)} after #${first.seq}`;
    const other = basis === 'stateless' ? ', perhaps by another client' : '';
    report(
      tool === 'safe' ? 'call-repeated-safe' : 'call-repeated',
      seen.side,
      seen,
      'the answer to the first call before it is made again',
      `${again}${other}; ${HINTS[tool ?? 'unlisted']}`,
    );
  }

  /** Refused by its HTTP status, it has not run. One that its client left may have. */
  function httpExchange({ status }: CheckedHttpExchange, closed: readonly Place[]): void {
    if (status !== null && status >= 400) for (const place of closed) repeats.settle(place);
  }

  return { message, httpExchange };
}

const HINTS = {
  safe: 'its tool says that this is harmless',
  unsafe: 'its tool does not say that this is harmless',
  unlisted: 'no list of tools says whether this is harmless',
} as const;

function hintOf({ annotations }: JsonObject): Tool {
  if (!isObject(annotations)) return 'unsafe';
  return annotations['readOnlyHint'] === true || annotations['idempotentHint'] === true ? 'safe' : 'unsafe';
}
