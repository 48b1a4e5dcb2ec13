/** Wraps or unwraps files, one after the other. A file that is refused does not stop the others. */

import { structuredPatch } from 'diff';
import type { Entry } from '../../clients/config.ts';
import { type ClientConfigFile, changedTo, readClientConfig } from '../../clients/file.ts';
import type { Keeper } from '../../clients/keeper.ts';
import { launcherFor } from '../../clients/launcher.ts';
import { listConfig } from '../../clients/list.ts';
import { OWN_ENTRY, type OwnEntry, putIn, takeOut, withOwn, withoutOwn } from '../../clients/own-entry.ts';
import { ALL_TARGETS, findTargets, type Target } from '../../clients/targets.ts';
import { unwrapConfig } from '../../clients/unwrap.ts';
import { wrapConfig } from '../../clients/wrap.ts';
import type { ConfigChange, EntryOutcome, Row } from '../../clients/wrapped.ts';
import { TapedeckError } from '../../errors.ts';
import { pad, widthOf } from '../../inspect/view/text.ts';
import { escapeText, withoutByteOrderMark } from '../../protocol/text.ts';
import { withLock } from '../../store/file/lock.ts';
import { BIN, VERSION } from '../../version.ts';
import { asTyped, type Io, say } from '../io.ts';
import { keeperFolder, thisKeeper, thisMachine } from '../machine.ts';
import { withLineEnds, writeOutput } from '../output.ts';

const REFUSED = 2;

const DRY_RUN = ['', 'Nothing was written: --dry-run'];

export async function wrapFiles(
  io: Io,
  word: string,
  names: readonly string[],
  { isDryRun, db, withMcp }: { isDryRun: boolean; db: string | null; withMcp: boolean },
): Promise<void> {
  const { platform, execPath: node } = process;
  const launcher = launcherFor({ platform, node, bin: BIN, version: VERSION });
  await changeFiles(io, word, [], names, isDryRun, {
    change: (target, keeper) => {
      const wrap = (file: ClientConfigFile) =>
        wrapConfig(target, { names, launcher, db, isDryRun }, keeper, file);
      // One entry a client is enough: in the user's own config, or in the file that was named.
      const own = withMcp && target.scope !== 'project' ? ownWords(launcher, db) : null;
      return besideOwnEntry(target, keeper, isDryRun, wrap, (before) => {
        // What somebody has edited stays as they want it.
        if (own === null || typeof before?.edited === 'string') return before;
        return { words: own, edited: null };
      });
    },
    advice: (changes) => wrapAdvice(word, changes, launcher),
  });
}

export async function unwrapFiles(
  io: Io,
  word: string,
  names: readonly string[],
  isDryRun: boolean,
): Promise<void> {
  const known = thisKeeper(io)
    .all()
    .map(({ file }) => file);
  await changeFiles(io, word, known, names, isDryRun, {
    change: async (target, keeper) => {
      const unwrap = async (file: ClientConfigFile) =>
        unwrapConfig(target, { names, isDryRun }, keeper, file);
      const isMeant = names.length === 0 || names.includes(OWN_ENTRY);
      return besideOwnEntry(target, keeper, isDryRun, unwrap, (before) => (isMeant ? null : before));
    },
    advice: unwrapAdvice,
  });
}

function ownWords(launcher: readonly string[], db: string | null): string[] {
  return [...launcher, 'mcp', ...(db === null ? [] : ['--db', db])];
}

/** Changes a file without the entry of `tapedeck mcp`, which is put back, or in, or stays out. `wanted`: the entry; null: none. */
async function besideOwnEntry(
  target: Target,
  keeper: Keeper,
  isDryRun: boolean,
  work: (file: ClientConfigFile) => Promise<ConfigChange>,
  wanted: (before: OwnEntry | null) => OwnEntry | null,
): Promise<ConfigChange> {
  const before = readClientConfig(target.file);
  const { file, own: had } = withoutOwn(before, target, keeper);
  if (!isDryRun) takeOut(before, file, keeper);
  const add = (to: ClientConfigFile, own: OwnEntry): ClientConfigFile | null => {
    const added = withOwn(to, target, own);
    if (added !== null && !isDryRun) putIn(to, added, keeper);
    return added?.file ?? null;
  };
  const change = await work(file).catch((error) => {
    if (had !== null) add(file, had);
    throw error;
  });
  const rows = [...change.rows];
  const wrapped = changedTo(file, withoutByteOrderMark(change.after.toString()));
  let after = wrapped;
  const own = wanted(had);
  try {
    const added = own && add(wrapped, own);
    after = added ?? wrapped;
    if (own !== null && added === null) rows.push(ownRow('there is such a server already'));
    else if ((own === null) !== (had === null))
      rows.push(ownRow(own === null ? 'taken out' : 'added, so that the client sees the recordings'));
  } catch (error) {
    // The servers are wrapped all the same.
    if (!(error instanceof TapedeckError)) throw error;
    rows.push(ownRow(`NOT added: ${error.message}`));
  }
  return { ...change, rows, before: before.bytes, after: after.bytes };
}

function ownRow(note: string): Row {
  const server = { kind: 'none', reason: '' } as const;
  return {
    entry: { path: [OWN_ENTRY], name: OWN_ENTRY, isDisabled: false, server, members: 0 },
    outcome: 'unchanged',
    note,
  };
}

