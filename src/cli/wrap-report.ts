/** What `wrap` and `unwrap` did, for people. */
import { structuredPatch } from 'diff';
import type { Change, Outcome, Row } from '../clients/change.ts';
import type { Entry } from '../clients/config.ts';
import { ALL, type Target } from '../clients/targets.ts';
import { pad, widthOf } from '../inspect/text.ts';
import { escapeText } from '../protocol/escape.ts';

export const NO_CLIENT =
  'No config of a known client was found. A file is wrapped by its path: tapedeck wrap <file>';

/** What stands before the note. */
const WORDS: Record<Outcome, string> = {
  wrapped: 'wrapped',
  unwrapped: 'unwrapped',
  unchanged: '',
  refused: 'NOT wrapped',
};

/** The file, and a line for each of its servers. */
export function changeLines({ target, rows }: Change): string[] {
  const names = rows.map(({ entry }) => escapeText(labelOf(entry)));
  const width = Math.max(0, ...names.map(widthOf));
  const lines = rows.map((row, i) => `  ${pad(names[i] ?? '', width)}  ${outcomeOf(row)}`);
  return [escapeText(titleOf(target)), ...(lines.length > 0 ? lines : ['  no servers'])];
}

function outcomeOf({ outcome, note }: Row): string {
  return [WORDS[outcome], escapeText(note)].filter((text) => text !== '').join(': ');
}

export function titleOf({ client, file }: Target): string {
  return client === null ? file : `${client.title}: ${file}`;
}

/** The name, and where it is needed the project that the server is for. */
export function labelOf({ name, path }: Pick<Entry, 'name' | 'path'>): string {
  const [first, project] = path;
  return first === 'projects' && project !== undefined ? `${name} (${project})` : name;
}

/** Only the lines that change: what stands between them may be secret. */
export function diffLines({ target, before, after }: Change): string[] {
  const { hunks } = structuredPatch('', '', before.toString(), after.toString(), '', '', { context: 0 });
  const name = escapeText(target.file);
  const lines = hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines: changed }) => [
    `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
    ...changed.map((line) => line.split('\t').map(escapeText).join('\t')),
  ]);
  return lines.length === 0 ? [] : [`--- ${name}`, `+++ ${name}`, ...lines];
}

/** What is to be done next, and what is to be known. */
export function wrapAdvice(word: string, changes: readonly Change[], launcher: readonly string[]): string[] {
  const changed = changes.filter(isChanged);
  if (changed.length === 0) return [];
  const hasUrls = changed.some(({ rows }) =>
    rows.some(({ entry, outcome }) => outcome === 'wrapped' && entry.server.kind === 'url'),
  );
  const projects = changed.filter(({ target }) => target.scope === 'project');
  return [
    '',
    restartLine(changed),
    `\`tapedeck unwrap ${word}\` puts it back; do that before you remove tapedeck. Copies: ${changed
      .map(({ copyFolder }) => copyFolder)
      .join(', ')}`,
    ...(hasUrls
      ? [
          `The URL servers can be reached only while this runs: tapedeck record --wrapped${word === ALL ? '' : ` ${word}`}`,
        ]
      : []),
    ...projects.map(
      ({ target }) => `${target.file} belongs to a project: do not commit it while it is wrapped`,
    ),
    ...(launcher.includes('npx') ? ['tapedeck runs from npx: the client must find `npx` on its PATH'] : []),
  ].map(escapeText);
}

export function unwrapAdvice(changes: readonly Change[]): string[] {
  const changed = changes.filter(isChanged);
  return changed.length === 0 ? [] : ['', restartLine(changed)];
}

function isChanged({ before, after }: Change): boolean {
  return !after.equals(before);
}

function restartLine(changes: readonly Change[]): string {
  const titles = new Set(changes.map(({ target }) => target.client?.title ?? 'the client'));
  return `Restart ${[...titles].join(', ')}, so that the servers are started anew.`;
}
