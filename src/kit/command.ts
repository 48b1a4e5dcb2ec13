/** `tapedeck replay` as a command line that holds on this machine, wherever it is spawned. */
import { fileURLToPath } from 'node:url';
import { storePath } from '../store/location.ts';
import type { ServerCommand } from './deck.ts';
import type { Settings } from './settings.ts';
import { isTextRecording } from './source.ts';

const BIN = fileURLToPath(new URL('../../bin/tapedeck.js', import.meta.url));

/** `session` is the recording's own id, if it is in the store; `calls` is the file that the process tells its calls in. */
export function replayCommand(settings: Settings, session: string | null, calls: string): ServerCommand {
  const { recording, db, mode, upstream, ignore, ignoreTool, repeat, speed } = settings;
  const asked = mode === 'none' ? null : upstream;
  const source = isTextRecording(recording) ? [recording] : [session ?? recording, '--db', storePath(db)];
  const args = [
    ...[BIN, 'replay', ...source, '--mode', mode],
    ...(settings.keepsFailures && asked !== null ? ['--record-failures'] : []),
    ...(asked?.options ?? []),
    ...ignore.flatMap((path) => ['--ignore', path]),
    ...ignoreTool.flatMap((path) => ['--ignore-tool', path]),
    ...['--repeat', repeat, '--speed', String(speed), '--calls', calls],
    ...(asked?.words ?? []),
  ];
  return { command: process.execPath, args, env: { ...asked?.env } };
}
