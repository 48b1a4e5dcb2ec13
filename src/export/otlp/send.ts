/** Sends lines of OTLP to a collector over HTTP: the specification's "OTLP/HTTP", with JSON. */
import { TapedeckError } from '../../errors.ts';

const TIMEOUT_MS = 10_000;

/** How much of a collector's refusal is shown. */
const MAX_ANSWER_CHARS = 300;

/**
 * Sends one line after the other below `base` (`http://127.0.0.1:4318`), with these headers. Throws `TapedeckError` for
 * the first that is not taken: `io` where the collector cannot be reached, `refused` where it answers with an error.
 * Those before it have arrived; sending them again does not double their spans.
 */
export async function sendOtlp(
  base: URL,
  headers: Readonly<Record<string, string>>,
  lines: Iterable<string>,
): Promise<void> {
  for (const line of lines) {
    const signal = line.startsWith('{"resourceSpans"') ? 'traces' : 'metrics';
    const url = new URL(base);
    url.pathname = `${base.pathname.replace(/\/$/, '')}/v1/${signal}`;
    await sendLine(url, headers, line);
  }
}

async function sendLine(url: URL, headers: Readonly<Record<string, string>>, body: string): Promise<void> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = await response.text();
  } catch (error) {
    const { cause = error } = error as Error;
    throw new TapedeckError('io', `The collector at ${url} could not be reached: ${reasonOf(cause)}.`);
  }
  const answer = text.length > MAX_ANSWER_CHARS ? `${text.slice(0, MAX_ANSWER_CHARS)}…` : text;
  if (!response.ok) {
    throw new TapedeckError(
      'refused',
      `The collector at ${url} answered ${response.status} ${response.statusText}: ${JSON.stringify(answer)}`,
    );
  }
  const refused = refusedBy(text);
  if (refused !== null)
    throw new TapedeckError('refused', `The collector at ${url} refused a part: ${JSON.stringify(refused)}`);
}

function reasonOf(cause: unknown): string {
  const { code, message } = cause as { code?: unknown; message?: unknown };
  return typeof code === 'string' ? code : String(message);
}

/** Collectors say with 200, too, that they have not taken everything; a warning alone refuses nothing. */
function refusedBy(text: string): object | null {
  let partial: { rejectedSpans?: unknown; rejectedDataPoints?: unknown } | undefined;
  try {
    partial = (JSON.parse(text) as { partialSuccess?: typeof partial } | null)?.partialSuccess;
  } catch {
    return null;
  }
  const count = Number(partial?.rejectedSpans ?? partial?.rejectedDataPoints ?? 0);
  return partial !== undefined && count > 0 ? partial : null;
}

/** `OTEL_EXPORTER_OTLP_HEADERS`, as every exporter reads it: `name=value,name=value`, percent-encoded. */
export function readOtlpHeaders(text: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of (text ?? '').split(',')) {
    const at = pair.indexOf('=');
    if (at < 1) continue;
    headers[pair.slice(0, at).trim()] = decode(pair.slice(at + 1).trim());
  }
  return headers;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
