/**
 * Numbers by index, of which most recordings have very many and few are not 0. They stand in small typed arrays, made
 * when something other than 0 is set in them: growing copies nothing, and a column without values takes no memory.
 */

type Piece = Uint8Array | Uint32Array | Float64Array;

export type Column = {
  set(i: number, value: number): void;
  /** 0 where nothing was set. */
  at(i: number): number;
};

const PIECE_BITS = 10;
const PIECE_SIZE = 1 << PIECE_BITS;
const INSIDE_PIECE = PIECE_SIZE - 1;

export function createColumn(Type: new (length: number) => Piece): Column {
  const pieces: (Piece | undefined)[] = [];

  function makePiece(number: number): Piece {
    // Without holes, which would make the array a slow one.
    while (pieces.length <= number) pieces.push(undefined);
    const piece = new Type(PIECE_SIZE);
    pieces[number] = piece;
    return piece;
  }

  return {
    set(i, value) {
      const number = i >>> PIECE_BITS;
      const piece = pieces[number] ?? (value === 0 ? undefined : makePiece(number));
      if (piece !== undefined) piece[i & INSIDE_PIECE] = value;
    },
    at: (i) => pieces[i >>> PIECE_BITS]?.[i & INSIDE_PIECE] ?? 0,
  };
}
