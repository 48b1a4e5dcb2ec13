// Where the tables stand in docs/clients.md: between two headings.
const BEGIN = '## What they do\n';
const END = '\n## How it was found\n';

/** The page with these tables in place of those that it has. Throws where it has no place for them. */
export function withTables(page, tables) {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error('docs/clients.md has no place for its tables');
  return `${page.slice(0, begin + BEGIN.length)}\n${tables}\n${page.slice(end)}`;
}
