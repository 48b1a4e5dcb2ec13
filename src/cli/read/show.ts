import { conversationLines } from '../../inspect/view/conversation.ts';
import { type HttpViewOptions, httpExchangeBlock, httpExchangeEnd } from '../../inspect/view/http.ts';
import { frameJson, httpExchangeJson } from '../../inspect/view/json.ts';
import { sessionHeader } from '../../inspect/view/session.ts';
import { type TerminalStyle, terminalStyle } from '../../inspect/view/text.ts';
import { eachHappening, selectedHttpExchanges } from '../../inspect/view/timeline.ts';
import { joinedFields } from '../../protocol/http/headers.ts';
import type { Store } from '../../store/file/open.ts';
import { unansweredPlaces } from '../../store/read/exchanges.ts';
import { eachFrame, type FrameSelection } from '../../store/read/frames.ts';
import {
  eachHttpExchange,
  type HttpExchangeRow,
  originalOf,
  prepareHttpExchange,
  prepareHttpSummary,
} from '../../store/read/http.ts';
import { findSession, type SessionRow, stateOf } from '../../store/read/sessions.ts';
import type { Command } from '../io.ts';
import { DB_OPTION, FILTER_OPTION, JSON_OPTION, readFilter, selectionOf } from '../options.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { withStore } from '../store.ts';

type Options = {
  session: string;
  db: string | undefined;
  filter: string | undefined;
  json: boolean;
  http: boolean;
  full: boolean;
};

/** `only`: the frames to show; undefined: all. */
type SessionView = {
  store: Store;
  session: SessionRow;
  only: FrameSelection | undefined;
  style: TerminalStyle;
};

const PAYLOAD_LINES = 3;

export const showCommand: Command<Options> = {
  command: 'show [session]',
  describe: 'Show one session as a conversation',
  builder: (args) =>
    args
      .positional('session', {
        type: 'string',
        default: 'latest',
        describe: 'An id, the beginning of one, a name, or latest',
      })
      .options({
        db: DB_OPTION,
        filter: FILTER_OPTION,
        json: JSON_OPTION,
        full: {
          type: 'boolean',
          default: false,
          describe: `Show payloads whole, not just ${PAYLOAD_LINES} lines of each, and all HTTP headers`,
        },
        http: {
          type: 'boolean',
          default: false,
          describe: 'Show the HTTP exchanges instead of the frames, those without a body too',
        },
      })
      .example('$0 show', 'The newest session')
      .example('$0 show staging --full', 'A session by name, complete')
      .example("$0 show --filter 'tool=search dur>1s'", 'The slow calls of a tool, and their answers')
      .example('$0 show 4f --json | jq -r .text', 'The verbatim frames, for a program')
      .example('$0 show --http --full', 'Each HTTP request and its answer, with all their headers'),
  async run({ session: reference, db, filter: written, json, http, full }, io) {
    const filter = await readFilter(written);
    await withStore(io, db, async (store) => {
      const session = findSession(store, reference);
      const style = terminalStyle(io.stdout, io.env);
      const shown = { store, session, only: await selectionOf(store, filter), style };
      await writeOutput(io, http ? httpPieces(shown, json, full) : framePieces(shown, json, full));
    });
  },
};

function framePieces(shown: SessionView, json: boolean, full: boolean): Generator<string> {
  return json ? framesJson(shown) : withLineEnds(conversation(shown, full));
}

function httpPieces(shown: SessionView, json: boolean, full: boolean): Generator<string> {
  return withLineEnds(json ? exchangeJson(shown) : exchanges(shown, full));
}

function* framesJson({ store, session, only }: SessionView): Generator<string> {
  const details = {
    summaryOf: prepareHttpSummary(store, session.number),
    originalOf: (seq: number) => originalOf(store, session.number, seq),
  };
  for (const frame of eachFrame(store, session, only)) yield* frameJson(session.id, frame, details);
}

function* exchangeJson(shown: SessionView): Generator<string> {
  for (const httpExchange of shownExchanges(shown)) yield httpExchangeJson(shown.session.id, httpExchange);
}

function* conversation(shown: SessionView, isFull: boolean): Generator<string> {
  const { store, session, only } = shown;
  yield* header(shown);
  let isEmpty = true;
  const lines = conversationLines(session, eachHappening(store, session, only), {
    ...httpLook(shown, isFull),
    isFull,
    unanswered: unansweredPlaces(store, session, only),
    originalOf: (seq) => originalOf(store, session.number, seq),
  });
  for (const line of lines) {
    isEmpty = false;
    yield line;
  }
  if (isEmpty && only !== undefined) yield 'The filter holds for no frame of this session.';
}

function* exchanges(shown: SessionView, isFull: boolean): Generator<string> {
  const { session } = shown;
  const options = httpLook(shown, isFull);
  yield* header(shown);
  if (session.httpExchanges === 0) yield 'This session has no HTTP exchanges.';
  for (const httpExchange of shownExchanges(shown)) {
    yield* httpExchangeBlock(session, httpExchange, isFull ? 'all' : 'telling', options);
    yield* httpExchangeEnd(session, httpExchange, false, options);
  }
}

/** The exchanges that carried a frame of the selection. */
function* shownExchanges({ store, session, only }: SessionView): Generator<HttpExchangeRow> {
  const isShown = only === undefined ? () => true : selectedHttpExchanges(store, session.number, only);
  for (const httpExchange of eachHttpExchange(store, session.number))
    if (isShown(httpExchange.number)) yield httpExchange;
}

function* header({ store, session, style }: SessionView): Generator<string> {
  const first = prepareHttpExchange(store, session.number)(1);
  const userAgent = joinedFields(first?.requestHeaders ?? []).get('user-agent') ?? '';
  yield* sessionHeader(session, userAgent, style);
}

function httpLook({ session, style }: SessionView, isFull: boolean): HttpViewOptions {
  return {
    style: style,
    payloadLines: isFull ? Number.POSITIVE_INFINITY : PAYLOAD_LINES,
    isOpen: stateOf(session) === 'open',
  };
}
