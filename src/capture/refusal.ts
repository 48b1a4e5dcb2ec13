/** The few cases in which the proxy answers in the server's place, and what it then says: one line, with its reason. */
import type { IncomingMessage } from 'node:http';
import { findOriginProblem, type OriginRule } from '../protocol/origin.ts';
import { findFramingProblem } from './headers.ts';

export type Refusal = { status: 400 | 403 | 502; reason: string };

type Rules = { upstream: { origin: string }; originRule: OriginRule };

/** Why a request is not forwarded, or null if it is. */
export function findRefusal(request: IncomingMessage, { upstream, originRule }: Rules): Refusal | null {
  const framing = findFramingProblem(request);
  if (framing !== null) return { status: 400, reason: `refused this request: ${framing}` };
  const { host, origin } = request.headers;
  const problem = findOriginProblem(host, origin, originRule);
  if (problem !== null) {
    const { header, value } = problem;
    const help = `--allow-${header.toLowerCase()} allows it`;
    return { status: 403, reason: `refused the ${header} ${JSON.stringify(value)}; ${help}` };
  }
  if (originForm(request) !== null) return null;
  return { status: 403, reason: `refused this request target: only ${upstream.origin} is forwarded to` };
}

export function unreachable(origin: string, why: string): Refusal {
  return { status: 502, reason: `cannot reach ${origin}: ${why}` };
}

export function unforwardable(origin: string, why: string): Refusal {
  return { status: 502, reason: `cannot forward the answer of ${origin}: ${why}` };
}

/** Node reads these, but throws where it is to write them. */
const CONTROL_CHARACTER = /[^\t\x20-\x7e\x80-\xff]/;

/** Why an answer cannot be forwarded, or null if it can. */
export function findAnswerProblem(answer: IncomingMessage): string | null {
  const { headers, statusCode = 0, statusMessage = '' } = answer;
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') {
    return `its Transfer-Encoding is ${JSON.stringify(encoding)}`;
  }
  if (statusCode < 100) return `its status is ${statusCode}`;
  return CONTROL_CHARACTER.test(statusMessage) ? 'its status line has control characters' : null;
}

/** The request target as a server takes it; null if it is meant for another server. */
export function originForm({ url = '', headers, method }: IncomingMessage): string | null {
  if (url.startsWith('/') || (url === '*' && method === 'OPTIONS')) return url;
  const [start, authority] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? [];
  if (start === undefined || authority?.toLowerCase() !== headers.host?.toLowerCase()) return null;
  const rest = url.slice(start.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
