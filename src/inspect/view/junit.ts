/**
 * JUnit's XML. It has no specification, and readers differ; this is what the schemas of Jenkins' xUnit plugin (the old and
 * the new one) and Ant's JUnitReport (windyroad/JUnit-Schema) all take. So every member stands there that one of them
 * requires, in the order that one of them wants.
 */
import { escapeText } from '../../protocol/text.ts';

export type JunitCase = {
  classname: string;
  name: string;
  seconds: number;
  /** Text may have several lines. */
  outcome:
    | { kind: 'passed' }
    | { kind: 'skipped'; text: string }
    | { kind: 'failed'; type: string; message: string; text: string };
};

export type JunitSuite = {
  name: string;
  /** When it began, in milliseconds since the Unix epoch. */
  at: number;
  seconds: number;
  cases: readonly JunitCase[];
  /** Lines of its output. */
  out?: readonly string[];
};

export function junitText(suites: readonly JunitSuite[], version: string): string {
  const lines = suites.flatMap((suite, id) => suiteLines(suite, id, version));
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites>', ...lines, '</testsuites>', ''].join('\n');
}

function suiteLines(
  { name, at, seconds, cases, out = [] }: JunitSuite,
  id: number,
  version: string,
): string[] {
  const count = (kind: JunitCase['outcome']['kind']) =>
    cases.filter(({ outcome }) => outcome.kind === kind).length;
  const attributes = [
    `name="${token(name)}"`,
    `tests="${cases.length}"`,
    `failures="${count('failed')}"`,
    'errors="0"',
    `skipped="${count('skipped')}"`,
    `time="${seconds.toFixed(3)}"`,
    // Without a zone, as the schema wants it: UTC.
    `timestamp="${new Date(at).toISOString().slice(0, 19)}"`,
    // The name of the machine does not belong in a report.
    'hostname="localhost"',
    'package="tapedeck"',
    `id="${id}"`,
  ];
  return [
    `<testsuite ${attributes.join(' ')}>`,
    `<properties><property name="tapedeck" value="${xml(version)}"/></properties>`,
    ...cases.map(caseLine),
    out.length === 0 ? '<system-out/>' : `<system-out>${xml(out.join('\n'))}</system-out>`,
    '<system-err/>',
    '</testsuite>',
  ];
}

function caseLine({ classname, name, seconds, outcome }: JunitCase): string {
  const head = `<testcase classname="${token(classname)}" name="${token(name)}" time="${seconds.toFixed(3)}"`;
  if (outcome.kind === 'passed') return `${head}/>`;
  // The old schema has no attributes there.
  if (outcome.kind === 'skipped') return `${head}><skipped>${xml(outcome.text)}</skipped></testcase>`;
  const attributes = `type="${xml(outcome.type)}" message="${xml(outcome.message)}"`;
  return `${head}><failure ${attributes}>${xml(outcome.text)}</failure></testcase>`;
}

/** A name is never empty. */
function token(text: string): string {
  return xml(text.trim() === '' ? JSON.stringify(text) : text);
}

/** Text within XML. */

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** For element content and attributes. What XML cannot hold is escaped as for a terminal. Line ends are ours. */
function xml(text: string): string {
  const lines = text.split('\n').map(escapeText);
  return lines
    .join('\n')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\ufffe\uffff]/g, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
}
