/** `tapedeck` alone, on a terminal: what there is to record on this machine, what is recorded already, and one question. */

import { existsSync, statSync } from 'node:fs';
import { type ListedConfig, listConfig } from '../../clients/list.ts';
import { ALL_TARGETS, allTargets } from '../../clients/targets.ts';
import { TapedeckError } from '../../errors.ts';
import { formatCount, formatSize, formatTime } from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';
import { openForReading } from '../../store/file/open.ts';
import { isEngineUrl, storeName } from '../../store/file/path.ts';
import { troubleOf } from '../../store/file/trouble.ts';
import { typedName, VERSION } from '../../version.ts';
import { isYes } from '../ask.ts';
import { asTyped, helpWidth, type Io, storeOf } from '../io.ts';
import { thisKeeper, thisMachine } from '../machine.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { wrapFiles } from '../wrap/files.ts';
import { configLines } from '../wrap/wrap.ts';
import { hanging } from './page.ts';

/** Nothing is changed unless the question is answered with yes. */
export async function showOverview(io: Io): Promise<void> {
  const name = typedName(io.env);
  const keeper = thisKeeper(io);
  const known = keeper.all().map(({ file }) => file);
  const configs = allTargets(thisMachine(io), known).map((target) => listConfig(target, keeper));
  const unwrapped = unwrappedIn(configs);
  await writeOutput(
    io,
    withLineEnds([
      `tapedeck ${VERSION} records the traffic between MCP clients and their servers.`,
      ...['', 'Clients found:'],
      ...configLines(io, configs).map((line) => `  ${line}`),
      ...['', `Recordings: ${recordings(io)}`],
      `Viewer:     ${name} ui`,
      `To try it:  ${name} demo`,
      `Help:       ${name} --help`,
      '',
      ...questionLines(io, unwrapped),
    ]),
  );
  if (unwrapped.length === 0 || !(await isYes(io, 'Wrap all of them? [y/N] '))) return;
  await wrapFiles(io, ALL_TARGETS, [], { isDryRun: false, db: null, withMcp: false });
}

type Unwrapped = { transport: 'stdio' | 'http' };

function unwrappedIn(configs: readonly ListedConfig[]): Unwrapped[] {
  const servers = configs.flatMap((config) => config.servers);
  return servers.flatMap(({ transport, isWrapped }) =>
    isWrapped || transport === null ? [] : [{ transport }],
  );
}

function questionLines(io: Io, unwrapped: readonly Unwrapped[]): string[] {
  const count = unwrapped.length;
  const urls = unwrapped.filter(({ transport }) => transport === 'http').length;
  if (count === 0) return [];
  const about = `${formatCount(count, 'server')} not wrapped. A wrapped server is started through tapedeck, which records what passes; \`tapedeck unwrap all\` puts the configs back, byte for byte.`;
  return [
    ...hanging('', asTyped(io, about), helpWidth(io)),
    ...(urls === 0
      ? []
      : [
          `Wrapped servers by URL (${urls} of them) can be reached only while this runs:`,
          `  ${typedName(io.env)} record --wrapped`,
        ]),
  ];
}

/** The store and what is in it, without bringing it up to date. */
function recordings(io: Io): string {
  const file = storeOf(io, undefined);
  const path = escapeText(storeName(file));
  if (isEngineUrl(file)) return `on the engine ${path}`;
  if (!existsSync(file)) return `none yet; they will be in ${path}`;
  try {
    const store = openForReading(file);
    const { count, newest } = store
      .prepare<[], { count: number; newest: number | null }>(
        'SELECT count(*) AS count, max(started_at) AS newest FROM session',
      )
      .get() ?? { count: 0, newest: null };
    store.close();
    const last = newest === null ? '' : `, the newest of ${formatTime(newest)}`;
    return `${path} (${formatCount(count, 'session')}${last}; ${formatSize(statSync(file).size)})`;
  } catch (error) {
    return `${path}: ${error instanceof TapedeckError ? asTyped(io, error.message) : troubleOf(error).text}`;
  }
}
