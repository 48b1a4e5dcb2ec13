/** Figures, findings and differences: what `stats`, `check` and `diff` say. */

import { TapedeckError } from '../../errors.ts';
import { checkingSession } from '../../inspect/check/check.ts';
import { type Finding, RULES, type RuleId } from '../../inspect/check/rules.ts';
import { chosenFigures } from '../../inspect/figures/chosen-figures.ts';
import type { SomeFigures } from '../../inspect/figures/kept-figures.ts';
import { putTogether } from '../../inspect/figures/stats.ts';
import { type Filter, isAboutSessions } from '../../inspect/filter/filter.ts';
import {
  createTallies,
  findingJson,
  findingsSummary,
  isAtLeast,
  NO_SCHEMAS,
  remarksOf,
  sentenceOf,
} from '../../inspect/findings.ts';
import { createSchemas } from '../../inspect/schema/schemas.ts';
import { groupJson, totalJson } from '../../inspect/view/stats.ts';
import { readResultRules } from '../../replay/match/compare.ts';
import { readIgnoreRules } from '../../replay/match/ignore.ts';
import { diffJson, diffSummary } from '../../replay/verify/diff-report.ts';
import { diffSessions } from '../../replay/verify/sessions.ts';
import { VERSION } from '../../version.ts';
import { lackText, openAsked, pageOf, restText, type ToolAnswer, type ToolQuestion } from './asked.ts';
import { type Counted, figuresOfAll } from './count.ts';
import type { Opened } from './redacted.ts';
import { prepareAmong, readToolFilter, type SeenScope } from './scope.ts';

/** So many groups, findings or differences are looked for a page. */
const PAGE = 100;

export async function countCalls(asked: ToolQuestion): Promise<ToolAnswer> {
  const { scope, room, args } = asked;
  const { by = 'tool' } = args;
  const filter = readToolFilter(args.filter);
  if (args.all === true && args.session !== undefined)
    throw new TapedeckError('usage', 'Expected a session or `all`, got both. Leave one out.');
  const {
    figures,
    rest: uncounted,
    of,
  } = args.all === true
    ? await figuresOfAll(asked, frameFilter(scope, filter))
    : { figures: await figuresOfOne(asked, filter), rest: 0, of: 1 };
  const together = putTogether(figures, by, args.all === true);
  const groups = together.groups.map((group) => {
    const { histogram: _, ...figures } = { histogram: [], ...groupJson(group) };
    return figures;
  });
  const { tools: definitions, ...total } = totalJson(together);
  const shown = room.admit({ ...total, toolsDefined: definitions.length });
  const { page, next, rest } = pageOf(room, groups, args.cursor, PAGE);
  const isWhole = !scope.cutsSessions && (filter === undefined || isAboutSessions(filter));
  return {
    recorded: { ...(isWhole ? { total: shown } : { sessions: together.sessions }), groups: page },
    ...(next === undefined ? {} : { cursor: next }),
    leftOut: [
      ...(next === undefined ? [] : [restText(rest, 'groups')]),
      ...(uncounted === 0 ? [] : [uncountedText({ rest: uncounted, of })]),
    ],
  };
}

function uncountedText({ rest, of }: Pick<Counted, 'rest' | 'of'>): string {
  return `Only ${of - rest} of ${of} sessions were counted, for want of time. What was counted is kept: ask the same again, and more of them are, or ask for less with a filter such as since=7d.`;
}

async function figuresOfOne(asked: ToolQuestion, filter: Filter | undefined): Promise<SomeFigures[]> {
  const { store, session } = await openAsked(asked);
  const choice = {
    only: session,
    filter: frameFilter(asked.scope, filter),
    by: 'tool',
    version: VERSION,
  } as const;
  return [...chosenFigures(store, () => null, choice)];
}

/** A session that is found is inside of the fence: what the fence says of sessions need not be asked again. */
function frameFilter(scope: SeenScope, filter: Filter | undefined): Filter | undefined {
  return scope.cutsSessions ? scope.within(filter) : filter;
}

/** So long a session is checked, in milliseconds. */
const CHECK_MS = 8_000;

/** Findings of these rules tell of an earlier session, which may stand outside of the fence. */
const OF_EARLIER: ReadonlySet<RuleId> = new Set(['definition-changed', 'definition-loosened']);

