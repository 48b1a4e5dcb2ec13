import type { VNode } from 'preact';
import { Button } from '../look/parts.tsx';
import { address, type Query, setQuery } from '../shell/router.ts';
import type { ApiFailure } from '../shell/source.ts';
import { FilterBox } from './filter-box.tsx';

type NarrowingProps = {
  /** What the rows are. */
  what: string;
  /** Whose values are offered. */
  session?: string;
  failure: ApiFailure | null;
  /** What of the address holds for the rows before alone. */
  anew?: Query;
};

/** The filter of rows, in the address as `filter`; or as `hl`, which keeps all rows and marks those that it selects. */
export function Narrowing({ what, session, failure, anew = {} }: NarrowingProps): VNode {
  const { query } = address.value;
  const isMarking = query.has('hl') || query.get('mode') === 'hl';
  const [use, other] = isMarking ? (['hl', 'filter'] as const) : (['filter', 'hl'] as const);
  const text = query.get(use) ?? '';
  return (
    <>
      <FilterBox
        label={`${isMarking ? 'Highlight' : 'Filter'} ${what}`}
        value={text}
        {...(session === undefined ? {} : { session })}
        onFilter={(filter) =>
          setQuery({ ...anew, [use]: filter, mode: null, ...(filter === '' ? {} : { [other]: null }) })
        }
        failure={failure}
      />
      <Button
        pressed={isMarking}
        label="Highlight what the box selects, and keep the other rows"
        onClick={() =>
          setQuery({ ...anew, [use]: null, [other]: text, mode: isMarking || text !== '' ? null : 'hl' })
        }
      >
        Highlight
      </Button>
    </>
  );
}
