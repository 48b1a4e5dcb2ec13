/**
 * Plays the recorded client's part against a live server, act by act, and compares what comes back. Ids are new. Progress
 * tokens stay: those in use at one time differed then, so they differ now. Cursors, task ids and request states of the live
 * server replace the recorded ones in later requests. A task is asked about until it has come as far as it had.
 */

import { type Substitution, sourceAt, substitute } from '../../protocol/json/edit.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { type Message, parseMessages, type RequestMessage } from '../../protocol/message/message.ts';
import { messageText } from '../../protocol/message/payload.ts';
import { type Connect, type PayloadAbout, settleVersion } from '../../talk/server.ts';
import {
  type Answer,
  type AnswerKind,
  answerKindOf,
  compareAnswers,
  ignoredInAll,
  type ResultRules,
} from '../match/compare.ts';
import type { IgnoreRules } from '../match/ignore.ts';
import {
  outgoingAnswer,
  outgoingCancellation,
  outgoingNotification,
  outgoingRequest,
} from '../recording/outgoing.ts';
import { collectTools, type Recording, type Tools } from '../recording/recording.ts';
import type { ScriptLine } from '../recording/script.ts';
import { hasPlaceholder } from '../recording/secrets.ts';
import type { CallTopic } from '../recording/topics.ts';
import { type Answers, createAnswers } from './answers.ts';
import { changesText, emptyCheck, type RequestCheck, whyOf } from './check.ts';
import { createHandles, isTaskBehind, pollMsOf, statusAhead } from './handles.ts';
import { createListCheck } from './lists.ts';
import { createNotificationCheck } from './notifications.ts';
import { isList, type ListChange, type ListMethod } from './offers.ts';
import { type CallEnd, createOpenRequests, type PendingRequest, planOf } from './plan.ts';

export type Verification = { checked: RequestCheck[]; lists: ListChange[] };

export type VerifyOptions = {
  ignore: IgnoreRules;
  resultRules: ResultRules;
  timeoutMs: number;
  /** Why a request is not to be sent; null to send it. */
  whySkipped: (asked: CallTopic, recordedTools: Tools, liveTools: Tools) => string | null;
  /** Whether notifications of this method do not count. */
  isNewsSkipped: (method: string) => boolean;
  onChecked: (checked: RequestCheck) => void;
};

/** The server answered nothing at all, so there is nothing to compare. */
export class SilentServer extends Error {
  override name = 'NoServer';
}

const REDACTED = 'it holds secrets that were redacted, and a server must not get placeholders for them';

const ASKS_WITHIN_MS = 1000;

export async function verify(
  recording: Recording,
  connect: Connect,
  options: VerifyOptions,
): Promise<Verification> {
  const { clients } = recording.script;
  if (clients.length < 2) return verifyOne(recording, connect, options);
  const checked: RequestCheck[] = [];
  const lists = new Map<string, ListChange>();
  for (const client of clients) {
    const one = await verifyOne(partOf(recording, client), connect, options);
    checked.push(...one.checked);
    for (const change of one.lists) lists.set(`${change.kind} ${change.name}`, change);
  }
  return { checked, lists: [...lists.values()] };
}

async function verifyOne(
  recording: Recording,
  connect: Connect,
  options: VerifyOptions,
): Promise<Verification> {
  const run = createRun(recording, connect, options);
  try {
    return await run.play();
  } finally {
    await run.close();
  }
}

/** What was said between one recorded client and the server. */
function partOf(recording: Recording, client: number): Recording {
  function* lines(): Generator<ScriptLine> {
    for (const line of recording.lines()) if (line.client === client) yield line;
  }
  return { ...recording, lines };
}

