import type { Needs } from '../../engine/read/needs.ts';
import { TapedeckError } from '../../errors.ts';
import type { TimelineOptions } from '../../inspect/run/timeline.ts';
import { prepareFates } from '../../inspect/verdict/fate.ts';
import { mayMissFrames } from '../../inspect/verdict/passages.ts';
import { createRepeatReader } from '../../inspect/verdict/repeats.ts';
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
import { metaOnlyOf } from '../../store/read/meta-only.ts';
import { findRun } from '../../store/read/runs.ts';
import { findSession, type SessionRow, stateOf } from '../../store/read/sessions.ts';
import type { Command, Io } from '../io.ts';
import { FILTER_OPTION, JSON_OPTION, READ_OPTIONS, readFilter, selectionOf } from '../options.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { withStore } from '../store.ts';

type Options = {
  session: string | undefined;
  run: string | undefined;
  gap: number;
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
        describe: 'An id, the beginning of one, a name, or latest (the default)',
      })
      .options({
        ...READ_OPTIONS,
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
        run: {
          type: 'string',
          describe:
            'Show a run of a client, all its servers on one clock: an id (see: list --by run), id/2 for a part, or latest',
          requiresArg: true,
        },
        gap: {
          type: 'number',
          default: DEFAULT_GAP_MINUTES,
          describe: 'Of a run: so many minutes without a call divide it',
          requiresArg: true,
        },
      })
      .check(({ gap, run, session }) => {
        if (!(gap > 0)) throw new TapedeckError('usage', 'Expected minutes after `--gap`. Example: --gap 5');
        if (run !== undefined && session !== undefined)
          throw new TapedeckError('usage', `Expected a session or \`--run\`, got both: \`${session}\`.`);
        return true;
      })
      .example('$0 show', 'The newest session')
      .example('$0 show staging --full', 'A session by name, complete')
      .example("$0 show --filter 'tool=search dur>1s'", 'The slow calls of a tool, and their answers')
      .example('$0 show 4f --json | jq -r .text', 'The verbatim frames, for a program')
      .example('$0 show --run latest', 'All servers of the newest client run on one clock')
      .example('$0 show --http --full', 'Each HTTP request and its answer, with all their headers'),
  async run({ session: reference = 'latest', run, gap, db, filter: written, json, http, full }, io) {
    const filter = await readFilter(written);
    const wanted: Needs =
      run === undefined ? { of: 'sessions', references: [reference] } : { of: 'run', reference: run };
    await withStore(io, db, wanted, async (store) => {
      if (run !== undefined) {
        const only = await selectionOf(store, filter);
        await writeOutput(
          io,
          withLineEnds(await runPieces(io, store, run, { gap: gap * MINUTE, only }, json)),
        );
        return;
      }
      const session = findSession(store, reference);
      const style = terminalStyle(io.stdout, io.env);
      const shown = { store, session, only: await selectionOf(store, filter), style };
      await writeOutput(io, http ? httpPieces(shown, json, full) : framePieces(shown, json, full));
    });
  },
};

const DEFAULT_GAP_MINUTES = 5;

/** In microseconds. */
const MINUTE = 60_000_000;

async function runPieces(
  io: Io,
  store: Store,
  reference: string,
  options: TimelineOptions,
  json: boolean,
): Promise<Iterable<string>> {
  const { readTimeline } = await import('../../inspect/run/timeline.ts');
  const { readRunReference, runJson, runLines, shownStretches } = await import('../../inspect/run/view.ts');
  const { run, stretch } = readRunReference(reference);
  const timeline = readTimeline(store, findRun(store, run), options);
  const shown = shownStretches(timeline, stretch);
  return json ? [runJson(timeline, shown)] : runLines(timeline, shown, terminalStyle(io.stdout, io.env));
}

function framePieces(shown: SessionView, json: boolean, full: boolean): Generator<string> {
  return json ? framesJson(shown) : withLineEnds(conversation(shown, full));
}

function httpPieces(shown: SessionView, json: boolean, full: boolean): Generator<string> {
  return withLineEnds(json ? exchangeJson(shown) : exchanges(shown, full));
}

function* framesJson(shown: SessionView): Generator<string> {
  const { store, session, only } = shown;
  const details = {
    summaryOf: prepareHttpSummary(store, session.number),
    originalOf: (seq: number) => originalOf(store, session.number, seq),
    fateOf: prepareFates(store, session),
    ...repeatsIn(shown),
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
    fateOf: prepareFates(store, session),
    ...repeatsIn(shown),
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

/** What was called again: told where all frames are seen and none is missing, since an answer may be among those. */
function repeatsIn({ store, session, only }: SessionView) {
  if (only !== undefined || mayMissFrames(session)) return {};
  const summaryOf = prepareHttpSummary(store, session.number);
  return { repeatsOf: createRepeatReader((number) => summaryOf(number)?.status ?? null) };
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
  yield* sessionHeader(session, { userAgent, metaOnly: metaOnlyOf(store, session) }, style);
}

function httpLook({ session, style }: SessionView, isFull: boolean): HttpViewOptions {
  return {
    style: style,
    payloadLines: isFull ? Number.POSITIVE_INFINITY : PAYLOAD_LINES,
    isOpen: stateOf(session) === 'open',
  };
}
