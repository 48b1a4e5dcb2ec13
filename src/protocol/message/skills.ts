/**
 * Skills: folders of files with instructions, which a server lists with the digest and size of each file, and serves as resources
 * (the extension `io.modelcontextprotocol/skills`, SEP-2640). A host must hold each file that it reads to both. Recorded values may
 * be anything; what is not as the extension has it is left out here, and told by the check.
 */

import { isObject, type JsonObject } from '../json/read.ts';

export const SKILLS_EXTENSION = 'io.modelcontextprotocol/skills';

/** `digest`: SHA-256, the only algorithm, as `sha256:` and lower-case hexadecimal. `size` in bytes. */
export type SkillFile = { uri: string; digest: string; size: number };

const SKILL_DIGEST = /^sha256:[0-9a-f]{64}$/;

/** The methods whose results hold entries of skills. */
export const SKILL_METHODS = ['skills/list', 'skills/get'] as const;

/** The entries of such a result, as they stand there. */
export function skillEntriesOf({ skills, skill }: JsonObject): readonly unknown[] {
  if (Array.isArray(skills)) return skills;
  return skill === undefined ? [] : [skill];
}

/** The files of an entry that can be held to their digest; none of a skill whose files are `"dynamic"`. */
export function skillFilesOf(entry: unknown): SkillFile[] {
  const list = isObject(entry) && Array.isArray(entry['resources']) ? entry['resources'] : [];
  return list.filter(isSkillFile);
}

export function isSkillFile(value: unknown): value is SkillFile {
  if (!isObject(value)) return false;
  const { uri, digest, size } = value;
  const isDigest = typeof digest === 'string' && SKILL_DIGEST.test(digest);
  return typeof uri === 'string' && isDigest && Number.isSafeInteger(size) && Number(size) >= 0;
}

/** What a `resources/read` brought. `isRedacted`: a secret in it may have been replaced. */
export type ReadFile = { uri: string; bytes: Buffer; isRedacted: boolean };

/** The contents of the answer to a `resources/read`: text as UTF-8, and what came in base64 as it is. */
export function readFilesOf({ contents }: JsonObject): ReadFile[] {
  return (Array.isArray(contents) ? contents : []).flatMap((one): ReadFile[] => {
    if (!isObject(one) || typeof one['uri'] !== 'string') return [];
    const { uri, text, blob } = one;
    if (typeof text === 'string') return [{ uri, bytes: Buffer.from(text), isRedacted: hasPlace(text) }];
    if (typeof blob !== 'string') return [];
    return [{ uri, bytes: Buffer.from(blob, 'base64'), isRedacted: hasPlace(blob) }];
  });
}

function hasPlace(text: string): boolean {
  return text.includes('[redacted:');
}
