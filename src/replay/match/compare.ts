/**
 * Compares a live answer with the recorded one: first the kinds of answer, then result or error as JSON values. What every
 * run has anew does not count: ids, the trace context, what a server says of itself in `_meta`, its version in the
 * handshake, the times of tasks, and what the user ignores. What servers list is compared by name (verify/offers.ts).
 */

import { TapedeckError } from '../../errors.ts';
import {
  CANONICAL_PROBLEM,
  canonicalText,
  KEEP_ALL,
  type MemberFilter,
} from '../../protocol/json/canonical.ts';
import { type Difference, diffOf } from '../../protocol/json/diff.ts';
import { memberAt, sourceAt } from '../../protocol/json/edit.ts';
import { NO_PATHS, type PathProgress, parseJsonPath } from '../../protocol/json/path.ts';
import type { Span } from '../../protocol/json/read.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { CallTopic } from '../recording/topics.ts';
import { ignoring } from './ignore.ts';
import { differenceText } from './refusal.ts';

export type AnswerKind = 'result' | 'tool error' | 'input required' | 'error' | 'no answer';

export type Answer = { json: Buffer; message: Message };

type Comparison = {
  isEqual: boolean;
  recorded: AnswerKind;
  live: AnswerKind;
  /** Their pointers begin at the result, or at the error. */
  differences: Difference[];
  /** How many more there are. */
  more: number;
  /** Why the values could not be compared. */
  problem: string | null;
};

type Rules = { isEverythingIgnored: boolean; paths: PathProgress };

/** Rules by target; null for all targets. */
export type ResultRules = ReadonlyMap<string | null, Rules>;

const MAX_DIFFERENCES = 100;

const OPTION = '--ignore-result';

/** Reads `<json-path>` or `<tool, prompt or uri>:<json-path>`. */
export function readResultRules(texts: readonly string[]): ResultRules {
  const rules = new Map<string | null, Rules>();
  for (const text of texts) {
    const colon = text.startsWith('$') ? -1 : text.indexOf(':$');
    if (colon === 0 || (colon < 0 && !text.startsWith('$'))) {
      throw new TapedeckError(
        'usage',
        `${OPTION} ${text}: expected <json-path> or <tool>:<json-path>, like $.content or now:$.content[0].text.`,
      );
    }
    const target = colon < 0 ? null : text.slice(0, colon);
    const { isWhole, start } = parseJsonPath(text.slice(colon + 1), OPTION);
    const known = rules.get(target);
    rules.set(target, {
      isEverythingIgnored: isWhole || known?.isEverythingIgnored === true,
      paths: [...(known?.paths ?? NO_PATHS), ...start],
    });
  }
  return rules;
}

export function answerKindOf({ kind, details }: Message): AnswerKind {
  if (kind !== 'result') return 'error';
  if (details.resultType === 'input_required') return 'input required';
  return details.isToolError ? 'tool error' : 'result';
}

export function compareAnswers(
  asked: CallTopic,
  recorded: Answer,
  live: Answer,
  rules: ResultRules = new Map(),
): Comparison {
  const comparison: Comparison = {
    isEqual: false,
    recorded: answerKindOf(recorded.message),
    live: answerKindOf(live.message),
    differences: [],
    more: 0,
    problem: null,
  };
  if (comparison.recorded !== comparison.live) return comparison;
  const filter = filterFor(
    asked,
    comparison.live === 'error' ? KEEP_ALL : resultFilter(asked.method, isAtWork(recorded)),
    rules,
  );
  if (filter === null) return { ...comparison, isEqual: true };
  const before = valueText(recorded.json, filter);
  const after = valueText(live.json, filter);
  if (typeof before === 'string') return { ...comparison, problem: `the recorded answer ${before}` };
  if (typeof after === 'string') return { ...comparison, problem: `the live answer ${after}` };
  const { differences, more } = diffOf(before, after, MAX_DIFFERENCES);
  return { ...comparison, isEqual: differences.length === 0, differences, more };
}

/** The paths of every result that do not count; null where nothing does. */
export function ignoredInAll(rules: ResultRules): PathProgress | null {
  const own = rules.get(null);
  return own?.isEverythingIgnored === true ? null : (own?.paths ?? NO_PATHS);
}

function isAtWork({ json }: Answer): boolean {
  const status = sourceAt(json, ['result', 'status']) ?? sourceAt(json, ['result', 'task', 'status']);
  return status === '"working"';
}

