// How yargs is taken into a bundle: `dist` has it so, and the tests that run commands in their own process.
import { join, resolve, sep } from 'node:path';

const BUILD = resolve(import.meta.dirname, '../build');
const MODULES = `${sep}node_modules${sep}`;

const FORMATS_HELP = 'yargs.getInternalMethods().getUsageInstance().cacheHelpMessage();';

/** yargs formats no help for a command that runs without showing it, and measures plain text without long tables. */
export const yargsInside = {
  name: 'yargs-inside',
  resolveId: (name, importer) =>
    name === 'string-width' && importer?.includes(MODULES) ? '\0string-width' : null,
  load: (id) =>
    id === '\0string-width'
      ? `export { widthOf as default } from ${JSON.stringify(join(BUILD, 'inspect/view/text.js'))};`
      : null,
  transform(code, id) {
    if (!id.endsWith(join('yargs/build/lib/command.js'))) return null;
    if (!code.includes(FORMATS_HELP)) throw new Error(`${id} has no ${FORMATS_HELP}`);
    return code.replace(FORMATS_HELP, ';');
  },
};
