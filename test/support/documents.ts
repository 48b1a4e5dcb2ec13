/** README and docs, taken apart: their blocks, the commands in them, their headings and links. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './tapedeck.ts';

/** Paths from the root, the README first. */
export const PAGES: readonly string[] = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  'CONTRIBUTING.md',
  'examples/README.md',
  'recordings/README.md',
  'SECURITY.md',
  'plugin/skills/record-mcp-server/SKILL.md',
];

export function textOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

export type Block = { language: string; text: string };

/** The fenced blocks of a page, in order. `language` is empty where the fence names none. */
export const blocksOf = (page: string): Block[] => blocksIn(textOf(page));

export function blocksIn(text: string): Block[] {
  const fences = text.matchAll(/^```(\w*)\n(.*?)^```$/gms);
  return [...fences].map(([, language = '', text = '']) => ({ language, text }));
}

export type ShownCommand = { command: string; shown: string };

/** Each command behind a `$`, with the output that stands below it. */
export function shownCommands(page: string): ShownCommand[] {
  const sessions = blocksOf(page).flatMap(({ text }) => text.split(/^\$ /m).slice(1));
  return sessions.map((session) => {
    const [command = '', ...shown] = session.split('\n');
    return { command, shown: shown.join('\n').trimEnd() };
  });
}

/** Command lines that stand in `sh` blocks, and in the text between backquotes. */
export function writtenCommands(page: string): string[] {
  const scripts = blocksOf(page).filter(({ language }) => language === 'sh');
  const lines = scripts.flatMap(({ text }) => text.split('\n').map((line) => line.replace(/\s+#.*/, '')));
  const prose = textOf(page).replaceAll(/^```.*?^```$/gms, '');
  const inline = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
  return [...lines, ...inline, ...shownCommands(page).map(({ command }) => command)];
}

/** What a link behind `#` may name, as GitHub makes it of headings. */
export function anchorsOf(page: string): string[] {
  const prose = textOf(page).replaceAll(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** Targets of the links to files and headings of the repository. */
export function linksOf(page: string): string[] {
  const links = [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  return links.filter((link) => !/^https?:/.test(link));
}

/** The part of a page below a heading, up to the next one of the same level or above. */
export function sectionOf(page: string, heading: string): string {
  const lines = textOf(page).split('\n');
  const first = lines.indexOf(heading);
  if (first === -1) throw new Error(`${page} has no heading: ${heading}`);
  const level = /^#+/.exec(heading)?.[0].length ?? 0;
  const rest = lines.slice(first + 1);
  const end = rest.findIndex((line) => new RegExp(`^#{1,${level}} `).test(line));
  return rest.slice(0, end === -1 ? rest.length : end).join('\n');
}
