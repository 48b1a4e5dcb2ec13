/** The steps of `tapedeck ci` on one recording, each as its own command takes it, with findings for other programs. */

import type { CiFinding, CiStep } from '../../ci/findings.ts';
import {
  ASSERTION_TEXTS,
  type Assertion,
  type Breach,
  countBreaches,
  isAbout,
} from '../../inspect/assertions.ts';
import { type Finding, isOfProvider, RULES, type Severity } from '../../inspect/check/rules.ts';
import { findingsSummary, MAX_FINDINGS_OF_RULE, sentenceOf, tally } from '../../inspect/findings.ts';
import type { Schemas } from '../../inspect/schema/schemas.ts';
import { formatCount } from '../../inspect/view/text.ts';
import { type Difference, jsonPointer } from '../../protocol/json/diff.ts';
import type { Redactor } from '../../protocol/redact/redactor.ts';
import type { ResultRules } from '../../replay/match/compare.ts';
import type { IgnoreRules } from '../../replay/match/ignore.ts';
import { readRecording } from '../../replay/recording/recording.ts';
import type { RequestCheck } from '../../replay/verify/check.ts';
import { diffSummary, isEqual } from '../../replay/verify/diff-report.ts';
import type { ListChange } from '../../replay/verify/offers.ts';
import { type VerifyOptions, verify } from '../../replay/verify/run.ts';
import { diffSessions, type PairedCall } from '../../replay/verify/sessions.ts';
import type { Source } from '../../sources/source.ts';
import type { Connect } from '../../talk/server.ts';
import type { Io } from '../io.ts';
import { askedName, differenceLines, listLines, summaryLine } from '../play/verify-report.ts';
import { breachesOf, wantedFindings } from '../read/check.ts';

/** A recording that is open, and what is needed to tell of it. */
export type CiSource = {
  source: Source;
  file: string;
  /** Of each frame, in the file. */
  lines: readonly number[];
  redactor: Redactor;
};

type StepResult = { words: string; findings: CiFinding[] };

type Found = Pick<CiFinding, 'rule' | 'severity' | 'seq' | 'what' | 'names' | 'detail'>;

function findingOf({ source, file, lines, redactor }: CiSource, step: CiStep, found: Found): CiFinding {
  const { seq, names, detail } = found;
  return {
    ...found,
    ...{ step, file, session: source.session.id, line: seq === null ? 1 : (lines[seq - 1] ?? 1) },
    names: names.map((name) => redactor.text(name.replaceAll(/\S+:\/\/\S+/g, redactor.url))),
    detail: redactor.text(detail),
  };
}

/** `asked` takes the filters of the expectations that this session was held to. */
export function checkStep(
  io: Io,
  ci: CiSource,
  options: { severity: Severity; skip: string[] },
  assertions: readonly Assertion[],
  schemas: Schemas,
  asked: Set<string>,
): StepResult {
  const { store, session } = ci.source;
  const held = assertions.filter((one) => isAbout(store, session, one));
  for (const { filter } of held) asked.add(filter);
  const broken = countBreaches(breachesOf(store, session, held, undefined), MAX_FINDINGS_OF_RULE);
  const tallies = tally(
    wantedFindings(io, ci.source, options, schemas, ({ rule }) => !isOfProvider(rule)),
    MAX_FINDINGS_OF_RULE,
  );
  const words = [
    ...(broken.length === 0 ? [] : [`${formatCount(broken.length, 'assertion')} broken`]),
    ...(broken.length > 0 && tallies.length === 0 ? [] : [findingsSummary(tallies)]),
  ];
  const found = [
    ...broken.flatMap(({ first }) => first.map(ofBreach)),
    ...tallies.flatMap(({ first }) => first.map(ofFinding)),
  ];
  return { words: words.join(', '), findings: found.map((one) => findingOf(ci, 'check', one)) };
}

function ofBreach({ assertion: { kind, filter }, seq, side, expected, seen }: Breach): Found {
  const detail = `The ${side ?? 'session'}: expected ${expected}, saw ${seen}.`;
  return { rule: kind, severity: 'error', seq, what: ASSERTION_TEXTS[kind], names: [filter], detail };
}

function ofFinding(finding: Finding): Found {
  const { rule, side, place } = finding;
  const { severity, text } = RULES[rule];
  const detail = `The ${side}: ${sentenceOf(finding)}.`;
  return { rule, severity, seq: place?.seq ?? null, what: `${text} (the ${side})`, names: [], detail };
}

