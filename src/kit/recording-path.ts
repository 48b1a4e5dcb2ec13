/** Finds the recording of a test by the test's own names. */

import { createHash } from 'node:crypto';
import { basename, dirname, extname, join } from 'node:path';

const EXTENSION = '.ndjson';

/** File systems take 255 bytes. */
const MAX_NAME_BYTES = 200;

/**
 * Returns the path of a test's recording: `__recordings__/<test file>/<names>.ndjson` beside the test file, whose name
 * stands there without its extension.
 *
 * `names` are those of its suites, from the outermost, and its own. Each stands in lower case, with one hyphen for every run
 * of characters that are neither letters nor digits; points separate them. A hash stands for a name without letters and
 * digits, and for everything beyond 200 bytes. A name that Windows keeps for a device, such as `con`, ends in `_`.
 *
 * @param testFile The absolute path of the test file.
 */
export function recordingPath(testFile: string, ...names: readonly string[]): string {
  return join(recordingFolder(testFile), recordingName(names));
}

/** The folder of all recordings of a test file. */
export function recordingFolder(testFile: string): string {
  // With the extension, node:test would take the folder for a test.
  const name = basename(testFile, extname(testFile));
  return join(dirname(testFile), '__recordings__', forEverySystem(name));
}

/** The file name alone. */
export function recordingName(names: readonly string[]): string {
  const name = forEverySystem(names.map((one) => slugOf(one) || hashOf(one)).join('.'));
  return (Buffer.byteLength(name) <= MAX_NAME_BYTES ? name : cut(name, names)) + EXTENSION;
}

/** Windows keeps these names for devices, whatever follows the first point; `¹` is one of its digits. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?=\.|$)/i;

/** No slug has a `_`, so no other test gets the same name. At the end Windows drops points and spaces. */
function forEverySystem(name: string): string {
  return name.replace(DEVICE, '$&_').replace(/[. ]+$/, (end) => '_'.repeat(end.length));
}

function slugOf(name: string): string {
  const lower = name.normalize('NFC').toLowerCase();
  return lower.replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, '-').replaceAll(/^-|-$/g, '');
}

/** Whole characters, so that the name stays text. */
function cut(name: string, names: readonly string[]): string {
  const bytes = Buffer.from(name).subarray(0, MAX_NAME_BYTES);
  const text = new TextDecoder().decode(bytes).replace(/\ufffd+$/, '');
  return `${text}-${hashOf(names.join('\n'))}`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}
