/** The answers of a report: they stand in the page itself, packed, and are unpacked when they are asked for. */
import type {
  CheckAnswer,
  FindingView,
  FrameDetail,
  FrameView,
  HttpDetail,
  ReportIndex,
  ReportRange,
  Snippet,
} from '../../api.ts';
import { type AnswerSource, ApiFailure } from './source.ts';

/** Unpacked ones that are kept: what is looked at lies close together. */
const MOST_KEPT = 12;

export function createReportSource(): AnswerSource {
  const blocks = createBlocks();
  const index = blocks.json<ReportIndex>(0);

  async function json<T>(path: string): Promise<T> {
    const asked = new URL(path, 'http://report/');
    const parts = asked.pathname.slice(1).split('/').map(decodeURIComponent);
    const answer = await answerTo(blocks, await index, parts, asked.searchParams);
    if (answer === undefined) throw notThere();
    return answer as T;
  }

  async function bytes(path: string, _signal: AbortSignal, range?: readonly [from: number, to: number]) {
    const [, , what, seq, part] = path.split('/');
    const all = what === 'frames' ? await bytesOf(blocks, await index, Number(seq), part ?? '') : undefined;
    if (all === undefined) throw notThere();
    return range === undefined ? all : all.slice(range[0], range[1]);
  }

  return {
    json,
    bytes,
    changes: null,
    // biome-ignore lint/correctness/useYield: what streams is what only a server can do
    async *lines() {
      throw notThere();
    },
  };
}

function notThere(): ApiFailure {
  return new ApiFailure({
    code: 'NOT_IN_REPORT',
    message: 'This report does not hold that. Import it, and look with `tapedeck ui`.',
  });
}

type Blocks = { bytes(block: number): Promise<Uint8Array<ArrayBuffer>>; json<T>(block: number): Promise<T> };

function createBlocks(): Blocks {
  const kept = new Map<number, Promise<unknown>>();

  /** The one that was used last stands last. */
  function keep<T>(block: number, make: () => Promise<T>): Promise<T> {
    const known = (kept.get(block) as Promise<T> | undefined) ?? make();
    kept.delete(block);
    kept.set(block, known);
    for (const [oldest] of kept) {
      if (kept.size <= MOST_KEPT) break;
      kept.delete(oldest);
    }
    return known;
  }

  const bytes = (block: number) => keep(block, () => unpack(block));
  const json = async (block: number) => JSON.parse(new TextDecoder().decode(await unpack(block)));
  return { bytes, json: (block) => keep(block, () => json(block)) };
}

async function unpack(block: number): Promise<Uint8Array<ArrayBuffer>> {
  const text = document.getElementById(`block-${block}`)?.textContent?.trim();
  if (text === undefined) throw notThere();
  const packed = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

type FromBase64 = { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as FromBase64).fromBase64;
  if (native !== undefined) return native.call(Uint8Array, text);
  const characters = atob(text);
  return Uint8Array.from(characters, (character) => character.charCodeAt(0));
}

/** Undefined where the report has no such answer. */
async function answerTo(
  blocks: Blocks,
  index: ReportIndex,
  [top, , what, number]: string[],
  query: URLSearchParams,
): Promise<unknown> {
  if (top === 'about') return index.about;
  if (top === 'snippet') return snippetOf(blocks, index, Number(what), query.get('as'));
  if (top !== 'sessions') return undefined;
  const page = { after: Number(query.get('after') ?? 0), limit: Number(query.get('limit') ?? 100) };
  switch (what) {
    case undefined:
      return blocks.json(index.session);
    case 'check':
      return checkAnswer(blocks, index);
    case 'outline': {
      const slice = index.outline.find(([after]) => after === page.after);
      return slice && blocks.json(slice[1]);
    }
    case 'frames':
      if (number !== undefined) return oneOf<FrameDetail>(blocks, index.frames, Number(number), 'seq');
      return framePage(blocks, index, page);
    case 'http':
      if (number !== undefined) return oneOf<HttpDetail>(blocks, index.http, Number(number), 'http');
      return httpPage(blocks, index, page);
  }
  return undefined;
}

/** A frame as text to paste. */
async function snippetOf(
  blocks: Blocks,
  index: ReportIndex,
  seq: number,
  as: string | null,
): Promise<Snippet | undefined> {
  const frame = await oneOf<FrameDetail>(blocks, index.frames, seq, 'seq');
  if (frame === undefined) return undefined;
  if (as === 'json') {
    const { lineEnd, sha256, encoding, answeredBy, storedBytes, ...shown } = frame;
    return { text: JSON.stringify(shown) };
  }
  if (frame.encoding !== 'utf-8')
    throw new ApiFailure({ code: 'REFUSED', message: 'The frame is no text in UTF-8.' });
  const bytes = await bytesOf(blocks, index, seq, 'bytes');
  return bytes && { text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) };
}

async function checkAnswer(blocks: Blocks, index: ReportIndex): Promise<CheckAnswer> {
  const head = await blocks.json<Omit<CheckAnswer, 'findings'>>(index.check);
  const found = await Promise.all(index.findings.map(([, , block]) => blocks.json<FindingView[]>(block)));
  return { ...head, findings: found.flat() };
}

async function oneOf<T extends object>(
  blocks: Blocks,
  ranges: readonly ReportRange[],
  number: number,
  key: keyof T,
): Promise<T | undefined> {
  const range = ranges.find(([first, last]) => first <= number && number <= last);
  const all = range && (await blocks.json<T[]>(range[2]));
  return all?.find((one) => one[key] === number);
}

type Page = { after: number; limit: number };

async function pageOf<T extends object>(
  blocks: Blocks,
  ranges: readonly ReportRange[],
  { after, limit }: Page,
  key: keyof T,
): Promise<{ rows: T[]; next: number | null }> {
  const rows: T[] = [];
  for (const [, last, block] of ranges) {
    if (rows.length > limit) break;
    if (last > after) rows.push(...(await blocks.json<T[]>(block)).filter((one) => Number(one[key]) > after));
  }
  const shown = rows.slice(0, limit);
  return { rows: shown, next: rows.length > limit ? Number(shown.at(-1)?.[key]) : null };
}

async function framePage(blocks: Blocks, index: ReportIndex, page: Page) {
  const { rows, next } = await pageOf<FrameDetail>(blocks, index.frames, page, 'seq');
  return { frames: rows, next };
}

async function httpPage(blocks: Blocks, index: ReportIndex, page: Page) {
  const { rows, next } = await pageOf<HttpDetail>(blocks, index.http, page, 'http');
  return { http: rows, next };
}

/** A frame that is not cut has its bytes with it. */
async function bytesOf(
  blocks: Blocks,
  index: ReportIndex,
  seq: number,
  part: string,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const stored = (part === 'original' ? index.originals : index.bytes).find(([of]) => of === seq);
  if (stored !== undefined) {
    const pieces = await Promise.all(stored[1].map((block) => blocks.bytes(block)));
    return new Uint8Array(await new Blob(pieces).arrayBuffer());
  }
  const frame = await oneOf<FrameDetail>(blocks, index.frames, seq, 'seq');
  return frame && bytesIn(frame, part);
}

function bytesIn(frame: FrameView, part: string): Uint8Array<ArrayBuffer> | undefined {
  const [text, base64] =
    part === 'original' ? [frame.original, frame.originalBase64] : [frame.text, frame.base64];
  if (text !== undefined) return new TextEncoder().encode(text);
  return base64 === undefined ? undefined : fromBase64(base64);
}
