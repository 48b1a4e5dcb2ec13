/** How a miss names what would change it: in the words of the place where its reader can set it. */

import { jsonPathText } from '../../protocol/json/path.ts';
import { shellQuoted } from '../../protocol/text.ts';
import type { CallTopic } from '../recording/topics.ts';

export type HintWords = {
  ignore(path: string): string;
  /** `path`: with the tool before it. */
  ignoreTool(path: string): string;
  repeat(how: 'last' | 'cycle'): string;
  /** What lets a live server answer. */
  askLive: string;
  /** Stands between options that go together. */
  and: string;
};

export const COMMAND_LINE_WORDS: HintWords = {
  ignore: (path) => `--ignore ${shellQuoted(path)}`,
  ignoreTool: (path) => `--ignore-tool ${shellQuoted(path)}`,
  repeat: (how) => `--repeat ${how}`,
  askLive: '--mode new_episodes',
  and: ' ',
};

/** As a test author writes options of `openRecording`. */
export const TEST_KIT_WORDS: HintWords = {
  ignore: (path) => `ignore: [${quoted(path)}]`,
  ignoreTool: (path) => `ignoreTool: [${quoted(path)}]`,
  repeat: (how) => `repeat: '${how}'`,
  askLive: 'TAPEDECK_MODE=new_episodes',
  and: ', ',
};

function quoted(text: string): string {
  return text.includes("'") ? JSON.stringify(text) : `'${text.replaceAll('\\', '\\\\')}'`;
}

/** Steps into params; null stands for every element of an array. */
export type Path = readonly (string | number | null)[];

export function ignoreHint({ method, target }: CallTopic, path: Path, words: HintWords): string {
  const isOfTool = method === 'tools/call' && path[0] === 'arguments';
  // A name with `:$` in it could not be separated from the path.
  if (isOfTool && target !== null && target !== '' && !target.includes(':$'))
    return words.ignoreTool(`${target}:${jsonPathText(path.slice(1))}`);
  return words.ignore(jsonPathText(path));
}
