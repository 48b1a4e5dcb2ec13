/** Skills (the extension `io.modelcontextprotocol/skills`, SEP-2640): declared, well-formed, and what they say they are. */

import { createHash } from 'node:crypto';
import { BoundedMap } from '../../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import {
  isSkillFile,
  type ReadFile,
  readFilesOf,
  SKILL_METHODS,
  SKILLS_EXTENSION,
  type SkillFile,
  skillEntriesOf,
  skillFilesOf,
} from '../../../protocol/message/skills.ts';
import {
  type CheckedMessage,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  resultOf,
  shown,
} from '../checked-message.ts';
import type { Report } from '../rules.ts';

const MAX_FILES = 512;

const MAX_BYTES = 16 * 1024 * 1024;

/** A file as the newest entry has it, and the number of that entry's frame. */
type Listed = SkillFile & { seq: number };

/** A read that did not bring what its entry says. */
type Mismatch = { seen: CheckedMessage; listed: Listed; digest: string; size: number };

export function inspectSkills(report: Report): Inspector {
  /** What the server declared; undefined before it declared anything, null where that left skills out. */
  let declared: JsonObject | null | undefined;
  const files = new BoundedMap<string, Listed>(MAX_REMEMBERED);
  const mismatches = new BoundedMap<string, Mismatch>(MAX_REMEMBERED, tell);

  function message(seen: CheckedMessage): void {
    if (seen.message.kind === 'request' && seen.side === 'client') asked(seen, methodOf(seen) ?? '');
    const result = resultOf(seen);
    const method = seen.asked?.method;
    if (result === null || method === undefined) return;
    if (method === 'initialize' || method === 'server/discover') learn(seen, result['capabilities']);
    if (SKILL_METHODS.some((one) => one === method)) listed(seen, skillEntriesOf(result));
    if (method === 'resources/read') for (const file of readFilesOf(result)) read(seen, file);
  }

  function learn(seen: CheckedMessage, capabilities: unknown): void {
    if (!isObject(capabilities)) return;
    const { extensions, resources } = capabilities;
    const skills = isObject(extensions) ? extensions[SKILLS_EXTENSION] : undefined;
    declared = isObject(skills) ? skills : null;
    if (declared !== null && resources === undefined)
      report('skill-undeclared', 'server', seen, '`resources` beside the skills', 'none');
  }

  function asked(seen: CheckedMessage, method: string): void {
    const isDirectory = method === 'resources/directory/read';
    if (declared === undefined || (!isDirectory && !SKILL_METHODS.some((one) => one === method))) return;
    const isFine = isDirectory ? declared?.['directoryRead'] === true : declared !== null;
    const expected = isDirectory ? '`directoryRead`' : `\`${SKILLS_EXTENSION}\``;
    if (!isFine)
      report(
        'skill-undeclared',
        'client',
        seen,
        `the server to have declared ${expected}`,
        `${method} without it`,
      );
  }

  function listed(seen: CheckedMessage, entries: readonly unknown[]): void {
    for (const entry of entries) {
      const fault = faultOf(entry);
      if (fault !== null)
        report('skill-shape', 'server', seen, `${fault.expected} in ${nameOf(entry)}`, fault.seen);
      else limits(seen, entry);
      for (const file of skillFilesOf(entry)) {
        files.set(file.uri, { ...file, seq: seen.place.seq });
        // It was updated between its entry and the read, as it may be.
        if (mismatches.get(file.uri)?.digest === file.digest) mismatches.delete(file.uri);
      }
    }
  }

  function limits(seen: CheckedMessage, entry: unknown): void {
    const all = skillFilesOf(entry);
    const bytes = all.reduce((sum, { size }) => sum + size, 0);
    if (all.length > MAX_FILES || bytes > MAX_BYTES)
      report(
        'skill-limits',
        'server',
        seen,
        `at most ${MAX_FILES} files and ${MAX_BYTES} bytes in ${nameOf(entry)}`,
        `${all.length} files, ${bytes} bytes`,
      );
  }

  /** The bytes are those of the recording: what redaction has replaced cannot be judged. */
  function read(seen: CheckedMessage, { uri, bytes, isRedacted }: ReadFile): void {
    const file = files.get(uri);
    if (file === undefined) return;
    const digest = skillDigest(bytes);
    const isSame = digest === file.digest && bytes.length === file.size;
    if (!isSame && !isRedacted) mismatches.set(uri, { seen, listed: file, digest, size: bytes.length });
  }

  function tell({ seen, listed, digest, size }: Mismatch): void {
    const what = (one: { size: number; digest: string }) =>
      `${one.size} bytes of ${one.digest.slice(0, 19)}…`;
    const expected = `${shown(listed.uri)} as in #${listed.seq}: ${what(listed)}`;
    report('skill-digest', 'server', seen, expected, what({ size, digest }));
  }

  function end(): void {
    for (const one of mismatches.values()) tell(one);
  }

  return { message, end };
}

/** As entries have it. */
function skillDigest(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

function nameOf(entry: unknown): string {
  return isObject(entry) && typeof entry['uri'] === 'string' ? shown(entry['uri']) : 'a skill';
}

type Fault = { expected: string; seen: string };

/** What an entry lacks; the first of it. */
function faultOf(entry: unknown): Fault | null {
  if (!isObject(entry)) return { expected: 'an object', seen: shown(entry) };
  const { uri, frontmatter, resources } = entry;
  const [, root = '', folder = ''] = typeof uri === 'string' ? (FILE_OF_SKILL.exec(uri) ?? []) : [];
  if (root === '') return { expected: 'a URI that ends with /SKILL.md as `uri`', seen: shown(uri) };
  if (!isObject(frontmatter)) return { expected: 'an object as `frontmatter`', seen: shown(frontmatter) };
  for (const name of ['name', 'description'])
    if (typeof frontmatter[name] !== 'string')
      return { expected: `a string as \`frontmatter.${name}\``, seen: shown(frontmatter[name]) };
  if (frontmatter['name'] !== folder)
    return { expected: 'the name of its folder as `frontmatter.name`', seen: shown(frontmatter['name']) };
  if (resources === 'dynamic') return null;
  if (!Array.isArray(resources))
    return { expected: 'a list or "dynamic" as `resources`', seen: shown(resources) };
  return faultOfFiles(resources, String(uri), root);
}

/** The folder's own URI, and its name. */
const FILE_OF_SKILL = /^(.*?([^/]+))\/SKILL\.md$/s;

function faultOfFiles(resources: readonly unknown[], uri: string, root: string): Fault | null {
  const uris = new Set<string>();
  for (const [i, file] of resources.entries()) {
    if (!isSkillFile(file))
      return { expected: `a \`uri\`, a \`digest\` and a \`size\` as \`resources[${i}]\``, seen: shown(file) };
    if (!file.uri.startsWith(`${root}/`))
      return { expected: `a file of this skill as \`resources[${i}]\``, seen: shown(file.uri) };
    if (uris.has(file.uri)) return { expected: 'each file once', seen: `${shown(file.uri)} twice` };
    uris.add(file.uri);
  }
  return uris.has(uri) ? null : { expected: 'its own SKILL.md among `resources`', seen: 'none' };
}
