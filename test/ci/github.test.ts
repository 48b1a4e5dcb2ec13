import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commentMarker } from '../../src/ci/comment.ts';
import { pullRequestOf, putComment } from '../../src/ci/github.ts';
import { type ApiComment, type GitHubApi, READ_ONLY, serveGitHub } from '../support/github.ts';
import { tempFolder } from '../support/tapedeck.ts';

const TOKEN = 'the-token-of-this-job';
const MARKER = commentMarker('MCP recordings');
const BODY = `${MARKER}\nnew`;

const put = ({ url }: Pick<GitHubApi, 'url'>, isNeeded = true) =>
  putComment({ apiUrl: url, repository: 'o/r', number: 7, token: TOKEN }, MARKER, BODY, isNeeded);

const others = (count: number): ApiComment[] =>
  Array.from({ length: count }, (_, i) => ({ id: i + 1, body: `Looks good ${MARKER}`, login: 'reviewer' }));

const linesOf = ({ asked }: GitHubApi) => asked.map(({ line }) => line);

test('a pull request without the comment gets it', async () => {
  const api = await serveGitHub(others(2));
  expect(await put(api)).toEqual({ kind: 'created', url: 'https://github.com/o/r/pull/7#issuecomment-1002' });
  expect(api.comments.at(-1)?.body).toBe(BODY);
  expect(linesOf(api)).toEqual([
    'GET /repos/o/r/issues/7/comments?per_page=100&page=1',
    'POST /repos/o/r/issues/7/comments',
  ]);
  expect(api.asked.every(({ token }) => token === TOKEN)).toBe(true);
});

test('the second time it is changed in its place', async () => {
  const api = await serveGitHub(others(2));
  await put(api);
  expect(await put(api)).toMatchObject({ kind: 'updated' });
  expect(api.comments.filter(({ body }) => body === BODY)).toHaveLength(1);
  expect(linesOf(api).at(-1)).toBe('PATCH /repos/o/r/issues/comments/1002');
});

test('it is found behind any number of other comments, on a later page', async () => {
  const old = { id: 900, body: `${MARKER}\nold`, login: 'github-actions[bot]' };
  const api = await serveGitHub([...others(200), old, ...others(98)]);
  expect(await put(api)).toMatchObject({ kind: 'updated' });
  expect(old.body).toBe(BODY);
  expect(linesOf(api).filter((line) => line.startsWith('GET'))).toHaveLength(3);
});

test('a comment of somebody who has quoted it whole is left alone', async () => {
  const quoted = { id: 5, body: `${MARKER}\nquoted`, login: 'reviewer' };
  const api = await serveGitHub([quoted]);
  expect(await put(api)).toMatchObject({ kind: 'created' });
  expect(await put(api)).toMatchObject({ kind: 'updated' });
  expect(quoted.body).toBe(`${MARKER}\nquoted`);
  expect(api.comments).toHaveLength(2);
});

test('where there is nothing to tell, an older comment is changed, and none is made', async () => {
  const api = await serveGitHub([]);
  expect(await put(api, false)).toEqual({ kind: 'unneeded' });
  expect(api.comments).toEqual([]);
  await put(api, true);
  expect(await put(api, false)).toMatchObject({ kind: 'updated' });
});

test('comments of other titles are others', async () => {
  const api = await serveGitHub([{ id: 3, body: commentMarker('other'), login: 'github-actions[bot]' }]);
  expect(await put(api)).toMatchObject({ kind: 'created' });
});

test('a token that may only read is a reason, not an error', async () => {
  const api = await serveGitHub([], (method) => (method === 'GET' ? undefined : READ_ONLY));
  expect(await put(api)).toEqual({
    kind: 'failed',
    why: 'GitHub answers POST with 403: Resource not accessible by integration',
  });
});

test('where comments cannot be listed none is made, which could be a second one', async () => {
  const api = await serveGitHub([], (method) =>
    method === 'GET' ? { status: 502, message: `bad gateway for ${TOKEN}` } : undefined,
  );
  const result = await put(api);
  expect(result).toEqual({ kind: 'failed', why: 'GitHub answers GET with 502: bad gateway for ***' });
  expect(api.comments).toEqual([]);
});

test('a redirect is not followed with the token, and what is no JSON is no answer', async () => {
  const api = await serveGitHub([]);
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/away'))
      response.writeHead(302, { location: `${api.url}${request.url}` }).end();
    else response.writeHead(200).end('<html>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    expect(await put({ url: `${url}/away` })).toMatchObject({ kind: 'failed' });
    expect(await put({ url })).toMatchObject({ kind: 'failed', why: 'GitHub answers GET with 200' });
    expect(api.asked).toEqual([]);
  } finally {
    server.close();
  }
});

test('an API that is not there is a reason without the token in it', async () => {
  const result = await put({ url: 'http://127.0.0.1:9' });
  expect(result).toMatchObject({
    kind: 'failed',
    why: expect.stringMatching(/^GitHub could not be reached: /),
  });
  expect(JSON.stringify(result)).not.toContain(TOKEN);
});

test('the pull request is that of the event, of whatever kind the event is', () => {
  const file = join(tempFolder(), 'event.json');
  const env = { GITHUB_TOKEN: TOKEN, GITHUB_REPOSITORY: 'o/r', GITHUB_EVENT_PATH: file };
  const numberFor = (event: unknown) => {
    writeFileSync(file, typeof event === 'string' ? event : JSON.stringify(event));
    const found = pullRequestOf(env);
    return typeof found === 'string' ? found : found.number;
  };
  expect(numberFor({ pull_request: { number: 7 } })).toBe(7);
  expect(numberFor({ issue: { number: 8, pull_request: {} } })).toBe(8);
  expect(numberFor({ workflow_run: { pull_requests: [{ number: 9 }] } })).toBe(9);
  const none = 'this run belongs to no pull request';
  for (const event of [{ issue: { number: 8 } }, { pull_request: { number: '7/../8' } }, {}, 'no JSON', null])
    expect(numberFor(event)).toBe(none);
});

test('what the environment lacks is said by its name', () => {
  const env = { GITHUB_TOKEN: TOKEN, GITHUB_REPOSITORY: 'o/r', GITHUB_EVENT_PATH: '/nowhere' };
  expect(pullRequestOf({ ...env, GITHUB_TOKEN: '' })).toContain('GITHUB_TOKEN');
  expect(pullRequestOf({ ...env, GITHUB_REPOSITORY: 'o/r/../../x' })).toContain('GITHUB_REPOSITORY');
  expect(pullRequestOf({ ...env, GITHUB_EVENT_PATH: '' })).toContain('GITHUB_EVENT_PATH');
  expect(pullRequestOf({ ...env, GITHUB_API_URL: 'file:///etc' })).toContain('GITHUB_API_URL');
});
