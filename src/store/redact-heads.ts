/** Masking the heads of stored HTTP exchanges after the fact. */
import type { Redactor } from '../protocol/redact.ts';
import { eachHttpExchange, type HeaderFields, type HttpExchangeRow } from './http-reader.ts';
import type { Store } from './open.ts';

/** Gives how many exchanges have changed. `isDry`: would have. */
export function redactHeads(store: Store, session: number, redactor: Redactor, isDry: boolean): number {
  const put = store.prepare(
    `UPDATE http_exchange SET path = @path, request_headers = @requestHeaders, request_trailers = @requestTrailers,
       response_headers = @responseHeaders, response_trailers = @responseTrailers, informations = @informations,
       edits = @edits, status_text = @statusText, error = @error WHERE session = @session AND number = @number`,
  );
  let count = 0;
  // Read before the first is written, as one statement cannot walk over what another changes.
  for (const exchange of [...eachHttpExchange(store, session)]) {
    const redacted = redactExchange(exchange, redactor);
    if (JSON.stringify(redacted) === JSON.stringify(redactExchange(exchange, null))) continue;
    count += 1;
    if (!isDry) put.run({ ...redacted, session, number: exchange.number });
  }
  return count;
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