function createRun(recording: Recording, connect: Connect, options: VerifyOptions) {
  const plan = planOf(recording.lines());
  const answers: Answers = createAnswers(recording, plan.questions, options.ignore);
  const recordedTools = toolsOf(recording, plan.calls);
  const liveTools: Tools = new Map();
  const handles = createHandles();
  const checked: RequestCheck[] = [];
  /** By recorded call. */
  const asked = new Map<number, PendingRequest>();
  const lists = createListCheck(options.ignore.tools, ignoredInAll(options.resultRules));
  let isPatient = true;
  let hasHeard = false;
  let closedWhy: string | null = null;
  const open = createOpenRequests(options.timeoutMs, giveUp, onEnded);
  const server = connect({ onPayload, onFailed, onClosed });
  const news = createNotificationCheck(recording, plan.calls, {
    ignore: options.ignore,
    isLeftOut: options.isNewsSkipped,
    isSameTransport: () => server.transport() === recording.session.transport,
  });

  const alike = (json: Buffer) => recording.alike(recording.redacted(json));

  function onPayload(payload: Buffer, { isUnasked = false }: PayloadAbout = {}): void {
    for (const [n, message] of parseMessages(payload).entries()) {
      const json = messageText(payload, n);
      if (message.kind === 'request') answer(json, message);
      else if (message.kind === 'notification')
        news.heard(message, json, isUnasked ? 'by itself' : 'with a call');
      else if (message.id?.type === 'number') {
        const isInvalid = message.kind === 'invalid';
        const why = isInvalid ? `the live answer is no valid message (${message.reason})` : null;
        open.end(message.id.text, { answer: isInvalid ? null : { json, message }, why });
      }
    }
  }

  function onFailed(id: string, why: string): void {
    open.end(id, { answer: null, why });
  }

  function onClosed(why: string): void {
    closedWhy ??= why;
    open.endAll(why);
  }

  function giveUp(id: string): void {
    void server.send(outgoingCancellation(id, 'timeout'));
  }

  function onEnded(method: string, { answer }: CallEnd): void {
    if (answer === null) return;
    hasHeard = true;
    if (method === 'initialize') settleVersion(server, answer.json);
  }

  /** A question of the server. */
  function answer(json: Buffer, { method, canonical, details }: RequestMessage): void {
    const {
      json: reply,
      place,
      differences,
      isRedacted,
    } = answers.reply(json, method, sourceAt(json, ['id']) ?? 'null');
    if (reply !== null) {
      void server.send(outgoingAnswer(reply));
    }
    if (place === null && canonical === 'ping') return;
    note({
      ...emptyCheck({ method: canonical, target: details.target }, place, 'server'),
      verdict: isRedacted ? 'skipped' : place !== null && differences.length === 0 ? 'equal' : 'drift',
      why: isRedacted
        ? `refused, as the client’s answer cannot be given: ${REDACTED}`
        : place === null
          ? 'the server asked what it did not ask in the recording'
          : differences.length > 0
            ? 'the server asked differently'
            : null,
      differences,
    });
  }

  function note(check: RequestCheck): void {
    checked.push(check);
    options.onChecked(check);
  }

  async function play(): Promise<Verification> {
    for (const act of plan.acts) {
      if (act.act === 'ask') await ask(act.call);
      else if (act.act === 'await') await finish(act.call);
      else if (act.act === 'be asked') await beAsked(act.question);
      else await tell(act.place, act.method, act.cancels);
    }
    await comes(() => !news.isMissing());
    for (const call of asked.keys()) leaveOpen(call);
    // A call that was left out leaves out what it leads to.
    const isComplete = checked.every(({ verdict }) => verdict !== 'skipped');
    for (const check of news.check(isComplete)) note(check);
    for (const { place, method } of answers.unasked()) {
      const check = emptyCheck({ method, target: null }, place, 'server');
      const why = isComplete ? 'the server did not ask this' : 'not asked; some calls were left out';
      note({ ...check, verdict: isComplete ? 'drift' : 'skipped', why });
    }
    return { checked, lists: lists.changes() };
  }

  async function ask(call: number): Promise<void> {
    const place = plan.calls[call]?.place ?? { seq: 0, n: 0 };
    const recorded = recording.load(place);
    const message = recording.read(recorded);
    if (message?.kind !== 'request') return;
    const { canonical: method, details } = message;
    const { target } = details;
    const skipped =
      options.whySkipped({ method, target }, recordedTools, liveTools) ??
      (hasPlaceholder(substitute(recorded, handles.inRequest(recorded))) ? REDACTED : null);
    if (skipped !== null || closedWhy !== null) {
      isPatient &&= skipped === null;
      const verdict = skipped === null ? 'drift' : 'skipped';
      const check = emptyCheck({ method, target }, place, 'client');
      note({ ...check, verdict, why: skipped ?? `not asked: ${closedWhy}`, recorded: recordedOutcome(call) });
      return;
    }
    if (isList(method) && !turnPage(method, recorded, call)) return;
    const asking = open.begin(method);
    asked.set(call, asking);
    const json = withLiveHandles(method, recorded);
    news.asked(call, substitute(json, [{ path: ['id'], text: asking.id }]));
    await send(json, asking.id, { method, target });
  }

  function withLiveHandles(method: string, recorded: Buffer): Buffer {
    const cursor = isList(method) ? lists.liveCursor(method) : null;
    const page = cursor === null ? [] : [{ path: CURSOR, text: cursor }];
    return substitute(recorded, [...(page.length > 0 ? page : handles.inRequest(recorded))]);
  }

  function send(json: Buffer, id: string, { method, target }: CallTopic): Promise<void> {
    const tools = liveTools.has(target ?? '') ? liveTools : recordedTools;
    // Headers name the task, too.
    const task: unknown = JSON.parse(sourceAt(json, ['params', 'taskId']) ?? 'null');
    const topic = { method, target: typeof task === 'string' ? task : target };
    const own = substitute(json, [{ path: ['id'], text: id }]);
    return server.send(outgoingRequest(own, id, topic, tools));
  }

  /** Whether the live list has such a page. Its pages may be others than they were. */
  function turnPage(method: ListMethod, recorded: Buffer, call: number): boolean {
    if (sourceAt(recorded, CURSOR) === undefined) {
      lists.begin(method);
      return true;
    }
    if (lists.liveCursor(method) !== null) return true;
    const { place, answer } = plan.calls[call] ?? { place: null, answer: null };
    if (answer !== null) lists.takeRecorded(method, alike(recording.load(answer)));
    const check = emptyCheck({ method, target: null }, place, 'client');
    note({
      ...check,
      why: 'the live list has fewer pages',
      ...listVerdict(method),
      recorded: recordedOutcome(call),
    });
    return false;
  }

  function listVerdict(method: ListMethod): Partial<RequestCheck> {
    const changes = lists.news(method);
    return changes.length === 0 ? {} : { verdict: 'drift', why: changesText(changes) };
  }

  /** Asks again, as the recorded client asked, but with an id of its own and what is changed. */
  async function askAgain(
    call: number,
    topic: CallTopic,
    change: (json: Buffer) => Buffer,
  ): Promise<Answer | null> {
    const recorded = recording.load(plan.calls[call]?.place ?? { seq: 0, n: 0 });
    const asking = open.begin(topic.method);
    await send(change(withLiveHandles(topic.method, recorded)), asking.id, topic);
    return (await asking.ended).answer;
  }

  /** What the server has listed, all of it: where the recorded list is over, the rest of the live one is asked for. */
  async function listed(call: number, method: ListMethod, recorded: Answer, live: Answer): Promise<void> {
    lists.takeRecorded(method, alike(recorded.json));
    lists.takeLive(method, alike(live.json));
    while (lists.isBehind(method)) {
      const cursor = lists.liveCursor(method) ?? '';
      const next = await askAgain(call, { method, target: null }, (json) => withCursor(json, cursor));
      if (next?.message.kind !== 'result') return;
      if (method === 'tools/list') collectTools(liveTools, next.json);
      lists.takeLive(method, alike(next.json));
    }
  }

  /** Asks about a task until it has come as far as the recorded one, or the time for an answer is over. */
  async function caughtUp(call: number, topic: CallTopic, recorded: Answer, first: Answer): Promise<Answer> {
    const deadline = performance.now() + options.timeoutMs;
    let live = first;
    while (isTaskBehind(recorded.json, live.json) && performance.now() < deadline && closedWhy === null) {
      const ms = pollMsOf(live.json);
      await new Promise((resolve) => setTimeout(resolve, ms));
      live = (await askAgain(call, topic, (json) => json)) ?? live;
    }
    return live;
  }

  /** Servers may ask a little later than they did. After a question that never came, nothing more is waited for. */
  async function beAsked(place: Place): Promise<void> {
    if (answers.isAsked(place) || !isPatient) return;
    isPatient = await comes(() => answers.isAsked(place));
  }

  /** Whether it comes within the time that servers have for unasked messages. */
  async function comes(isThere: () => boolean): Promise<boolean> {
    const deadline = performance.now() + Math.min(options.timeoutMs, ASKS_WITHIN_MS);
    while (!isThere() && performance.now() < deadline && closedWhy === null)
      await new Promise((resolve) => setTimeout(resolve, 10));
    return isThere();
  }

  async function finish(call: number): Promise<void> {
    const asking = asked.get(call);
    const { place, answer: at } = plan.calls[call] ?? { place: null, answer: null };
    if (asking === undefined || place === null || at === null) return;
    const { answer: live, why } = await asking.ended;
    asked.delete(call);
    if (!hasHeard) throw new SilentServer(closedWhy ?? why ?? 'the server answered nothing');
    const milliseconds = performance.now() - asking.startedAt;
    const request = recording.read(recording.load(place));
    const target = request?.details.target ?? null;
    const check = { ...emptyCheck({ method: asking.method, target }, place, 'client'), milliseconds };
    const recorded = recording.load(at);
    const message = recording.read(recorded);
    if (message === undefined || message.kind === 'invalid')
      return note({ ...check, why: 'the recorded answer cannot be read' });
    if (live === null) {
      return note({ ...check, verdict: 'drift', why: why ?? 'no answer', recorded: recordedOutcome(call) });
    }
    const before = { json: recorded, message };
    const { method } = check;
    const now = method === 'tasks/get' ? await caughtUp(call, check, before, live) : live;
    const isBoth = message.kind === 'result' && now.message.kind === 'result';
    if (isList(method) && isBoth) await listed(call, method, before, now);
    note({
      ...check,
      ...compared(check, before, now),
      ...(isList(method) && isBoth ? listVerdict(method) : {}),
    });
  }

  function compared(check: RequestCheck, recorded: Answer, live: Answer): Partial<RequestCheck> {
    if (check.method === 'tools/list' && live.message.kind === 'result') collectTools(liveTools, live.json);
    const same = handles.inAnswer(check.method, recorded.json, live.json);
    const status = statusAhead(recorded.json, live.json);
    if (status !== null) return { why: `the live task is ${status} already` };
    const { isEqual, problem, ...found } = compareAnswers(
      check,
      { ...recorded, json: alike(same.recorded) },
      { ...live, json: alike(same.live) },
      options.resultRules,
    );
    return {
      ...found,
      verdict: isEqual ? 'equal' : 'drift',
      why: isEqual ? null : whyOf(found, problem, live),
    };
  }

  async function tell(place: Place, method: string, cancels: number | null): Promise<void> {
    const recorded = recording.load(place);
    const substitutions: Substitution[] = [];
    if (method === 'notifications/cancelled') {
      const asking = cancels === null ? undefined : asked.get(cancels);
      if (asking === undefined) return;
      substitutions.push({ path: ['params', 'requestId'], text: asking.id });
    }
    if (closedWhy !== null) return;
    if (hasPlaceholder(recorded))
      return note({
        ...emptyCheck({ method, target: null }, place, 'client'),
        verdict: 'skipped',
        why: REDACTED,
      });
    await server.send(outgoingNotification(substitute(recorded, substitutions), method));
  }

  /** The recorded client had no answer, so the live answer is not compared. */
  function leaveOpen(call: number): void {
    const asking = asked.get(call);
    const place = plan.calls[call]?.place;
    if (asking === undefined || place === undefined) return;
    open.end(asking.id, { answer: null, why: null });
    const target = recording.read(recording.load(place))?.details.target ?? null;
    const check = emptyCheck({ method: asking.method, target }, place, 'client');
    note({ ...check, verdict: 'not compared', why: 'no answer was recorded' });
  }

  function recordedOutcome(call: number): AnswerKind {
    const at = plan.calls[call]?.answer ?? null;
    const message = at === null ? undefined : recording.read(recording.load(at));
    return message === undefined ? 'no answer' : answerKindOf(message);
  }

  function close(): Promise<void> {
    open.endAll('verification has ended');
    return server.close();
  }

  return { play, close };
}

const CURSOR = ['params', 'cursor'];

/** The request for another page of the same list. */
function withCursor(request: Buffer, cursor: string): Buffer {
  const params = sourceAt(request, ['params']);
  const own = `"cursor":${cursor}`;
  if (params === undefined)
    return Buffer.from(`${request.toString().trimEnd().slice(0, -1)},"params":{${own}}}`);
  if (sourceAt(request, CURSOR) !== undefined) return substitute(request, [{ path: CURSOR, text: cursor }]);
  const rest = params.slice(1).trim();
  return substitute(request, [{ path: ['params'], text: `{${own}${rest === '}' ? '' : ','}${rest}` }]);
}

function toolsOf(recording: Recording, calls: ReturnType<typeof planOf>['calls']): Tools {
  const tools: Tools = new Map();
  for (const { place, answer } of calls) {
    if (answer === null) continue;
    const message: Message | undefined = recording.read(recording.load(place));
    if (message?.kind === 'request' && message.canonical === 'tools/list')
      collectTools(tools, recording.load(answer));
  }
  return tools;
}
