/** What a run of `tapedeck ci` has found in the recordings of a repository: the unit of its log, its comment and its SARIF. */

import { SEVERITIES, type Severity } from '../inspect/check/rules.ts';
import { CHECK_RULES, type SarifRule, sarifText } from '../inspect/sarif.ts';
import { formatCount } from '../inspect/view/text.ts';

export type CiStep = 'check' | 'verify' | 'diff';

/** Recorded and live text in it is redacted, and not escaped. */
export type CiFinding = {
  step: CiStep;
  rule: string;
  severity: Severity;
  /** The recording's path, with slashes. */
  file: string;
  session: string;
  /** The frame, and its line in the file; null and 1 for the recording as a whole. */
  seq: number | null;
  line: number;
  /** Without anything recorded in it. */
  what: string;
  /** What it is about, by name: a call, JSON pointers, a filter. Never a value. */
  names: readonly string[];
  /** The whole of it, with values, in lines. */
  detail: string;
};

/** What each step says of a recording as a whole, in own words; null where the step was not taken. */
export type CiRecording = {
  file: string;
  session: string | null;
  /** Why frames of it were not judged, each in a sentence. */
  unjudged: readonly string[];
} & Record<CiStep, string | null>;

/** Something that could not be checked. `message` is escaped. */
export type CiTrouble = { step: CiStep | 'find'; file: string | null; message: string };

export type CiOutcome = {
  recordings: readonly CiRecording[];
  findings: readonly CiFinding[];
  troubles: readonly CiTrouble[];
  /** Findings below it are told, and leave the exit code as it is. */
  severity: Severity;
};

/** What `verify` and `diff` find, in the words of rules. */
const CI_RULES: readonly SarifRule[] = [
  rule('drift', 'error', 'The live server answers as it was recorded.'),
  rule('offer-broken', 'error', 'No tool, prompt or resource changes so that its callers break.'),
  rule('offer-changed', 'warning', 'The live server offers what it was recorded with.'),
  rule('recording-changed', 'note', 'The recording has the calls and answers of the base.'),
];

function rule(id: string, severity: Severity, text: string): SarifRule {
  return { id, severity, text, url: null };
}

/** Those that decide over the exit code. */
export function grave({ findings, severity }: CiOutcome): CiFinding[] {
  return findings.filter((one) => rank(one.severity) >= rank(severity));
}

/** The others. */
export function slight({ findings, severity }: CiOutcome): CiFinding[] {
  return findings.filter((one) => rank(one.severity) < rank(severity));
}

function rank(severity: Severity): number {
  return SEVERITIES.indexOf(severity);
}

/** 0: nothing was found; 1: something was; 2: not everything could be checked. */
export function exitCodeOf(outcome: CiOutcome): number {
  if (outcome.troubles.length > 0) return 2;
  return grave(outcome).length > 0 ? 1 : 0;
}

/** `2 findings in 3 recordings`. */
export function headline(outcome: CiOutcome): string {
  const { recordings, troubles } = outcome;
  const found = grave(outcome).length;
  const where = `in ${formatCount(recordings.length, 'recording')}`;
  const words = found === 0 ? `nothing found ${where}` : `${formatCount(found, 'finding')} ${where}`;
  return troubles.length === 0 ? words : `${words}; not everything could be checked`;
}

export function sarifOfCi({ findings, recordings }: CiOutcome, version: string): string {
  const results = findings.map(({ rule, severity, detail, file, line, session, seq }) => ({
    ...{ rule, severity, file, line, session },
    message: detail.replaceAll(/\s*\n\s*/g, '; '),
    where: seq === null ? 'session' : `#${seq}`,
  }));
  const notes = recordings.flatMap(({ file, unjudged }) => unjudged.map((one) => `${file}: ${one}`));
  return sarifText([...CHECK_RULES, ...CI_RULES], results, version, notes);
}
