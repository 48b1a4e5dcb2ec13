/** HTTP exchanges as lines of a text recording: the request, answers of status 1xx, the response, the end. */

import { type HttpExchange, newHttpExchange, type SidedEdit } from '../../protocol/http/exchange.ts';
import type { HttpEndEvent } from '../../protocol/wire/http-event.ts';
import { type HeadMoment, type HttpExchangeRow, INFORMATION, REQUEST_HEAD } from '../../store/read/http.ts';
import { msText, timeAfter } from './lines.ts';
import { BadLine, type Members, required } from './members.ts';

const CLOSERS: Record<HttpEndEvent['closedBy'], true> = { server: true, client: true, proxy: true };

/** When a head passed. */
export function headTime(row: HttpExchangeRow, { kind, index }: HeadMoment): number {
  if (kind === REQUEST_HEAD) return row.at;
  return (kind === INFORMATION ? row.informations[index]?.at : row.responseAt) ?? row.at;
}

export function headLine(row: HttpExchangeRow, { kind, index }: HeadMoment, ms: string): string {
  const head =
    kind === REQUEST_HEAD
      ? { request: requestJson(row) }
      : kind === INFORMATION
        ? { information: { ...row.informations[index], at: undefined } }
        : { response: responseJson(row) };
  return httpExchangeLine(row, ms, head);
}

export function endLine(row: HttpExchangeRow, ms: string): string {
  const { closedBy, error, responseTrailers } = row;
  return httpExchangeLine(row, ms, {
    end: { closedBy, error: error ?? undefined, trailers: someOf(responseTrailers) },
  });
}

function httpExchangeLine({ number }: HttpExchangeRow, ms: string, what: object): string {
  return `{"ms":${ms},"http":${number},${JSON.stringify(what).slice(1)}\n`;
}

function requestJson(row: HttpExchangeRow): object {
  const { method, path, version, client, requestHeaders: headers } = row;
  return { method, path, version, client, headers, edits: editsOf(row, 'request'), body: bodyJson(row) };
}

/** `ms` counts from the head. */
function bodyJson({ at, requestEndedAt, requestBytes, requestTrailers }: HttpExchangeRow) {
  if (requestEndedAt === null && requestBytes === 0 && requestTrailers.length === 0) return undefined;
  const ms = requestEndedAt === null ? undefined : Number(msText(requestEndedAt - at));
  return { ms, bytes: requestBytes, trailers: someOf(requestTrailers) };
}

function responseJson(row: HttpExchangeRow): object {
  const { status, statusText, responseHeaders: headers, responseBytes: bytes } = row;
  return { status, statusText, headers, edits: editsOf(row, 'response'), bytes };
}

function editsOf({ edits }: HttpExchangeRow, side: SidedEdit['side']): object[] | undefined {
  const own = edits.filter((edit) => edit.side === side);
  return someOf(own.map(({ header, original }) => ({ header, original })));
}

