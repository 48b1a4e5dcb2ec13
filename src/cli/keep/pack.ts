import { RETENTION_OPTIONS, readAge } from '../../config/sizes.ts';
import { formatCount, formatSize } from '../../inspect/view/text.ts';
import { pause, type Store } from '../../store/file/open.ts';
import { createTurn, waitForTurn } from '../../store/file/turn.ts';
import { createPacking, packable } from '../../store/keep/pack.ts';
import { bytesOnDisk, scrubStore } from '../../store/keep/scrub.ts';
import { type Command, say } from '../io.ts';
import { DB_OPTION, JSON_OPTION } from '../options.ts';
import { withWritableStore } from '../store.ts';

type Options = { 'older-than': string | undefined; db: string | undefined; json: boolean };

type Packed = {
  /** How many sessions were not wholly packed before. */
  sessions: number;
  /** Frames, and parts of large ones, that are packed now. */
  payloads: number;
  /** Of these payloads. */
  payloadBytesBefore: number;
  payloadBytesAfter: number;
  /** What the store and its WAL take on disk. */
  bytesBefore: number;
  bytesAfter: number;
  /** What could not be done, one sentence each. */
  remains: string[];
};

/** Recorders get the store for a while after each slice. */
const SLICE_MS = 20;

const PAUSE_MS = 10;

export const packCommand: Command<Options> = {
  command: 'pack',
  describe: 'Pack the payloads of sessions that have ended, so that the store takes less of the disk',
  builder: (args) =>
    args
      .usage(
        '$0 pack [options]\n\nEvery command reads packed sessions as before. Your own SQL sees the text of a packed frame as null.',
      )
      .options({
        'older-than': {
          ...RETENTION_OPTIONS['older-than'],
          describe: 'Only sessions that ended longer ago: 90m, 12h, 7d, 2w',
          requiresArg: true,
        },
        db: DB_OPTION,
        json: JSON_OPTION,
      })
      .example('$0 pack', 'All sessions that have ended')
      .example('$0 pack --older-than 7d', 'For a nightly job'),
  run: ({ 'older-than': age, db, json }, io) => {
    const afterMs = age === undefined ? 0 : readAge('--older-than', age);
    return withWritableStore(io, db, 'An engine compresses payloads itself.', (store) => {
      const packed = pack(store, afterMs);
      io.stdout.write(`${json ? JSON.stringify(packed) : summary(packed)}\n`);
      for (const remain of packed.remains) say(io, remain);
    });
  },
};

function pack(store: Store, afterMs: number): Packed {
  const bytesBefore = bytesOnDisk(store);
  const turn = createTurn(store);
  waitForTurn(turn);
  try {
    const due = packable(store, afterMs);
    const packing = createPacking(store, due);
    while (!packing.advance(SLICE_MS)) {
      turn.keep();
      pause(PAUSE_MS);
    }
    const { rows, before, after } = packing.gained();
    const { remains } = rows > 0 ? scrubStore(store) : { remains: [] };
    return {
      ...{ sessions: due.length, payloads: rows },
      ...{ payloadBytesBefore: before, payloadBytesAfter: after },
      ...{ bytesBefore, bytesAfter: bytesOnDisk(store), remains },
    };
  } finally {
    turn.end();
  }
}

function summary({ sessions, payloads, bytesBefore, bytesAfter }: Packed): string {
  if (payloads === 0) return `Nothing to pack: the store takes ${formatSize(bytesAfter)}.`;
  const given = formatSize(Math.max(0, bytesBefore - bytesAfter));
  return `${formatCount(payloads, 'payload')} of ${formatCount(sessions, 'session')} packed, ${given} given back: the store takes ${formatSize(bytesAfter)}.`;
}