type Work = {
  change: (target: Target, keeper: Keeper) => Promise<ConfigChange>;
  /** Lines for the end. */
  advice: (changes: readonly ConfigChange[]) => string[];
};

/** `known`: files that were wrapped before. Sets the exit code where something was refused. */
async function changeFiles(
  io: Io,
  word: string,
  known: readonly string[],
  names: readonly string[],
  isDryRun: boolean,
  { change, advice }: Work,
): Promise<void> {
  const keeper = thisKeeper(io);
  const targets = findTargets(word, thisMachine(io), known);
  if (targets.length === 0) throw new TapedeckError('not-found', NO_CLIENT);
  assertNamed(targets, names, keeper);
  const changes: ConfigChange[] = [];
  const work = async () => {
    for (const target of targets)
      changes.push(...(await tryChange(io, target, () => change(target, keeper))));
  };
  try {
    await (isDryRun ? work() : withLock(keeperFolder(io), work));
  } finally {
    // What was changed is reported even after an error.
    const lines = changes.flatMap((one) => [...changeLines(one), ...(isDryRun ? diffLines(one) : [])]);
    const last = isDryRun ? DRY_RUN : advice(changes).map((line) => asTyped(io, line));
    await writeOutput(io, withLineEnds([...lines, ...last]));
  }
  if (changes.some(({ rows }) => rows.some((row) => isNamedRefusal(row, names)))) io.exitCode = REFUSED;
}

/** Empty where the file is refused. */
async function tryChange(
  io: Io,
  { file }: Target,
  change: () => Promise<ConfigChange>,
): Promise<ConfigChange[]> {
  try {
    return [await change()];
  } catch (error) {
    if (!(error instanceof TapedeckError)) throw error;
    say(io, escapeText(`${file}: ${error.message}. Nothing was written`));
    io.exitCode = REFUSED;
    return [];
  }
}

function isNamedRefusal({ entry, outcome }: Row, names: readonly string[]): boolean {
  return outcome === 'refused' && names.includes(entry.name);
}

/** Refuses a name that no file has, before anything is changed. */
function assertNamed(targets: readonly Target[], names: readonly string[], keeper: Keeper): void {
  const listed = targets.map((target) => listConfig(target, keeper));
  const there = new Set(listed.flatMap(({ servers }) => servers.map(({ name }) => name)));
  const unknown = names.find((name) => !there.has(name));
  // A file that cannot be read says so itself.
  if (unknown === undefined || listed.some(({ problem }) => problem !== null)) return;
  const files = targets.map(({ file }) => file).join(', ');
  const others = there.size === 0 ? 'it has none' : `there are: ${[...there].join(', ')}`;
  throw new TapedeckError(
    'not-found',
    escapeText(`Expected a server of ${files}, got \`${unknown}\`; ${others}`),
  );
}

export const NO_CLIENT =
  'No config of a known client was found. A file is wrapped by its path: tapedeck wrap <file>';

/** The word before the note. */
const WORDS: Record<EntryOutcome, string> = {
  wrapped: 'wrapped',
  unwrapped: 'unwrapped',
  unchanged: '',
  refused: 'NOT wrapped',
};

/** The file, and a line for each of its servers. */
function changeLines({ target, rows }: ConfigChange): string[] {
  const names = rows.map(({ entry }) => escapeText(serverLabel(entry)));
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
export function serverLabel({ name, path }: Pick<Entry, 'name' | 'path'>): string {
  const [first, project] = path;
  return first === 'projects' && project !== undefined ? `${name} (${project})` : name;
}

/** Only lines that change: the lines between them may hold secrets. */
function diffLines({ target, before, after }: ConfigChange): string[] {
  const { hunks } = structuredPatch('', '', before.toString(), after.toString(), '', '', { context: 0 });
  const name = escapeText(target.file);
  const lines = hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines: changed }) => [
    `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
    ...changed.map((line) => line.split('\t').map(escapeText).join('\t')),
  ]);
  return lines.length === 0 ? [] : [`--- ${name}`, `+++ ${name}`, ...lines];
}

/** What to do next, and what to know. */
function wrapAdvice(word: string, changes: readonly ConfigChange[], launcher: readonly string[]): string[] {
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
          `The URL servers can be reached only while this runs: tapedeck record --wrapped${word === ALL_TARGETS ? '' : ` ${word}`}`,
        ]
      : []),
    ...projects.map(
      ({ target }) => `${target.file} belongs to a project: do not commit it while it is wrapped`,
    ),
    ...(launcher.includes('npx') ? ['tapedeck runs from npx: the client must find `npx` on its PATH'] : []),
  ].map(escapeText);
}

function unwrapAdvice(changes: readonly ConfigChange[]): string[] {
  const changed = changes.filter(isChanged);
  return changed.length === 0 ? [] : ['', restartLine(changed)];
}

function isChanged({ before, after }: ConfigChange): boolean {
  return !after.equals(before);
}

function restartLine(changes: readonly ConfigChange[]): string {
  const titles = new Set(changes.map(({ target }) => target.client?.title ?? 'the client'));
  return `Restart ${[...titles].join(', ')}, so that the servers are started anew.`;
}
