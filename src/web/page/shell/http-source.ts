import type { ApiError } from '../../api.ts';
import { type Changes, createChanges } from './changes.ts';
import { type AnswerSource, ApiFailure, UNAUTHORIZED } from './source.ts';

const TOKEN = 'tapedeck-token';

/** The token of this tab where the browser keeps nothing for us. */
let token: string | null = null;

/** Moves the token of the link out of the address bar, where it would be copied along, into this origin's storage. */
export function takeToken(): void {
  const given = /^#token=(.+)$/.exec(location.hash)?.[1];
  try {
    if (given !== undefined) localStorage.setItem(TOKEN, given);
    token = given ?? localStorage.getItem(TOKEN);
  } catch {
    token = given ?? null;
  }
  if (given !== undefined) history.replaceState(null, '', location.pathname + location.search);
}

let changes: Changes;

/** The API of the server that this page came from. */
export function createHttpSource(): AnswerSource {
  changes = createChanges(async (headers, signal) => textOf(await request('changes', signal, headers)));
  return { json, lines, bytes, changes: changes.follow };
}

async function ask(
  path: string,
  signal: AbortSignal,
  headers: Record<string, string> = {},
): Promise<Response> {
  const response = await request(path, signal, headers).catch((error) => {
    if (error instanceof ApiFailure && error.code === NO_ANSWER) changes.beginAnew();
    throw error;
  });
  changes.saw(response.headers.get('last-event-id'));
  return response;
}

const NO_ANSWER = 'NO_ANSWER';

async function request(
  path: string,
  signal: AbortSignal,
  headers: Record<string, string>,
): Promise<Response> {
  const access: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`/api/${path}`, { signal, headers: { ...headers, ...access } }).catch(
    (error) => {
      if (signal.aborted) throw error;
      throw new ApiFailure({
        code: NO_ANSWER,
        message: 'The viewer does not answer. Is `tapedeck ui` still running?',
      });
    },
  );
  if (!response.ok) throw await failureIn(response);
  return response;
}

async function failureIn(response: Response): Promise<ApiFailure> {
  const body = await response.json().catch(() => null);
  const { error } = (body ?? {}) as Partial<ApiError>;
  const told = error ?? {
    code: `HTTP_${response.status}`,
    message: `The viewer answered with ${response.status}.`,
  };
  return new ApiFailure(response.status === 401 ? { ...told, code: UNAUTHORIZED } : told);
}

async function json<T>(path: string, signal: AbortSignal): Promise<T> {
  return (await ask(path, signal)).json();
}

async function bytes(
  path: string,
  signal: AbortSignal,
  range?: readonly [from: number, to: number],
): Promise<Uint8Array<ArrayBuffer>> {
  const headers: Record<string, string> = range ? { range: `bytes=${range[0]}-${range[1] - 1}` } : {};
  const response = await ask(path, signal, headers);
  const length = Number(response.headers.get('content-length') ?? Number.NaN);
  const reader = response.body?.getReader();
  if (!Number.isInteger(length) || reader === undefined) return new Uint8Array(await response.arrayBuffer());
  // Piece by piece: a browser copies many megabytes in one go, in which it does nothing else.
  const all = new Uint8Array(length);
  let at = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    all.set(piece.value, at);
    at += piece.value.length;
  }
  if (at < length) throw new ApiFailure({ code: 'CUT_OFF', message: 'The answer was cut off. Try again.' });
  return all;
}

async function* textOf(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read())
    yield piece.value;
}

async function* lines<T>(path: string, signal: AbortSignal): AsyncGenerator<T> {
  let rest = '';
  for await (const text of textOf(await ask(path, signal))) {
    const whole = (rest + text).split('\n');
    rest = whole.pop() ?? '';
    for (const line of whole) if (line !== '') yield JSON.parse(line) as T;
  }
  if (rest !== '') yield JSON.parse(rest) as T;
}
