/** What the configuration files say to tests: what is redacted, and which arguments do not count. */

import { readConfiguration } from './file.ts';
import { filesFor } from './location.ts';

type ProjectSettings = { redactRule: string[]; redact: string[]; ignore: string[]; ignoreTool: string[] };

/**
 * The project's file is the nearest from this folder upward. From the user's own file comes only what else is redacted: a test must not pass on one machine alone. Throws `TapedeckError` for a file that
 * is wrong.
 */
export function projectSettings(folder: string): ProjectSettings {
  const files = filesFor(folder, process.env);
  const all = files.flatMap((file) =>
    readConfiguration(file, process.env).map((setting) => ({ ...setting, isOwn: file.isOwn })),
  );
  const listed = (name: string, own: boolean) =>
    all.flatMap((setting) => (setting.name === name && (own || !setting.isOwn) ? setting.values : []));
  return {
    redactRule: listed('redact.rules', true),
    redact: listed('redact.paths', true),
    ignore: listed('ignore', false),
    ignoreTool: listed('ignoreTool', false),
  };
}
