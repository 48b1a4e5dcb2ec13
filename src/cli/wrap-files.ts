/** Wraps or unwraps the files that are meant, one after the other: what is wrong with one does not stop the others. */
import { fileURLToPath } from 'node:url';
import type { Change, Row } from '../clients/change.ts';
import type { Keeper } from '../clients/kept.ts';
import { launcherFor } from '../clients/launcher.ts';
import { listConfig } from '../clients/list.ts';
import { findTargets, type Target } from '../clients/targets.ts';
import { unwrapConfig } from '../clients/unwrap.ts';
import { wrapConfig } from '../clients/wrap.ts';
import { TapedeckError } from '../errors.ts';
import { escapeText } from '../protocol/escape.ts';
import { withLock } from '../store/lock.ts';
import { VERSION } from '../version.ts';
import { say } from './listening.ts';
import { keeperFolder, thisKeeper, thisMachine } from './machine.ts';
import { withLineEnds, writeOutput } from './output.ts';
import { changeLines, diffLines, NO_CLIENT, unwrapAdvice, wrapAdvice } from './wrap-report.ts';

const REFUSED = 2;
const DRY_RUN = ['', 'Nothing was written: --dry-run'];

export async function wrapFiles(
  word: string,
  names: readonly string[],
  { isDryRun, db }: { isDryRun: boolean; db: string | null },
): Promise<void> {
  const { platform, execPath: node } = process;
  const launcher = launcherFor({ platform, node, bin: ownBin(), version: VERSION });
  await changeFiles(word, [], names, isDryRun, {
    change: (target, keeper) => wrapConfig(target, { names, launcher, db, isDryRun }, keeper),
    advice: (changes) => wrapAdvice(word, changes, launcher),
  });
}

export async function unwrapFiles(word: string, names: readonly string[], isDryRun: boolean): Promise<void> {
  const known = thisKeeper()
    .all()
    .map(({ file }) => file);
  await changeFiles(word, known, names, isDryRun, {
    change: async (target, keeper) => unwrapConfig(target, { names, isDryRun }, keeper),
    advice: unwrapAdvice,
  });
}

function ownBin(): string {
  return fileURLToPath(new URL('../../bin/tapedeck.js', import.meta.url));
}

type Work = {
  change: (target: Target, keeper: Keeper) => Promise<Change>;
  /** What is to be said at the end. */
  advice: (changes: readonly Change[]) => string[];
};

/** `known`: files of which is known that they were wrapped. Sets the exit code where something was refused. */
async function changeFiles(
  word: string,
  known: readonly string[],
  names: readonly string[],
  isDryRun: boolean,
  { change, advice }: Work,
): Promise<void> {
  const keeper = thisKeeper();
  const targets = findTargets(word, thisMachine(), known);
  if (targets.length === 0) throw new TapedeckError('usage', NO_CLIENT);
  assertNamed(targets, names, keeper);
  const changes: Change[] = [];
  const work = async () => {
    for (const target of targets) changes.push(...(await tryChange(target, () => change(target, keeper))));
  };
  try {
    await (isDryRun ? work() : withLock(keeperFolder(), work));
  } finally {
    // Whatever comes between: what was changed is said.
    const lines = changes.flatMap((one) => [...changeLines(one), ...(isDryRun ? diffLines(one) : [])]);
    await writeOutput(withLineEnds([...lines, ...(isDryRun ? DRY_RUN : advice(changes))]));
  }
  if (changes.some(({ rows }) => rows.some((row) => isNamedRefusal(row, names)))) process.exitCode = REFUSED;
}

/** None where the file is refused: the others are not. */
async function tryChange({ file }: Target, change: () => Promise<Change>): Promise<Change[]> {
  try {
    return [await change()];
  } catch (error) {
    if (!(error instanceof TapedeckError)) throw error;
    say(escapeText(`${file}: ${error.message}. Nothing was written`));
    process.exitCode = REFUSED;
    return [];
  }
}

function isNamedRefusal({ entry, outcome }: Row, names: readonly string[]): boolean {
  return outcome === 'refused' && names.includes(entry.name);
}

/** A name that is nowhere is a slip: then nothing at all is done. */
function assertNamed(targets: readonly Target[], names: readonly string[], keeper: Keeper): void {
  const listed = targets.map((target) => listConfig(target, keeper));
  const there = new Set(listed.flatMap(({ servers }) => servers.map(({ name }) => name)));
  const unknown = names.find((name) => !there.has(name));
  // A file that cannot be read says so itself.
  if (unknown === undefined || listed.some(({ problem }) => problem !== null)) return;
  const files = targets.map(({ file }) => file).join(', ');
  const others = there.size === 0 ? 'it has none' : `there are: ${[...there].join(', ')}`;
  throw new TapedeckError(
    'usage',
    escapeText(`Expected a server of ${files}, got \`${unknown}\`; ${others}`),
  );
}
