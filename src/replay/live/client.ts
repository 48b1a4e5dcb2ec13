/**
 * Lets one client talk to a live server. The client's messages go there, and the server's come back, each with the ids and
 * tokens that the other side knows. A message of the server that names no request belongs to the open call that was asked
 * last, as in a recording (script.ts); where no call is open, to the client.
 */

import { type Substitution, sourceAt, substitute } from '../../protocol/json/edit.ts';
import type { Message, NotificationMessage, RequestMessage } from '../../protocol/message/message.ts';
import type { Connect } from '../../talk/server.ts';
import type { ReplayRefusal } from '../match/refusal.ts';
import type { Asker, LiveRequest, Send } from '../play/request.ts';
import { outgoingAnswer, outgoingNotification, outgoingRequest } from '../recording/outgoing.ts';
import { collectTools, type Tools } from '../recording/recording.ts';
import { clientId, createLiveCalls, isListen, type LiveCall, type LiveCallsOptions } from './calls.ts';
import { createLiveConnection } from './connection.ts';
import type { EpisodeMessage } from './episode.ts';

export type LiveClient = {
  /** Takes every message of the client, whoever answers it, to learn its handshake and its settings. */
  learn(message: Message, json: Buffer): void;
  /** Puts a request to the live server. `missed`: why the recording has no answer; null where nothing is played. */
  ask(request: LiveRequest, missed: ReplayRefusal | null): void;
  /** Takes the client's answer to a question of the live server. False where the server did not ask it. */
  settle(answer: Message, json: Buffer): boolean;
  /**
   * The client takes a request back, or, with `asker`, the transport of the request was closed. False where it was not put
   * to the live server.
   */
  cancel(clientKey: string, asker?: Asker): boolean;
  /** Passes other notifications on, if a server runs. */
  pass(message: NotificationMessage, json: Buffer): void;
  /** Passes a setting on that the mock has answered, so that the server keeps to it, too. */
  passSetting(request: RequestMessage, json: Buffer): void;
  /** Settles when every call is answered or has failed. */
  idle(): Promise<void>;
  /** Whether the live server has sent anything. */
  hasHeard(): boolean;
  /** Whether a server runs for this client and has nothing to do. */
  isResting(): boolean;
  /** Ends the server; the next call starts it again. */
  rest(): void;
  /** Gives up open calls and ends the server. A second call hurries it. */
  close(): Promise<void>;
};

type LiveClientOptions = Omit<LiveCallsOptions, 'onGivenUp'> & {
  connect: Connect;
  /** The protocol version that the recording's own handshake agreed on; null where it has none. */
  agreedVersion: string | null;
  sendUnasked: Send;
};

/** A request of the server that the client has not answered yet. */
type OpenQuestion = { idText: string; said: EpisodeMessage; call: LiveCall | null };

const META = ['params', '_meta'] as const;

const SUBSCRIPTION = [...META, 'io.modelcontextprotocol/subscriptionId'];

const CANCELLED = 'notifications/cancelled';

const INITIALIZED = 'notifications/initialized';

const SETTINGS = new Set(['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']);

