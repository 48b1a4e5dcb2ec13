/**
 * What an HTTP exchange of a session was, by its number, for who asks for one after another, and for the same one several
 * times: some that follow are read with it. Exchanges mostly have the same headers as others, so these are parsed once,
 * and are the same object then. Memory is bounded by numbers of things that are small.
 */
import type { HeaderFields, HttpExchangeRow } from './http-reader.ts';
import type { Store } from './open.ts';

export type HttpHead = Pick<
  HttpExchangeRow,
  'method' | 'path' | 'status' | 'closedBy' | 'responseHeaders'
> & {
  /** Read when they are asked for, which is seldom. */
  requestHeaders(): HeaderFields;
};

type Row = [
  number: number,
  method: string,
  path: string,
  status: number | null,
  closedBy: HttpHead['closedBy'],
  responseHeaders: string | null,
];

const AHEAD = 32;
const MAX_KEPT = 256;
const MAX_KEPT_FIELDS = 256;
const MAX_KEPT_TEXT = 8 * 1024;

/** Gives undefined for an exchange that there is not. */
export function prepareHttpHeads(store: Store, session: number): (number: number) => HttpHead | undefined {
  const select = store
    .prepare<[number, number, number], Row>(
      `SELECT number, method, path, status, closed_by, response_headers FROM http_exchange
       WHERE session = ? AND number >= ? AND number < ?`,
    )
    .raw();
  const selectRequest = store
    .prepare<[number, number], string>(
      'SELECT request_headers FROM http_exchange WHERE session = ? AND number = ?',
    )
    .pluck();
  const kept = new Map<number, HttpHead | undefined>();
  const fieldsOf = createFieldsReader();

  function read(from: number): HttpHead | undefined {
    if (kept.size + AHEAD > MAX_KEPT) kept.clear();
    kept.set(from, undefined);
    for (const row of select.all(session, from, from + AHEAD)) kept.set(row[0], headOf(row));
    return kept.get(from);
  }

  function headOf([number, method, path, status, closedBy, response]: Row): HttpHead {
    const responseHeaders = response === null ? null : fieldsOf(response);
    const requestHeaders = () => fieldsOf(selectRequest.get(session, number) ?? '[]');
    return { method, path, status, closedBy, requestHeaders, responseHeaders };
  }

  return (number) => kept.get(number) ?? (kept.has(number) ? undefined : read(number));
}

function createFieldsReader(): (json: string) => HeaderFields {
  const known = new Map<string, HeaderFields>();
  return (json) => {
    const before = known.get(json);
    if (before !== undefined) return before;
    const fields: HeaderFields = JSON.parse(json);
    if (json.length > MAX_KEPT_TEXT) return fields;
    if (known.size === MAX_KEPT_FIELDS) known.clear();
    known.set(json, fields);
    return fields;
  };
}
