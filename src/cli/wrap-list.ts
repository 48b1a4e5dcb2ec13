/** `tapedeck wrap --list`: the clients found, their servers, and which are wrapped. */
import { goneFiles, type ListedConfig, type ListedServer, listConfig } from '../clients/list.ts';
import { allTargets, findTargets } from '../clients/targets.ts';
import { lookOf } from '../inspect/look.ts';
import { clip, pad, widthOf } from '../inspect/text.ts';
import { escapeText } from '../protocol/escape.ts';
import { say } from './listening.ts';
import { thisKeeper, thisMachine } from './machine.ts';
import { withLineEnds, writeOutput } from './output.ts';
import { labelOf, NO_CLIENT, titleOf } from './wrap-report.ts';

/** `word`: a client, a file or `all`; undefined for all. */
export async function printList(word: string | undefined, json: boolean): Promise<void> {
  const keeper = thisKeeper();
  const machine = thisMachine();
  const known = keeper.all().map(({ file }) => file);
  const targets = word === undefined ? allTargets(machine, known) : findTargets(word, machine, known);
  const configs = targets.map((target) => listConfig(target, keeper));
  await writeOutput(withLineEnds(json ? configs.flatMap(jsonLines) : textLines(configs)));
  for (const { file } of goneFiles(keeper))
    say(escapeText(`${file} was wrapped, and is gone. Its copy: ${keeper.folderOf(file)}`));
}

function jsonLines({ target, servers, problem }: ListedConfig): string[] {
  const { client, file, scope } = target;
  const config = { client: client?.id ?? null, file, scope };
  if (servers.length === 0) return [JSON.stringify({ ...config, server: null, problem })];
  return servers.map(({ name, path, transport, isWrapped, isDisabled, problem: trouble }) =>
    JSON.stringify({
      ...config,
      server: name,
      path,
      transport,
      wrapped: isWrapped,
      disabled: isDisabled,
      problem: trouble,
    }),
  );
}

function textLines(configs: readonly ListedConfig[]): string[] {
  if (configs.length === 0) return [NO_CLIENT];
  const { width } = lookOf(process.stdout);
  const names = configs.flatMap(({ servers }) => servers.map((server) => escapeText(labelOf(server))));
  const column = Math.min(Math.max(0, ...names.map(widthOf)), Math.floor(width / 2));
  return configs.flatMap(({ target, servers, problem }) => [
    escapeText(titleOf(target)),
    ...(problem === null ? [] : [`  ${escapeText(problem)}`]),
    ...(problem === null && servers.length === 0 ? ['  no servers'] : []),
    ...servers.map((server) => serverLine(server, column)),
  ]);
}

function serverLine(server: ListedServer, column: number): string {
  const { transport, isWrapped, isDisabled, problem } = server;
  const name = pad(clip(escapeText(labelOf(server)), column), column);
  const state = isWrapped ? 'wrapped' : transport === null ? 'cannot be wrapped' : 'not wrapped';
  const notes = [...(isDisabled ? ['disabled'] : []), ...(problem === null ? [] : [escapeText(problem)])];
  return `  ${name}  ${(transport ?? '').padEnd(5)}  ${[state, ...notes].join('; ')}`;
}
