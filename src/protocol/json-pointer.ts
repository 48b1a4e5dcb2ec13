/** Where in a JSON text a byte stands, as a JSON Pointer (RFC 6901). */
import { eachElement, eachMember, type Span, skipSpace, typeAt } from './json.ts';

/** The pointer of the innermost value that byte `offset` belongs to, a member's name too; `''` for no JSON. */
export function pointerAt(json: Buffer, offset: number): string {
  let pointer = '';
  let value: Span | null = {
    start: skipSpace(json, 0),
    end: json.length,
    type: typeAt(json, skipSpace(json, 0)),
  };
  while (value !== null) {
    const found = stepInto(json, value, offset);
    if (found !== null) pointer += `/${found.step.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    value = found?.value ?? null;
  }
  return pointer;
}

function stepInto(json: Buffer, { start, type }: Span, offset: number): { step: string; value: Span } | null {
  let found: { step: string; value: Span } | null = null;
  let index = 0;
  const visit = (step: string, value: Span) => {
    if (found === null && offset < value.end && offset >= start) found = { step, value };
  };
  if (type === 'object') eachMember(json, start, visit);
  else if (type === 'array') {
    eachElement(json, start, (value) => {
      visit(String(index), value);
      index += 1;
    });
  }
  return found;
}
