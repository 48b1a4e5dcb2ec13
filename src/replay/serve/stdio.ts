/**
 * Serves one client over stdio: lines in, lines out. A line that is no message gets the error of JSON-RPC 2.0 (sections 4
 * to 6) and a notice. The official SDKs drop such a line silently, which does not help a client's tests.
 */

import { copyBytes } from '../../protocol/json/edit.ts';
import { messagesOf } from '../../protocol/message/conversation.ts';
import { INVALID, type InvalidMessage, type Message } from '../../protocol/message/message.ts';
import { isBatch, messageText } from '../../protocol/message/payload.ts';
import type { Frame } from '../../protocol/wire/frame.ts';
import { createLineSplitter, oneLine } from '../../protocol/wire/lines.ts';
import { INVALID_REQUEST, PARSE_ERROR } from '../http/refusal.ts';
import type { Mock } from '../mock.ts';
import type { Asker, Send } from '../play/request.ts';
import { createBatch } from './batch.ts';

type StdioMock = {
  feed(bytes: Buffer): void;
  /** The client has closed its end. */
  end(): void;
};

/** Longer than any client's line; longer lines are not read. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;

const UNREADABLE = new Set<InvalidMessage['reason']>(['not-json', 'truncated']);

/**
 * A client in another process comes to its turn in this time, mostly. Measured with the official client and 30 calls with
 * three steps of progress each, on two cores with six times as much work: without a pause 22 calls lose some, with 1 ms two
 * to four, with this none or one.
 */
const PAUSE_MS = 5;

/** Answers to one piece of input are written together, up to about so many bytes. */
const MOST_TOGETHER_BYTES = 64 * 1024;

export function createStdioMock(mock: Mock, write: (lines: Buffer) => void): StdioMock {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let isFeeding = false;
  const send: Send = (json) => {
    const line = oneLine(json);
    waiting.push(line);
    waitingBytes += line.length + 1;
    if (!isFeeding || waitingBytes >= MOST_TOGETHER_BYTES) flush();
  };
  const alone: Asker = { send, pauseMs: PAUSE_MS };
  const client = mock.createClient(send);
  const splitter = createLineSplitter({
    channel: 'stdin',
    maxBytes: MAX_LINE_BYTES,
    onSkip: () => {},
    onFrame,
  });

  function onFrame(frame: Frame): void {
    const answer = frame.truncated ? null : client.answerUnread(frame.payload);
    if (answer === null) receive(frame);
    else send(answer.json, null, true);
  }

  function receive(frame: Frame): void {
    const messages = messagesOf(frame);
    const [first] = messages;
    if (
      frame.truncated ||
      !isBatch(frame.payload) ||
      (first?.kind === 'invalid' && first.reason === 'empty-batch')
    ) {
      receiveAll(frame, messages, alone);
    } else if (messages.some(({ details }) => details.isModern)) {
      refuse(frame, 'has a batch, which its revision does not know', INVALID_REQUEST, 'null', alone);
    } else {
      const batch = createBatch(send, messages.filter(wantsAnswer).length);
      receiveAll(frame, messages, { ...batch, pauseMs: PAUSE_MS });
    }
  }

  function receiveAll(frame: Frame, messages: readonly Message[], asker: Asker): void {
    for (const [n, message] of messages.entries()) {
      if (message.kind !== 'invalid') client.receive(message, messageText(frame.payload, n), asker);
      else refuseInvalid(frame, message, asker);
    }
  }

  function flush(): void {
    if (waiting.length > 0) write(joined(waiting, waitingBytes));
    waiting = [];
    waitingBytes = 0;
  }

  function together(action: () => void): void {
    isFeeding = true;
    try {
      action();
    } finally {
      isFeeding = false;
      flush();
    }
  }

  function refuseInvalid(frame: Frame, message: InvalidMessage, asker: Asker): void {
    const { reason, id } = message;
    const problem = reason === 'truncated' ? `is longer than ${MAX_LINE_BYTES} bytes` : INVALID[reason];
    const code = UNREADABLE.has(reason) ? PARSE_ERROR : INVALID_REQUEST;
    const idText = id === null ? 'null' : id.type === 'string' ? `"${id.text}"` : id.text;
    refuse(frame, problem, code, idText, wantsAnswer(message) ? asker : null);
  }

  /** `asker`: takes the error; null where nobody waits for one. */
  function refuse(frame: Frame, problem: string, code: number, id: string, asker: Asker | null): void {
    mock.noticeMalformed(frame.payload, frame.size, problem);
    const kind = code === PARSE_ERROR ? 'Parse error' : 'Invalid Request';
    const error = JSON.stringify({ code, message: `${kind}: the message ${problem}` });
    asker?.send(Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${error}}`), null, true);
  }

  client.begin();
  return {
    feed: (bytes) => together(() => splitter.feed(bytes, 0)),
    end: () => together(splitter.end),
  };
}

/** A malformed answer gets none, because nobody waits for it. */
function wantsAnswer(message: Message): boolean {
  return message.kind === 'request' || (message.kind === 'invalid' && !message.isAnswer);
}

function joined(lines: readonly Buffer[], length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const line of lines) {
    copyBytes(bytes, at, line, 0, line.length);
    at += line.length;
    bytes[at] = LINE_END;
    at += 1;
  }
  return bytes;
}

const LINE_END = 0x0a;
