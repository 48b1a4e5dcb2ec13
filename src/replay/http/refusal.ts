/** Answers HTTP requests that the mock server does not accept, as the official SDKs' servers do. */

import type { ServerResponse } from 'node:http';

export type HttpRefusal = {
  status: number;
  code: number;
  message: string;
  data?: unknown;
  /** The methods that are allowed. */
  allow?: string;
};

export const PARSE_ERROR = -32700;

export const INVALID_REQUEST = -32600;

export const INVALID_PARAMS = -32602;

export const HEADER_MISMATCH = -32020;

/** The SDKs' code for what the transport refuses. */
export const REFUSED = -32000;

const SESSION_NOT_FOUND = -32001;

export const NOT_ACCEPTABLE: HttpRefusal = {
  status: 406,
  code: REFUSED,
  message: 'Not Acceptable: Client must accept both application/json and text/event-stream',
};

export const NO_STREAM_ACCEPTED: HttpRefusal = {
  status: 406,
  code: REFUSED,
  message: 'Not Acceptable: Client must accept text/event-stream',
};

export const UNSUPPORTED_TYPE: HttpRefusal = {
  status: 415,
  code: REFUSED,
  message: 'Unsupported Media Type: Content-Type must be application/json',
};

export const TOO_LARGE: HttpRefusal = { status: 413, code: REFUSED, message: 'Payload Too Large' };

export const NOT_JSON: HttpRefusal = { status: 400, code: PARSE_ERROR, message: 'Parse error: Invalid JSON' };

export const NOT_RPC: HttpRefusal = {
  status: 400,
  code: PARSE_ERROR,
  message: 'Parse error: Invalid JSON-RPC message',
};

export const NO_SESSION_ID: HttpRefusal = {
  status: 400,
  code: REFUSED,
  message: 'Bad Request: Mcp-Session-Id header is required',
};

export const UNKNOWN_SESSION: HttpRefusal = {
  status: 404,
  code: SESSION_NOT_FOUND,
  message: 'Session not found',
};

export const FAULT: HttpRefusal = { status: 500, code: -32603, message: 'Internal error' };

export function methodNotAllowed(allow: string): HttpRefusal {
  return { status: 405, code: REFUSED, message: 'Method not allowed.', allow };
}

/** `id`: JSON text of the request's id, where it could be read. */
export function refuse(response: ServerResponse, refusal: HttpRefusal, id = 'null'): void {
  const { status, code, message, data, allow } = refusal;
  const error = JSON.stringify({ code, message, data });
  const body = Buffer.from(`{"jsonrpc":"2.0","error":${error},"id":${id}}`);
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(body.length)];
  if (allow !== undefined) headers.push('Allow', allow);
  response.writeHead(status, headers).end(body);
}

/** Answers requests that have nothing to do with MCP, in plain text. */
export function refuseInWords(response: ServerResponse, status: number, reason: string): void {
  const body = Buffer.from(`tapedeck: ${reason}\n`);
  const headers = ['Content-Type', 'text/plain; charset=utf-8', 'Content-Length', String(body.length)];
  response.writeHead(status, headers).end(body);
}
