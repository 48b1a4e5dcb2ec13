/** Tables for people, as wide as the terminal allows. */

import { escapeText } from '../../protocol/text.ts';
import { type Colors, clip, pad, type TerminalStyle, widthOf } from './text.ts';

export type Column<T> = {
  title: string;
  /** Left out where the terminal is too narrow, the highest first. */
  expendable?: number;
  /** The text of a cell, not escaped yet. */
  cell: (row: T) => string;
  /** Without it a column is for every row; with it, it stands only where one of them is such a row. */
  isFor?: (row: T) => boolean;
  isNumber?: boolean;
  /** The least width this column may be cut to; without one it is never cut. */
  least?: number;
  color?: (colors: Colors, row: T) => ((text: string) => string) | undefined;
};

const GAP = 2;

/** A recorded name may have megabytes; no terminal shows more than this of it. */
const MAX_CELL_CHARACTERS = 1000;

/** A column with the texts and the width that it takes. */
type ColumnLayout<T> = { column: Column<T>; cells: string[]; width: number };

/** The table's lines, without line ends. Cells are escaped; no line is wider than `style.width`, if that can be. */
export function* tableLines<T>(
  all: readonly Column<T>[],
  rows: readonly T[],
  style: TerminalStyle,
): Generator<string> {
  const columns = all.filter(({ isFor }) => isFor === undefined || rows.some(isFor));
  const laid = fitColumns(
    columns.map((column) => layColumn(column, rows)),
    style.width,
  );
  const line = (cells: string[]) => cells.join(' '.repeat(GAP)).trimEnd();
  yield style.colors.dim(line(laid.map(({ column, width }) => cellText(column, column.title, width))));
  for (const [r, row] of rows.entries()) {
    const cells = laid.map(({ column, cells, width }) => {
      const text = cellText(column, cells[r] ?? '', width);
      return column.color?.(style.colors, row)?.(text) ?? text;
    });
    yield line(cells);
  }
}

function layColumn<T>(column: Column<T>, rows: readonly T[]): ColumnLayout<T> {
  const cells = rows.map((row) => escapeText(column.cell(row).slice(0, MAX_CELL_CHARACTERS)));
  return {
    column,
    cells,
    width: cells.reduce((most, cell) => Math.max(most, widthOf(cell)), column.title.length),
  };
}

function cellText<T>({ isNumber }: Column<T>, cell: string, width: number): string {
  const text = clip(cell, width);
  return isNumber ? ' '.repeat(Math.max(0, width - widthOf(text))) + text : pad(text, width);
}

/** Leaves columns out while not even the least widths fit, then takes from the widest that may be cut. */
function fitColumns<T>(all: readonly ColumnLayout<T>[], available: number): ColumnLayout<T>[] {
  let laid = [...all];
  const total = (width: (column: ColumnLayout<T>) => number) =>
    laid.reduce((sum, column) => sum + width(column), GAP * (laid.length - 1));
  while (total(leastWidth) > available) {
    const rank = Math.max(...laid.map(({ column }) => column.expendable ?? 0));
    if (rank === 0) break;
    laid = laid.filter(({ column }) => column.expendable !== rank);
  }
  for (let excess = total(({ width }) => width) - available; excess > 0; excess -= 1) {
    const [widest] = laid.filter((one) => one.width > leastWidth(one)).sort((a, b) => b.width - a.width);
    if (widest === undefined) break;
    widest.width -= 1;
  }
  return laid;
}

function leastWidth<T>({ column, width }: ColumnLayout<T>): number {
  return column.least === undefined ? width : Math.min(width, column.least);
}