function someOf<T>(list: T[]): T[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** Lines about an HTTP exchange have one of these members. */
export const HTTP_EXCHANGE_MEMBERS = ['request', 'information', 'response', 'end'] as const;

export type HttpExchangeBook = {
  /** Reads a line. Returns the HTTP exchange once it has ended. Throws `BadLine`. */
  read(line: Members, at: number, lineNumber: number, frames: number): HttpExchange | null;
  /** HTTP exchanges that have not ended. Throws `BadLine` where one has no request. */
  open(): Generator<HttpExchange>;
};

type OpenHttpExchange = { row: HttpExchange; firstLine: number; hasRequest: boolean };

/** `isKnown`: whether an HTTP exchange of this number has ended before. */
export function createHttpExchangeBook(isKnown: (number: number) => boolean): HttpExchangeBook {
  const open = new Map<number, OpenHttpExchange>();

  function httpExchangeOf(number: number, firstLine: number): OpenHttpExchange {
    const before = open.get(number);
    if (before !== undefined) return before;
    if (isKnown(number)) throw new BadLine(`HTTP exchange ${number} has ended before this line`);
    const httpExchange = { row: newHttpExchange(number, 0), firstLine, hasRequest: false };
    open.set(number, httpExchange);
    return httpExchange;
  }

  return {
    read(line, at, lineNumber, frames) {
      line.only('ms', 'http', ...HTTP_EXCHANGE_MEMBERS);
      const number = line.count('http');
      if (number === null || number === 0) throw new BadLine('expected a number from 1 on as `http`');
      const told = HTTP_EXCHANGE_MEMBERS.filter((name) => line.has(name));
      if (told.length > 1)
        throw new BadLine(`expected one of ${told.join(', ')} in a line, got ${told.length}`);
      const httpExchange = httpExchangeOf(number, lineNumber);
      const { row } = httpExchange;
      const request = line.object('request');
      const information = line.object('information');
      const response = line.object('response');
      const end = line.object('end');
      if (request !== null) {
        if (httpExchange.hasRequest) throw new BadLine(`HTTP exchange ${number} has a request already`);
        httpExchange.hasRequest = true;
        readRequest(row, request, at);
      } else if (information !== null) readInformation(row, information, at);
      else if (response !== null) readResponse(row, response, at);
      else if (end !== null) {
        checkRequest(httpExchange);
        readEnd(row, end, at, frames);
        open.delete(number);
        return row;
      }
      return null;
    },
    *open() {
      for (const httpExchange of open.values()) {
        checkRequest(httpExchange);
        yield httpExchange.row;
      }
    },
  };
}

function checkRequest({ row, firstLine, hasRequest }: OpenHttpExchange): void {
  if (hasRequest) return;
  throw new BadLine(
    `expected a \`request\` of HTTP exchange ${row.number}, which line ${firstLine} begins, got none`,
  );
}

function readRequest(row: HttpExchange, request: Members, at: number): void {
  request.only('method', 'path', 'version', 'client', 'headers', 'edits', 'body');
  row.at = at;
  row.method = required(request, 'method', request.text('method'));
  row.path = required(request, 'path', request.text('path'));
  row.version = request.text('version') ?? '1.1';
  row.client = request.text('client') ?? '';
  row.requestHeaders = request.pairs('headers') ?? [];
  row.edits = [...readEdits(request, 'request'), ...row.edits];
  const body = request.object('body');
  if (body !== null) {
    body.only('ms', 'bytes', 'trailers');
    const ms = body.number('ms');
    row.requestEndedAt = ms === null ? null : timeAfter(at, ms);
    row.requestBytes = body.count('bytes') ?? 0;
    row.requestTrailers = body.pairs('trailers') ?? [];
  }
}

function readInformation(row: HttpExchange, information: Members, at: number): void {
  information.only('status', 'headers');
  const status = required(information, 'status', information.count('status'));
  row.informations.push({ at, status, headers: information.pairs('headers') ?? [] });
}

function readResponse(row: HttpExchange, response: Members, at: number): void {
  if (row.responseAt !== null) throw new BadLine(`HTTP exchange ${row.number} has a response already`);
  response.only('status', 'statusText', 'headers', 'edits', 'bytes');
  row.responseAt = at;
  row.status = required(response, 'status', response.count('status'));
  row.statusText = response.text('statusText') ?? '';
  row.responseHeaders = response.pairs('headers') ?? [];
  row.responseBytes = response.count('bytes') ?? 0;
  row.edits = [...row.edits, ...readEdits(response, 'response')];
}

function readEnd(row: HttpExchange, end: Members, at: number, frames: number): void {
  end.only('closedBy', 'error', 'trailers');
  row.endedAt = at;
  row.endedAfter = frames;
  row.closedBy = end.oneOf('closedBy', CLOSERS) ?? 'server';
  row.error = end.text('error');
  row.responseTrailers = end.pairs('trailers') ?? [];
}

function readEdits(head: Members, side: SidedEdit['side']): SidedEdit[] {
  return (head.objects('edits') ?? []).map((edit) => {
    edit.only('header', 'original');
    const header = required(edit, 'header', edit.text('header'));
    const original = required(edit, 'original', edit.text('original'));
    return { side, header, original };
  });
}
