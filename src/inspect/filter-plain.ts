/** A filter asked of a row in memory. It means the same as the SQL of `filter-sql.ts`, and is what that is tested against. */
import type { Filter, Term, Test } from './filter.ts';
import { fieldOf, type Value } from './filter-fields.ts';
import type { FilterRow } from './filter-row.ts';

export function holds(filter: Filter, row: FilterRow): boolean {
  switch (filter.type) {
    case 'and':
      return filter.parts.every((part) => holds(part, row));
    case 'or':
      return filter.parts.some((part) => holds(part, row));
    case 'not':
      return !holds(filter.part, row);
    case 'term':
      return termHolds(filter, row) !== filter.isNegated;
  }
}

function termHolds({ field: name, test }: Term, row: FilterRow): boolean {
  const field = fieldOf(name);
  if (field.type === 'payload') return test.type === 'matches' && test.text.has(row.frame.payload);
  const values = field.values(row);
  if (values.some((value) => passes(value, test))) return true;
  if (field.takesBeginning !== true || test.type !== 'equals') return false;
  return String(values[0] ?? '').startsWith(String(test.value));
}

function passes(value: Value, test: Test): boolean {
  if (value === null) return false;
  switch (test.type) {
    case 'equals':
      return value === test.value;
    case 'matches':
      return test.text.has(String(value));
    case 'compares':
      return compares(Number(value), test.operator, test.value);
  }
}

function compares(value: number, operator: '>' | '<' | '>=' | '<=', than: number): boolean {
  switch (operator) {
    case '>':
      return value > than;
    case '<':
      return value < than;
    case '>=':
      return value >= than;
    case '<=':
      return value <= than;
  }
}