const MOST_OF_RULE = 100;

export async function check(asked: ToolQuestion): Promise<ToolAnswer> {
  const { scope, room, args } = asked;
  const { severity = 'warning' } = args;
  const opened = await openAsked(asked);
  const { session } = opened;
  const filter = readToolFilter(args.filter);
  const isAmong = prepareAmong(opened, scope.only(opened, filter));
  const isCut = scope.cutsSessions || filter !== undefined;
  const isWanted = ({ rule, place }: Finding) =>
    isAtLeast(rule, severity) &&
    !(scope.hasFence && OF_EARLIER.has(rule)) &&
    (place === null ? !isCut : isAmong(place.seq));
  const { tallies, upTo, hasSchemas } = await checked(opened, isWanted);
  const findings = tallies.flatMap(({ first }) => first);
  const name = session.name ?? session.id;
  const rows = findings.map((one) => {
    const { recording: _, expected, seen, ...row } = findingJson(name, session.id, one);
    return { ...row, text: sentenceOf({ ...one, expected, seen }) };
  });
  const head = room.admit({
    session: session.id,
    summary: findingsSummary(tallies),
    rules: tallies
      .slice(0, MOST_RULES)
      .map(({ rule, count }) => ({ rule, count, severity: RULES[rule].severity, about: RULES[rule].text })),
  });
  const { page, next, rest } = pageOf(room, rows, args.cursor, PAGE);
  return {
    recorded: { ...head, findings: page },
    ...(next === undefined ? {} : { cursor: next }),
    leftOut: [
      ...(next === undefined ? [] : [restText(rest, 'findings')]),
      ...remarksOf(opened.store, session),
      ...(hasSchemas ? [] : [NO_SCHEMAS]),
      ...(upTo === null
        ? []
        : [`Frames behind ${upTo}: the session is long. All of it: tapedeck check ${session.id}`]),
    ],
  };
}

const MOST_RULES = 12;

/** `upTo`: the frame at which the time was over. */
async function checked({ store, session }: Opened, isWanted: (finding: Finding) => boolean) {
  const schemas = createSchemas();
  const found = createTallies(MOST_OF_RULE);
  const until = performance.now() + CHECK_MS;
  let upTo: number | null = null;
  try {
    for (const step of checkingSession(store, session, schemas)) {
      if (typeof step !== 'number') {
        if (isWanted(step)) found.add(step);
      } else if (performance.now() > until) {
        upTo = step;
        break;
      }
    }
  } finally {
    await schemas.close();
  }
  return { tallies: found.all(), upTo, hasSchemas: !schemas.hasFailed() };
}

/** Longer sessions are compared on the command line. */
const MOST_COMPARED_FRAMES = 20_000;

export async function diff({ scope, room, args }: ToolQuestion): Promise<ToolAnswer> {
  if (scope.cutsSessions)
    throw new TapedeckError(
      'refused',
      'Whole sessions are compared, and this server shows parts of them. Compare calls by list_calls and get_call.',
    );
  const [one, other] = [scope.find(args.a ?? ''), scope.find(args.b ?? 'latest')];
  for (const { id, frames } of [one, other])
    if (frames > MOST_COMPARED_FRAMES)
      throw new TapedeckError(
        'refused',
        `Session ${id} has ${frames} frames, which takes long to compare. On the command line: tapedeck diff ${one.id} ${other.id}`,
      );
  const [a, b] = [await scope.open(one), await scope.open(other)];
  for (const { lack } of [a, b])
    if (lack !== null) throw new TapedeckError('refused', `Whole sessions are compared. ${lackText(lack)}`);
  const found = diffSessions(a, b, readIgnoreRules([], []), readResultRules([]));
  const lines = [...diffJson(found)].filter((line) => !isEqualCall(line));
  const head = room.admit({ a: a.session.id, b: b.session.id, summary: diffSummary(found) });
  const { page, next, rest } = pageOf(room, lines, args.cursor, PAGE);
  return {
    recorded: { ...head, differences: page },
    ...(next === undefined ? {} : { cursor: next, leftOut: [restText(rest, 'differences and times')] }),
  };
}

function isEqualCall(line: object): boolean {
  return ('verdict' in line && line.verdict === 'equal') || ('type' in line && line.type === 'summary');
}
