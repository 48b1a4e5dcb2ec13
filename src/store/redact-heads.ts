/** Masking the heads of stored HTTP exchanges after the fact. */
import type { Redactor } from '../protocol/redact.ts';
import { type HeaderFields, type HttpExchangeRow, prepareHttpExchangesAfter } from './http-reader.ts';
import type { Store } from './open.ts';

/** The columns of an exchange as they are to be. */
export type HeadChange = ReturnType<typeof redactExchange> & { number: number };

const EXCHANGES_AT_ONCE = 256;

/** What is to be changed in the heads of a session, some at a time. Between two steps the store may be written. */
export function* headChanges(store: Store, session: number, redactor: Redactor): Generator<HeadChange[]> {
  const exchangesAfter = prepareHttpExchangesAfter(store, session, EXCHANGES_AT_ONCE);
  let some = exchangesAfter(-1);
  while (some.length > 0) {
    const changes = some.flatMap((exchange) => {
      const redacted = redactExchange(exchange, redactor);
      const isSame = JSON.stringify(redacted) === JSON.stringify(redactExchange(exchange, null));
      return isSame ? [] : [{ ...redacted, number: exchange.number }];
    });
    if (changes.length > 0) yield changes;
    some = exchangesAfter(some.at(-1)?.number ?? 0);
  }
}

/** Puts changed heads in their place, in the transaction at hand. */
export function prepareHeadChange(store: Store, session: number): (change: HeadChange) => void {
  const put = store.prepare(
    `UPDATE http_exchange SET path = @path, request_headers = @requestHeaders, request_trailers = @requestTrailers,
       response_headers = @responseHeaders, response_trailers = @responseTrailers, informations = @informations,
       edits = @edits, status_text = @statusText, error = @error WHERE session = ${session} AND number = @number`,
  );
  return (change) => void put.run(change);
}

/** The columns that may hold a secret; without a redactor as they are. */
function redactExchange(exchange: HttpExchangeRow, redactor: Redactor | null) {
  const text = (value: string | null) => value && (redactor?.text(value) ?? value);
  const header = (name: string, value: string) => redactor?.header(name, value) ?? value;
  const fields = (all: HeaderFields) => all.map(([name, value]) => [name, header(name, value)]);
  const some = (all: HeaderFields) => (all.length === 0 ? null : JSON.stringify(fields(all)));
  const { informations, edits, responseHeaders } = exchange;
  const masked = informations.map((one) => ({ ...one, headers: fields(one.headers) }));
  const originals = edits.map((edit) => ({ ...edit, original: header(edit.header, edit.original) }));
  return {
    path: redactor?.url(exchange.path) ?? exchange.path,
    requestHeaders: JSON.stringify(fields(exchange.requestHeaders)),
    requestTrailers: some(exchange.requestTrailers),
    responseHeaders: responseHeaders && JSON.stringify(fields(responseHeaders)),
    responseTrailers: some(exchange.responseTrailers),
    informations: informations.length === 0 ? null : JSON.stringify(masked),
    edits: edits.length === 0 ? null : JSON.stringify(originals),
    statusText: text(exchange.statusText),
    error: text(exchange.error),
  };
}
