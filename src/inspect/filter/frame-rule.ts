/** Filters that are asked of single frames as they are stored: `--meta-for`. What only a later frame tells cannot be asked there. */

import { TapedeckError } from '../../errors.ts';
import type { FrameField, FrameRule, FrameTest } from '../../store/sample/meta-for.ts';
import type { FieldName } from './fields.ts';
import { type Filter, parseFilter, type Test } from './filter.ts';

const LATER = 'it is known only once the request is stored';

const OF_SESSION =
  'all frames of a session have it alike, and `--capture meta` keeps no payloads of whole sessions';

/** Why a field cannot be asked; null: it can. */
const WHY_NOT: Record<FieldName, string | null> = {
  method: null,
  tool: null,
  prompt: null,
  resource: null,
  kind: null,
  id: null,
  dir: null,
  channel: null,
  size: null,
  text: null,
  status: LATER,
  dur: LATER,
  code: LATER,
  http: LATER,
  problem: 'it is known once the frame is indexed',
  trace: 'it is known once the frame is indexed',
  since: 'a frame is stored as it passes, so its time is now',
  until: 'a frame is stored as it passes, so its time is now',
  session: OF_SESSION,
  name: OF_SESSION,
  label: OF_SESSION,
  run: OF_SESSION,
  client: OF_SESSION,
  server: OF_SESSION,
  transport: OF_SESSION,
};

/** Reads filters of which one is to hold. Throws `TapedeckError` `usage` with what is wrong, and which fields can be asked. */
export function readFrameRule(filters: readonly string[]): FrameRule {
  const parts = filters.map((text) => {
    if (text.trim() === '')
      throw new TapedeckError(
        'usage',
        "Expected a filter after `--meta-for`, got an empty one. Example: --meta-for 'tool=read_file'",
      );
    return ruleOf(parseFilter(text, 0), text);
  });
  return { type: 'or', parts };
}

function ruleOf(filter: Filter, text: string): FrameRule {
  if (filter.type === 'not') return { type: 'not', part: ruleOf(filter.part, text) };
  if (filter.type !== 'term')
    return { type: filter.type, parts: filter.parts.map((part) => ruleOf(part, text)) };
  const { field, isNegated, test } = filter;
  if (isOfFrames(field)) return { type: 'term', field, isNegated, test: testOf(test) };
  const known = Object.keys(WHY_NOT).filter((name) => isOfFrames(name as FieldName));
  throw new TapedeckError(
    'usage',
    `Expected fields that a frame has as it is stored after \`--meta-for\`, got \`${field}\` in \`${text}\`: ${WHY_NOT[field]}. Fields: ${known.join(', ')}.`,
  );
}

function isOfFrames(field: FieldName): field is FrameField {
  return WHY_NOT[field] === null;
}

function testOf(test: Test): FrameTest {
  return test.type === 'matches' ? { type: 'matches', pattern: test.pattern } : test;
}
