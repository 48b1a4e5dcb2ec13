/** The answers of the viewer's API that a report needs, in blocks of at most a megabyte. */

import { BLOCK_BYTES } from '../../export/text/report.ts';
import { httpExchangeJson } from '../../inspect/view/json.ts';
import type { Store } from '../../store/file/open.ts';
import { prepareHttpExchangesAfter } from '../../store/read/http.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { originalBytes, payloadBytes, type StoredBytes } from '../../store/read/slices.ts';
import type { CheckAnswer, Outline, ReportIndex, ReportRange, SessionDetail } from '../api.ts';
import { eachWholeFrame } from '../fast/frames.ts';
import { outlineWork } from '../fast/outline.ts';
import { sessionWork } from '../fast/session.ts';
import type { Params, Work } from '../work.ts';

type AnswersOptions = {
  /** Answers what is against the rules of the protocol. */
  check: Work;
  /** Is filled. */
  index: ReportIndex;
  /** Takes a block, and returns its number. */
  addBlock(content: string | Uint8Array): number;
  /** Called with the number of frames so far. */
  onFrame(count: number): void;
};

/** Adds a block after another, and yields in between, so that nobody has to hold them all. */
export async function* eachAnswer(
  store: Store,
  session: SessionRow,
  options: AnswersOptions,
): AsyncGenerator<void> {
  const { index, addBlock, check } = options;
  const ask = (work: Work, params: Params = {}) => answerOf(work, store, { ...params, session: session.id });
  yield* addOutline(ask, options);
  index.session = addBlock(ofReport(await ask(sessionWork)));
  addCheck(JSON.parse(await ask(check)) as CheckAnswer, options);
  yield;
  yield* addFrames(store, session, options);
  yield* addHttp(store, session, options);
}

/** Of each rule up to a thousand findings. */
function addCheck({ findings, ...head }: CheckAnswer, { index, addBlock }: AnswersOptions): void {
  index.check = addBlock(JSON.stringify(head));
  const ranges = createRanges(index.findings, addBlock);
  for (const [i, finding] of findings.entries()) ranges.add(i, JSON.stringify(finding));
  ranges.flush();
}

/**
 * What is told of the machine is nobody's business where a report goes; a text recording leaves it out too. The line of errors is
 * of the list of sessions, which a report has not: counted only where there is time, it would make one report differ from the next.
 */
function ofReport(text: string): string {
  const detail = JSON.parse(text) as SessionDetail;
  const environment = detail.environment.filter(([name]) => OF_NO_MACHINE.has(name));
  return JSON.stringify({ ...detail, session: { ...detail.session, errorsOverTime: null }, environment });
}

const OF_NO_MACHINE = new Set(['imported from', 'recorded by', 'redaction']);

/** What a work emits, as one text. */
async function answerOf(work: Work, store: Store, params: Params): Promise<string> {
  const pieces: string[] = [];
  await work(
    store,
    params,
    async (piece) => {
      if (typeof piece === 'string') pieces.push(piece);
    },
    () => false,
  );
  return pieces.join('');
}

/** A row has at most a few hundred characters, of up to four bytes. */
const OUTLINE_FRAMES = 1000;

async function* addOutline(
  ask: (work: Work, params: Params) => Promise<string>,
  { index, addBlock }: AnswersOptions,
): AsyncGenerator<void> {
  for (let after: number | null = 0; after !== null; ) {
    const text = await ask(outlineWork, { after: String(after), limit: String(OUTLINE_FRAMES) });
    index.outline.push([after, addBlock(text)]);
    yield;
    after = (JSON.parse(text) as Outline).next;
  }
}

/** Collects objects as JSON until they fill a block. */
function createRanges(ranges: ReportRange[], addBlock: AnswersOptions['addBlock']) {
  let waiting: string[] = [];
  let length = 0;
  let first = 0;
  let last = 0;
  function flush(): void {
    if (waiting.length > 0) ranges.push([first, last, addBlock(`[${waiting.join(',')}]`)]);
    waiting = [];
    length = 0;
  }
  return {
    add(number: number, json: string): void {
      const bytes = Buffer.byteLength(json) + 1;
      if (length + bytes > BLOCK_BYTES) flush();
      if (waiting.length === 0) first = number;
      waiting.push(json);
      length += bytes;
      last = number;
    },
    flush,
  };
}

async function* addFrames(
  store: Store,
  session: SessionRow,
  { index, addBlock, onFrame }: AnswersOptions,
): AsyncGenerator<void> {
  const ranges = createRanges(index.frames, addBlock);
  let count = 0;
  for await (const { seq, json, isCut, isEdited } of eachWholeFrame(store, session)) {
    ranges.add(seq, json);
    count += 1;
    onFrame(count);
    const payload = isCut ? payloadBytes(store, session.number, seq) : undefined;
    if (payload !== undefined) index.bytes.push([seq, yield* addBytes(payload, addBlock)]);
    const original = isEdited ? originalBytes(store, session.number, seq) : undefined;
    if (original !== undefined) index.originals.push([seq, yield* addBytes(original, addBlock)]);
    yield;
  }
  ranges.flush();
}

function* addBytes(bytes: StoredBytes, addBlock: AnswersOptions['addBlock']): Generator<void, number[]> {
  const blocks: number[] = [];
  for (let at = 0; at < bytes.size; ) {
    const piece = bytes.from(at).subarray(0, BLOCK_BYTES);
    blocks.push(addBlock(piece));
    at += piece.length;
    yield;
  }
  return blocks;
}

const EXCHANGES_AT_ONCE = 500;

/** More frames of one exchange are nothing that anybody looks through. */
const MOST_FRAMES = 10_000;

function* addHttp(store: Store, session: SessionRow, { index, addBlock }: AnswersOptions): Generator<void> {
  const ranges = createRanges(index.http, addBlock);
  const framesOf = framesByExchange(store, session.number);
  const rowsAfter = prepareHttpExchangesAfter(store, session.number, EXCHANGES_AT_ONCE);
  for (let rows = rowsAfter(0); rows.length > 0; rows = rowsAfter(rows.at(-1)?.number ?? 0)) {
    for (const row of rows) {
      const frames = JSON.stringify(framesOf.get(row.number) ?? []);
      ranges.add(row.number, `${httpExchangeJson(session.id, row).slice(0, -1)},"frames":${frames}}`);
    }
    yield;
  }
  ranges.flush();
}

function framesByExchange(store: Store, session: number): ReadonlyMap<number, number[]> {
  const byExchange = new Map<number, number[]>();
  const rows = store
    .prepare<[number], [http: number, seq: number]>(
      'SELECT http, seq FROM frame WHERE session = ? AND http IS NOT NULL ORDER BY seq',
    )
    .raw();
  for (const [http, seq] of rows.iterate(session)) {
    const known = byExchange.get(http);
    if (known === undefined) byExchange.set(http, [seq]);
    else if (known.length < MOST_FRAMES) known.push(seq);
  }
  return byExchange;
}