/** The filter for what counts of an answer; null where nothing does. */
function filterFor({ target }: CallTopic, base: MemberFilter, rules: ResultRules): MemberFilter | null {
  let filter = base;
  for (const key of target === null ? [null] : [null, target]) {
    const own = rules.get(key);
    if (own?.isEverythingIgnored === true) return null;
    filter = ignoring(filter, own?.paths ?? NO_PATHS);
  }
  return filter;
}

const VOLATILE_META = new Set([
  'progressToken',
  'traceparent',
  'tracestate',
  'baggage',
  'io.modelcontextprotocol/serverInfo',
  'io.modelcontextprotocol/subscriptionId',
]);

const META: MemberFilter = {
  enter: (name) => (VOLATILE_META.has(String(name)) ? null : KEEP_ALL),
  dropsEmpty: true,
};

const without = (...names: string[]): MemberFilter => ({
  enter: (name) => (names.includes(String(name)) ? null : KEEP_ALL),
  dropsEmpty: false,
});

const TASK = without('createdAt', 'lastUpdatedAt');

/** Of a task at work, what it is at depends on when it is asked. */
const WORKING_TASK = without('createdAt', 'lastUpdatedAt', 'statusMessage');

/** A list of tasks is asked for at some moment of each. */
const LISTED_TASK = without('createdAt', 'lastUpdatedAt', 'statusMessage', 'status');

const SERVER_INFO = without('version');

const TASKS: MemberFilter = { enter: () => LISTED_TASK, dropsEmpty: false };

/** The lists that are compared by name, all their pages together (verify/lists.ts): by method the member that holds them. */
const LISTS: ReadonlyMap<string, string> = new Map([
  ['tools/list', 'tools'],
  ['prompts/list', 'prompts'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resourceTemplates'],
]);

function resultFilter(method: string, isWorking: boolean): MemberFilter {
  const task = isWorking ? WORKING_TASK : TASK;
  const inner: MemberFilter = method.startsWith('tasks/') ? task : KEEP_ALL;
  const list = LISTS.get(method);
  return {
    enter(name) {
      if (name === '_meta') return META;
      if (name === 'task') return task;
      if (list !== undefined && (name === list || name === 'nextCursor')) return null;
      if (name === 'tasks' && method === 'tasks/list') return TASKS;
      if (name === 'serverInfo' && method === 'initialize') return SERVER_INFO;
      return inner.enter(name);
    },
    dropsEmpty: false,
  };
}

function valueText(json: Buffer, filter: MemberFilter): Buffer | string {
  const span: Span | undefined = memberAt(json, ['result']) ?? memberAt(json, ['error']);
  if (span === undefined) return 'has neither result nor error';
  const text = canonicalText(json, span, filter);
  return typeof text === 'string' ? CANONICAL_PROBLEM[text] : text;
}

/** A message for people: a line for stderr, and the whole text for a report. Recorded text is not escaped. */
export type Notice = { line: string; text: string };

const MAX_VALUE_IN_LINE = 60;

/**
 * Says how a live client's answer to a question of the server (sampling, elicitation, roots) differs from the recorded one;
 * null where both are equal as JSON values. The recorded server went on from the recorded answer, so a difference matters.
 * The call goes on all the same: the answer may come from a person or a model, which never answer alike twice.
 *
 * `method`: of the question; `frame`: names the frame that asked it.
 */
export function otherAnswerNotice(
  method: string,
  frame: string,
  recorded: Answer,
  live: Answer,
): Notice | null {
  const { isEqual, differences, more, problem, ...kinds } = compareAnswers(
    { method, target: null },
    recorded,
    live,
  );
  if (isEqual) return null;
  const what = `${method}: the client’s answer is not the recorded one (to ${frame}); what follows was recorded for that`;
  const why =
    problem ?? (kinds.recorded === kinds.live ? null : `recorded ${kinds.recorded}, live ${kinds.live}`);
  const [first] = differences;
  const rest = differences.length - 1 + more;
  const shown = first === undefined ? '' : differenceText(first, MAX_VALUE_IN_LINE, NOT_THERE);
  const line = `${what}: ${why ?? `${shown}${rest > 0 ? `, and ${rest} more` : ''}`}`;
  const lines = [what, ...(why === null ? [] : [`  ${why}`])];
  for (const difference of differences) lines.push(`    ${differenceText(difference, undefined, NOT_THERE)}`);
  if (more > 0) lines.push(`    and ${more} more`);
  return { line, text: `${lines.join('\n')}\n` };
}

const NOT_THERE = 'not in the live answer';