export async function verifyStep(
  ci: CiSource,
  connect: Connect,
  options: VerifyOptions,
): Promise<StepResult> {
  const { store, session, keyStores } = ci.source;
  const verification = await verify(readRecording(store, session, keyStores), connect, options);
  const drifted = verification.checked.filter(({ verdict }) => verdict === 'drift');
  const found = [
    ...drifted.map((one) => ofDrift(one, ci.redactor)),
    ...verification.lists.map((one) => ofList(one, 'warning', LIVE, ci.redactor)),
  ];
  return {
    words: summaryLine(verification),
    findings: found.map((one) => findingOf(ci, 'verify', one)),
  };
}

/** What the two sides of a difference are called. */
const LIVE = { from: 'recorded', to: 'live' };

const BASE = { from: 'base', to: 'here' };

function ofDrift(check: RequestCheck, redactor: Redactor): Found {
  const { place, recorded, live, more, why } = check;
  const differences = check.differences.map((one) => withoutSecrets(one, redactor));
  const what =
    recorded === live
      ? formatCount(differences.length + more, 'difference')
      : `recorded ${recorded}, live ${live}`;
  const name = askedName(check);
  return {
    ...{ rule: 'drift', severity: 'error', seq: place?.seq ?? null, what },
    names: [name, ...pointersOf(differences)],
    detail: detailOf(`${name}${why === null ? '' : `: ${why}`}`, differenceLines(differences, more, LIVE)),
  };
}

function ofList(change: ListChange, severity: Severity, sides: typeof LIVE, redactor: Redactor): Found {
  const { kind, name, breaking } = change;
  const differences = change.differences.map((one) => withoutSecrets(one, redactor));
  const isBreaking = breaking.length > 0;
  const [head = '', ...reasons] = listLines({ ...change, differences: [] });
  return {
    rule: isBreaking ? 'offer-broken' : 'offer-changed',
    severity: isBreaking ? 'error' : severity,
    seq: null,
    what: `a ${kind} was ${change.change}, ${isBreaking ? 'breaking' : 'not breaking'}`,
    names: [name, ...(isBreaking ? breaking : pointersOf(differences))],
    detail: detailOf(head.replaceAll(/ +/g, ' '), [...reasons, ...differenceLines(differences, 0, sides)]),
  };
}

/** `base`: the recording as it was there; null where it is new. */
export function diffStep(
  ci: CiSource,
  base: Source | null,
  ignore: IgnoreRules,
  results: ResultRules,
): StepResult {
  if (base === null) return { words: 'new', findings: [] };
  const diff = diffSessions(base, ci.source, ignore, results);
  const calls = diff.calls.filter(({ verdict }) => verdict !== 'equal');
  const found = [
    ...diff.lists.map((one) => ofList(one, 'note', BASE, ci.redactor)),
    ...calls.map((one) => ofCall(one, ci.redactor)),
  ];
  return {
    words: isEqual(diff) ? 'equal' : diffSummary(diff),
    findings: found.map((one) => findingOf(ci, 'diff', one)),
  };
}

const VERDICTS: Readonly<Record<PairedCall['verdict'], string>> = {
  equal: 'equal',
  differs: 'the answer differs',
  'other arguments': 'the arguments differ',
  'only in a': 'a call of the base is not made any more',
  'only in b': 'a new call',
};

function ofCall(call: PairedCall, redactor: Redactor): Found {
  const { verdict, method, target, b, more } = call;
  const differences = call.differences.map((one) => withoutSecrets(one, redactor));
  const name = target === null ? method : `${method} ${target}`;
  const what = VERDICTS[verdict];
  return {
    ...{ rule: 'recording-changed', severity: 'note', seq: b, what },
    names: [name, ...pointersOf(differences)],
    detail: detailOf(`${name}: ${what}`, differenceLines(differences, more, BASE)),
  };
}

function pointersOf(differences: readonly Difference[]): string[] {
  return differences.map(({ path }) => jsonPointer(path) || '/');
}

function detailOf(head: string, lines: readonly string[]): string {
  return [head, ...lines.map((line) => `  ${line.trim()}`)].join('\n');
}

/** Values are redacted whole, before they are cut, and under their names: many secrets are known by those. */
function withoutSecrets(difference: Difference, redactor: Redactor): Difference {
  const name = JSON.stringify(String(difference.path.at(-1) ?? ''));
  const clean = (value: Buffer | null): Buffer | null => {
    if (value === null) return null;
    const [before, after] = [Buffer.from(`{${name}:`), Buffer.from('}')];
    const redacted = redactor.payload(Buffer.concat([before, value, after]), false, false)?.payload;
    return redacted === undefined ? value : redacted.subarray(before.length, redacted.length - 1);
  };
  return { ...difference, from: clean(difference.from), to: clean(difference.to) };
}
