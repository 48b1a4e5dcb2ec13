import { existsSync } from 'node:fs';
import { readConfiguration, type Setting } from '../../config/file.ts';
import {
  type ConfigurationFile,
  findConfigurationFiles,
  ownConfigPath,
  PROJECT_FILE,
} from '../../config/location.ts';
import { escapeText } from '../../protocol/text.ts';
import { storeName } from '../../store/file/path.ts';
import { type Command, type Io, storeOf } from '../io.ts';
import { JSON_OPTION } from '../options.ts';
import { withLineEnds, writeOutput } from '../output.ts';

type Options = { json: boolean; config: string | undefined; 'no-config': boolean | undefined };

type Row = { key: string; value: string; from: string };

export const configCommand: Command<Options> = {
  command: 'config',
  describe: 'Show what is configured, and in which file',
  builder: (args) =>
    args
      .usage(
        `$0 config\n\nConfiguration is read from your own file and from the nearest ${PROJECT_FILE} of the working directory and the folders above it, up to the repository’s or your home. The command line counts before the environment, that before the project’s file, that before your own; lists add up.`,
      )
      .options({ json: JSON_OPTION })
      .example('$0 config', 'From the folder in question')
      .example('$0 config --config other.json', 'Check a file') as never,
  async run({ json, config, 'no-config': none }, io) {
    const words = [...(none ? ['--no-config'] : []), ...(config === undefined ? [] : ['--config', config])];
    const files = findConfigurationFiles(words, io);
    const settings = files.flatMap((file) => readConfiguration(file, io.env));
    const rows = [storeRow(io, settings), ...rowsOf(settings)];
    const lines = json
      ? rows.map((row) => JSON.stringify(row))
      : [...table(rows), '', ...fileLines(io, files)];
    await writeOutput(io, withLineEnds(lines));
  },
};

function storeRow(io: Io, settings: readonly Setting[]): Row {
  const set = settings.findLast(({ name }) => name === 'db');
  if (io.env['TAPEDECK_DB'])
    return { key: 'db', value: storeName(storeOf(io, undefined)), from: 'TAPEDECK_DB' };
  if (set === undefined) return { key: 'db', value: storeOf(io, undefined), from: 'default' };
  return { key: 'db', value: storeName(storeOf(io, set.values[0])), from: set.place };
}

/** Of a single value the last one counts. */
function rowsOf(settings: readonly Setting[]): Row[] {
  const counted = settings.filter(
    (setting, i) =>
      setting.name !== 'db' &&
      (setting.key.kind === 'list' || !settings.slice(i + 1).some(({ name }) => name === setting.name)),
  );
  return counted.flatMap(({ name, key, values, place }) => {
    const shown = key.kind === 'flag' ? [String(values.length > 0)] : values;
    return shown.map((value) => ({ key: name, value, from: place }));
  });
}

function* table(rows: readonly Row[]): Generator<string> {
  const width = (cells: readonly string[]) => Math.max(...cells.map((cell) => cell.length));
  const keys = width(rows.map(({ key }) => key));
  const values = width(rows.map(({ value }) => escapeText(value)));
  for (const { key, value, from } of rows)
    yield `${key.padEnd(keys)}  ${escapeText(value).padEnd(values)}  ${escapeText(from)}`;
}

function* fileLines({ env }: Io, files: readonly ConfigurationFile[]): Generator<string> {
  for (const { path, isOwn } of files)
    yield `read: ${escapeText(path)} (${isOwn ? 'yours' : 'the project’s'})`;
  const own = ownConfigPath(env);
  if (!existsSync(own)) yield `yours would be: ${escapeText(own)}`;
}