export function createLiveClient(options: LiveClientOptions): LiveClient {
  const { now, nextId, sendUnasked } = options;
  const calls = createLiveCalls({ ...options, onGivenUp: giveUp });
  const connection = createLiveConnection(options.connect, options.agreedVersion, nextId, {
    onHeard() {
      hasHeard = true;
      calls.confirm();
    },
    onMessage,
    onFailed: (id, why) => calls.fail(calls.get(id), why),
    onClosed: calls.failAll,
  });
  /** By the key of the id that the client knows. */
  const questions = new Map<string, OpenQuestion>();
  let questionCount = 0;
  let hasHeard = false;
  /** The tools that the live server has listed so far. */
  const tools: Tools = new Map();

  function ask(request: LiveRequest, missed: ReplayRefusal | null): void {
    const call = calls.begin(request, missed);
    const live = call.messages[0]?.json ?? request.json;
    const { canonical, details } = request.message;
    const sent = () => calls.sent(call);
    connection.send(
      outgoingRequest(live, call.id, { method: canonical, target: details.target }, tools),
      sent,
    );
  }

  function giveUp({ id, request }: LiveCall): void {
    connection.cancel(id, request.message.details.isModern);
  }

  function onMessage(message: Message, json: Buffer, status: number | null): void {
    if (message.kind === 'request') askClient(message, json);
    else if (message.kind === 'notification') tellClient(message, json);
    else if (message.id?.type === 'number') {
      const call = calls.get(message.id.text);
      if (message.kind === 'invalid') calls.fail(call, `its answer is no valid message (${message.reason})`);
      else if (call !== undefined) {
        if (call.request.message.canonical === 'tools/list' && message.kind === 'result')
          collectTools(tools, json);
        calls.answer(call, message, json, status);
      }
    }
  }

  function askClient(message: RequestMessage, json: Buffer): void {
    const idText = sourceAt(json, ['id']) ?? 'null';
    if (message.canonical === 'ping') {
      const pong = Buffer.from(`{"jsonrpc":"2.0","id":${idText},"result":{}}`);
      connection.send(outgoingAnswer(pong));
      return;
    }
    const call = calls.last();
    const said = heard(call, message, json);
    questionCount += 1;
    const id = `live-${questionCount}`;
    questions.set(`s${id}`, { idText, said, call });
    const asked = substitute(json, [{ path: ['id'], text: JSON.stringify(id) }]);
    sendFor(call, asked);
  }

  /** Sends to the client, as part of a call if there is one. */
  function sendFor(call: LiveCall | null, json: Buffer): void {
    if (call === null) sendUnasked(json, null, false);
    else call.request.tell(json, null);
  }

  function settle(message: Message, json: Buffer): boolean {
    if (message.kind !== 'result' && message.kind !== 'error') return false;
    const key = message.id?.key ?? '';
    const question = questions.get(key);
    if (question === undefined) return false;
    questions.delete(key);
    const live = substitute(json, [{ path: ['id'], text: question.idText }]);
    const said: EpisodeMessage = { from: 'client', kind: message.kind, at: now(), json: live };
    if (question.call === null) calls.addAside([question.said, said]);
    else if (calls.get(question.call.id) !== undefined) question.call.messages.push(said);
    connection.send(outgoingAnswer(live));
    return true;
  }

  function tellClient(message: NotificationMessage, json: Buffer): void {
    const { progressToken, subscription, cancels } = message.details;
    if (progressToken !== null) tellProgress(message, json, calls.get(progressToken.slice(1)));
    else if (subscription !== null) tellSubscriber(message, json, calls.get(subscription.slice(1)));
    else if (cancels !== null) takeBack(message, json, calls.get(cancels.slice(1)));
    else tell(calls.last(), message, json, []);
  }

  function tellProgress(message: Message, json: Buffer, call: LiveCall | undefined): void {
    const text = call === undefined ? undefined : sourceAt(call.request.json, [...META, 'progressToken']);
    if (call === undefined || text === undefined) return;
    calls.refresh(call);
    tell(call, message, json, [{ path: ['params', 'progressToken'], text }]);
  }

  function tellSubscriber(message: Message, json: Buffer, call: LiveCall | undefined): void {
    if (call !== undefined) tell(call, message, json, [{ path: SUBSCRIPTION, text: clientId(call) }]);
  }

  /** The server ends a subscription, or no longer wants an answer. */
  function takeBack(message: Message, json: Buffer, call: LiveCall | undefined): void {
    const path = ['params', 'requestId'];
    if (call !== undefined && isListen(call.request)) {
      const text = clientId(call);
      tell(call, message, json, [
        { path, text },
        { path: SUBSCRIPTION, text },
      ]);
      calls.leave(call, { by: 'server', why: 'the server has ended it' });
      return;
    }
    const idText = sourceAt(json, path);
    for (const [key, question] of questions) {
      if (question.idText !== idText) continue;
      questions.delete(key);
      tell(question.call, message, json, [{ path, text: JSON.stringify(key.slice(1)) }]);
    }
  }

  function tell(call: LiveCall | null, message: Message, json: Buffer, substitutions: Substitution[]): void {
    const said = heard(call, message, json);
    sendFor(call, substitute(json, substitutions));
    if (call === null) calls.addAside([said]);
  }

  function heard(call: LiveCall | null, { kind }: Message, json: Buffer): EpisodeMessage {
    const said: EpisodeMessage = { from: 'server', kind, at: now(), json };
    call?.messages.push(said);
    return said;
  }

  function cancel(clientKey: string, asker?: Asker): boolean {
    const call = calls.find(clientKey, asker);
    if (call === undefined) return false;
    giveUp(call);
    if (asker === undefined) call.request.withdraw();
    else call.request.abandon();
    calls.leave(call, { by: 'client', why: 'the client has cancelled it' });
    return true;
  }

  function pass(message: NotificationMessage, json: Buffer): void {
    const { canonical } = message;
    const state = connection.state();
    if (state === 'closed' || canonical === CANCELLED) return;
    if (state === 'open, hands shaken' && canonical === INITIALIZED) return;
    connection.send(outgoingNotification(json, canonical));
    const said: EpisodeMessage = { from: 'client', kind: 'notification', at: now(), json };
    const call = calls.last();
    if (call === null) calls.addAside([said]);
    else call.messages.push(said);
  }

  function passSetting({ canonical, details }: RequestMessage, json: Buffer): void {
    if (!SETTINGS.has(canonical) || details.isModern || connection.state() === 'closed') return;
    const id = nextId();
    const live = substitute(json, [{ path: ['id'], text: id }]);
    connection.send(outgoingRequest(live, id, { method: canonical, target: details.target }, tools));
  }

  async function close(): Promise<void> {
    calls.leaveAll({ by: 'client', why: 'the client had left before the answer' });
    await connection.close();
  }

  return {
    learn: connection.learn,
    ask,
    settle,
    cancel,
    pass,
    passSetting,
    idle: calls.idle,
    hasHeard: () => hasHeard,
    isResting: () => calls.count() === 0 && questions.size === 0 && connection.state() !== 'closed',
    rest: () => void connection.close(),
    close,
  };
}
