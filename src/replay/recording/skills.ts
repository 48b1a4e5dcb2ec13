/** What redaction does to the skills of a recording: a host holds each file to its digest, and would refuse the replayed one. */

import { createHash } from 'node:crypto';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { readFilesOf, SKILL_METHODS, skillEntriesOf, skillFilesOf } from '../../protocol/message/skills.ts';
import type { Recording } from './recording.ts';

/** The URIs of the files of skills that redaction changed, in the order in which they were read first. */
export function redactedSkillFiles({ resultsOf, load }: Pick<Recording, 'resultsOf' | 'load'>): string[] {
  const digests = new Map<string, Set<string>>();
  for (const place of SKILL_METHODS.flatMap((method) => resultsOf(method)))
    for (const { uri, digest } of skillEntriesOf(resultAt(place, load)).flatMap(skillFilesOf))
      digests.set(uri, (digests.get(uri) ?? new Set()).add(digest));
  if (digests.size === 0) return [];
  const changed = new Set<string>();
  for (const place of resultsOf('resources/read'))
    for (const { uri, bytes, isRedacted } of readFilesOf(resultAt(place, load))) {
      const listed = isRedacted ? digests.get(uri) : undefined;
      const digest = () => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
      if (listed !== undefined && !listed.has(digest())) changed.add(uri);
    }
  return [...changed];
}

/** What cannot be read holds nothing. */
function resultAt(place: Place, load: Recording['load']): JsonObject {
  try {
    const message: unknown = JSON.parse(load(place).toString());
    return isObject(message) && isObject(message['result']) ? message['result'] : {};
  } catch {
    return {};
  }
}
