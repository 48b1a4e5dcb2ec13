/**
 * The comment of a pull request, by GitHub's REST API (version 2022-11-28, "Issue comments"): found again by its marker, and
 * changed in place. The token is sent as a header, and told to nobody.
 */

import { readFileSync } from 'node:fs';

/** Where to comment, as the environment of GitHub Actions has it. */
export type PullRequest = { apiUrl: string; repository: string; number: number; token: string };

/** `url`: of the comment. `why`: a sentence without its full stop. */
export type CommentResult =
  | { kind: 'created' | 'updated'; url: string | null }
  | { kind: 'unneeded' }
  | { kind: 'failed'; why: string };

const PER_PAGE = 100;

/** More comments than any pull request has. */
const MAX_PAGES = 100;

const TIMEOUT_MS = 30_000;

/** Returns a sentence instead where there is no pull request, or nobody to comment as. */
export function pullRequestOf(env: NodeJS.ProcessEnv): PullRequest | string {
  const { GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_TOKEN, GITHUB_EVENT_PATH } = env;
  if (!GITHUB_TOKEN) return 'there is no GITHUB_TOKEN in the environment';
  if (!GITHUB_REPOSITORY || !/^[\w.-]+\/[\w.-]+$/.test(GITHUB_REPOSITORY))
    return 'there is no GITHUB_REPOSITORY in the environment';
  const apiUrl = (GITHUB_API_URL || 'https://api.github.com').replace(/\/+$/, '');
  if (!URL.canParse(apiUrl) || !/^https?:/.test(apiUrl)) return 'GITHUB_API_URL is no URL';
  if (!GITHUB_EVENT_PATH) return 'there is no GITHUB_EVENT_PATH in the environment';
  const number = numberIn(GITHUB_EVENT_PATH);
  if (number === null) return 'this run belongs to no pull request';
  return { apiUrl, repository: GITHUB_REPOSITORY, number, token: GITHUB_TOKEN };
}

/** The events `pull_request`, `pull_request_target`, `issue_comment` and `workflow_run`. */
function numberIn(eventPath: string): number | null {
  try {
    const event = JSON.parse(readFileSync(eventPath, 'utf8'));
    const found =
      event.pull_request?.number ??
      (event.issue?.pull_request ? event.issue.number : undefined) ??
      event.workflow_run?.pull_requests?.[0]?.number;
    return Number.isSafeInteger(found) && found > 0 ? found : null;
  } catch {
    return null;
  }
}

/** The log of this run; null outside of Actions. */
export function runUrlOf({ GITHUB_SERVER_URL, GITHUB_REPOSITORY, GITHUB_RUN_ID }: NodeJS.ProcessEnv) {
  if (!GITHUB_SERVER_URL || !GITHUB_REPOSITORY || !GITHUB_RUN_ID) return null;
  return `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}/actions/runs/${GITHUB_RUN_ID}`;
}

/**
 * Changes the comment that begins with `marker`, or makes one. `isNeeded`: false changes an older one only. Never rejects: what
 * GitHub refuses, such as with the read-only token of a fork, is a result.
 */
export async function putComment(
  { apiUrl, repository, number, token }: PullRequest,
  marker: string,
  body: string,
  isNeeded: boolean,
): Promise<CommentResult> {
  const issues = `${apiUrl}/repos/${repository}/issues`;
  const call = (method: string, url: string, content?: object) => ask(token, method, url, content);
  try {
    const ids = await commentIds(call, `${issues}/${number}/comments`, marker);
    if (typeof ids === 'string') return { kind: 'failed', why: ids };
    for (const id of ids) {
      const changed = await call('PATCH', `${issues}/comments/${id}`, { body });
      if (changed.ok) return { kind: 'updated', url: urlIn(changed.value) };
      // Somebody else's, who has quoted ours; or it was deleted meanwhile.
      if (changed.status !== 403 && changed.status !== 404) return { kind: 'failed', why: changed.why };
    }
    if (!isNeeded) return { kind: 'unneeded' };
    const made = await call('POST', `${issues}/${number}/comments`, { body });
    return made.ok ? { kind: 'created', url: urlIn(made.value) } : { kind: 'failed', why: made.why };
  } catch (error) {
    const { message, cause } = error as Error;
    const why = cause instanceof Error && cause.message !== '' ? cause.message : message;
    return { kind: 'failed', why: withoutToken(`GitHub could not be reached: ${why}`, token) };
  }
}

type Reply = { ok: boolean; status: number; value: unknown; why: string };

type Call = (method: string, url: string, content?: object) => Promise<Reply>;

/** The oldest first, as GitHub lists them; a sentence where it refuses to: one who cannot read them would comment twice. */
async function commentIds(call: Call, list: string, marker: string): Promise<number[] | string> {
  const ids: number[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { ok, value, why } = await call('GET', `${list}?per_page=${PER_PAGE}&page=${page}`);
    if (!ok) return why;
    const comments = Array.isArray(value) ? value : [];
    for (const { id, body } of comments)
      if (Number.isSafeInteger(id) && String(body).startsWith(marker)) ids.push(id);
    if (comments.length < PER_PAGE) break;
  }
  return ids;
}

async function ask(token: string, method: string, url: string, content?: object): Promise<Reply> {
  const response = await fetch(url, {
    method,
    headers: {
      accept: 'application/vnd.github+json',
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'user-agent': 'mcp-tapedeck',
      'x-github-api-version': '2022-11-28',
    },
    ...(content === undefined ? {} : { body: JSON.stringify(content) }),
    // A token goes where it was meant to go.
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const { ok, status } = response;
  const text = await response.text();
  const value = jsonOf(text);
  const said = (value as { message?: unknown } | null)?.message;
  const message = typeof said === 'string' ? `: ${said.slice(0, 200)}` : '';
  const why = withoutToken(`GitHub answers ${method} with ${status}${message}`, token);
  return { ok: ok && value !== null, status, value, why };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function urlIn(value: unknown): string | null {
  const url = (value as { html_url?: unknown } | null)?.html_url;
  return typeof url === 'string' ? url : null;
}

function withoutToken(text: string, token: string): string {
  return text.split(token).join('***');
}
