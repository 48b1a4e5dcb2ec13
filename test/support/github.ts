/** GitHub's API of issue comments, as it answers, on this machine: what it holds can be looked at, and it can refuse. */

import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export type ApiComment = { id: number; body: string; login: string };

export type GitHubApi = {
  url: string;
  comments: ApiComment[];
  /** Each request, as `GET /repos/…`, and the token that came with it. */
  asked: { line: string; token: string | undefined }[];
};

/** `refuse`: the status and message for a request, or nothing. Comments of others are not for this token to change. */
export async function serveGitHub(
  comments: ApiComment[],
  refuse: (method: string) => { status: number; message: string } | undefined = () => undefined,
): Promise<GitHubApi> {
  const asked: GitHubApi['asked'] = [];
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    asked.push({ line: `${method} ${url}`, token: headers.authorization?.replace('Bearer ', '') });
    const answer = (status: number, value: unknown) =>
      response
        .writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
        .end(JSON.stringify(value));
    const refusal = refuse(method);
    if (refusal !== undefined) answer(refusal.status, refusalOf(refusal.message, refusal.status));
    else answerIssue(comments, method, url, await bodyOf(request), answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, comments, asked };
}

const US = 'github-actions[bot]';

/** What the read-only token of a fork gets. */
export const READ_ONLY = { status: 403, message: 'Resource not accessible by integration' };

function refusalOf(message: string, status: number) {
  return {
    message,
    documentation_url: 'https://docs.github.com/rest/issues/comments#create-an-issue-comment',
    status: String(status),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const text = Buffer.concat(pieces).toString();
  return text === '' ? '' : (JSON.parse(text) as { body: string }).body;
}

function answerIssue(
  comments: ApiComment[],
  method: string,
  url: string,
  body: string,
  answer: (status: number, value: unknown) => unknown,
): unknown {
  const { pathname, searchParams } = new URL(url, 'http://github.invalid');
  const list = /^\/repos\/o\/r\/issues\/7\/comments$/.test(pathname);
  const id = Number(/^\/repos\/o\/r\/issues\/comments\/(\d+)$/.exec(pathname)?.[1]);
  if (list && method === 'GET') {
    const size = Number(searchParams.get('per_page') ?? 30);
    const from = (Number(searchParams.get('page') ?? 1) - 1) * size;
    return answer(200, comments.slice(from, from + size).map(commentOf));
  }
  if (list && method === 'POST') {
    if ([...body].length > 65_536) return answer(422, refusalOf('Validation Failed', 422));
    const made = { id: 1000 + comments.length, body, login: US };
    comments.push(made);
    return answer(201, commentOf(made));
  }
  if (method === 'PATCH') {
    const found = comments.find((one) => one.id === id);
    if (found === undefined) return answer(404, refusalOf('Not Found', 404));
    if (found.login !== US) return answer(403, refusalOf('Must have admin rights to Repository.', 403));
    found.body = body;
    return answer(200, commentOf(found));
  }
  return answer(404, refusalOf('Not Found', 404));
}

function commentOf({ id, body, login }: ApiComment) {
  return {
    id,
    node_id: `IC_${id}`,
    html_url: `https://github.com/o/r/pull/7#issuecomment-${id}`,
    user: { login, type: login === US ? 'Bot' : 'User' },
    created_at: '2026-11-20T10:00:00Z',
    updated_at: '2026-11-20T10:00:00Z',
    author_association: 'NONE',
    body,
  };
}
