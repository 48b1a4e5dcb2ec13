/** Tables for people, as wide as the terminal allows. */

import { escapeText } from '../../protocol/text.ts';
import { type Colors, clip, clipApart, pad, type TerminalStyle, widthOf } from './text.ts';

export type Column<T> = {
  title: string;
  /** Left out where the terminal is too narrow, the highest first. */
  expendable?: number;
  /** The text of a cell, not escaped yet. */
  cell: (row: T) => string;
  /** Without it a column is for every row; with it, it stands only where one of them is such a row. */
  isFor?: (row: T) => boolean;
  isNumber?: boolean;
  /** The least width this column may be cut to; without one it is never cut. Rows that differ in it differ still. */
  least?: number;
  /** The width that all expendable columns give way to but those of rank 1. */
  wanted?: number;
  /** Drops what says nothing of a cell that would be cut otherwise. */
  shorten?: (cell: string) => string;
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
  const cut = laid.map(({ cells, width }) => clipApart(cells, width));
  const line = (cells: string[]) => cells.join(' '.repeat(GAP)).trimEnd();
  yield style.colors.dim(line(laid.map((one) => cellText(one, clip(one.column.title, one.width)))));
  for (const [r, row] of rows.entries()) {
    const cells = laid.map((one, c) => {
      const { column } = one;
      const text = cellText(one, cut[c]?.[r] ?? '');
      return column.color?.(style.colors, row)?.(text) ?? text;
    });
    yield line(cells);
  }
}

function layColumn<T>(column: Column<T>, rows: readonly T[]): ColumnLayout<T> {
  const cells = rows.map((row) => escapeText(column.cell(row).slice(0, MAX_CELL_CHARACTERS)));
  return { column, cells, width: widthOfColumn(column, cells) };
}

function widthOfColumn<T>({ title }: Column<T>, cells: readonly string[]): number {
  return cells.reduce((most, cell) => Math.max(most, widthOf(cell)), title.length);
}

function shortened<T>(laid: ColumnLayout<T>): ColumnLayout<T> {
  const { column, cells } = laid;
  if (column.shorten === undefined) return laid;
  const shorter = cells.map(column.shorten);
  return { column, cells: shorter, width: widthOfColumn(column, shorter) };
}

function cellText<T>({ column, width }: ColumnLayout<T>, text: string): string {
  return column.isNumber ? ' '.repeat(Math.max(0, width - widthOf(text))) + text : pad(text, width);
}

/** Leaves columns out while not even the least widths fit, then takes from the widest that may be cut. */
function fitColumns<T>(all: readonly ColumnLayout<T>[], available: number): ColumnLayout<T>[] {
  let laid = [...all];
  const total = (width: (column: ColumnLayout<T>) => number) =>
    laid.reduce((sum, column) => sum + width(column), GAP * (laid.length - 1));
  const leaveOut = (width: (column: ColumnLayout<T>) => number, leastRank: number) => {
    while (total(width) > available) {
      const rank = Math.max(...laid.map(({ column }) => column.expendable ?? 0));
      if (rank < leastRank) break;
      laid = laid.filter(({ column }) => column.expendable !== rank);
    }
  };
  leaveOut(leastWidth, 1);
  if (total(({ width }) => width) > available) laid = laid.map(shortened);
  leaveOut(wantedWidth, 2);
  const wider = (floor: (column: ColumnLayout<T>) => number) =>
    laid.filter((one) => one.width > floor(one)).sort((a, b) => b.width - a.width);
  for (let excess = total(({ width }) => width) - available; excess > 0; excess -= 1) {
    const [widest] = wider(wantedWidth).concat(wider(leastWidth));
    if (widest === undefined) break;
    widest.width -= 1;
  }
  return laid;
}

function wantedWidth<T>(one: ColumnLayout<T>): number {
  return Math.min(one.width, Math.max(leastWidth(one), one.column.wanted ?? 0));
}

function leastWidth<T>({ column, width }: ColumnLayout<T>): number {
  return column.least === undefined ? width : Math.min(width, column.least);
}
