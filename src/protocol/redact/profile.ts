/** The rules that a session is redacted with. They are stored with it, so that a replay redacts its clients in the same way. */

import { TapedeckError } from '../../errors.ts';
import { parseJsonPath } from '../json/path.ts';
import { readCustomRule } from './custom-rules.ts';
import { SHAPE_RULES } from './shapes.ts';

export type RedactionProfile = {
  /** Ids of rules that are off. */
  without: readonly string[];
  /** `id=/pattern/flags` */
  rules: readonly string[];
  /** JSON paths of values that are replaced whatever they are. */
  paths: readonly string[];
  /** `meta`: no payloads are kept at all (redactor.ts). */
  capture?: 'meta';
  /** Filters: frames for which one holds are stored as with `capture: 'meta'`, and all others as ever. */
  metaFor?: readonly string[];
};

export const PLAIN_PROFILE: RedactionProfile = { without: [], rules: [], paths: [] };

/** What either of them redacts. Of rules with one id the first counts. */
export function joinProfiles(first: RedactionProfile, second: RedactionProfile): RedactionProfile {
  const idOf = (rule: string) => rule.slice(0, rule.indexOf('='));
  const taken = new Set(first.rules.map(idOf));
  return {
    ...first,
    without: first.without.filter((id) => second.without.includes(id)),
    rules: [...first.rules, ...second.rules.filter((rule) => !taken.has(idOf(rule)))],
    paths: [...new Set([...first.paths, ...second.paths])],
  };
}

/** Rules that find a secret by its place. */
export const PLACE_RULES = [
  { id: 'secret-value', what: 'values under a name such as password, api_key, client_secret, access_token' },
  {
    id: 'http-header',
    what: 'HTTP headers that carry credentials: Authorization, cookies, API keys, Mcp-Session-Id',
  },
  { id: 'url-secret', what: 'user information and secret parameters of the URLs in HTTP heads' },
  {
    id: 'undecoded',
    what: 'bodies and events in a content coding that could not be undone, as nobody can look into them',
  },
] as const;

/** What `--redact` replaces goes by this id. */
const PATH_RULE = 'path';

export function ruleIds(): string[] {
  return [...PLACE_RULES, ...SHAPE_RULES].map(({ id }) => id);
}

/** Reads the values of the options. Throws `TapedeckError` `usage`. */
export function readProfile(
  without: readonly string[],
  rules: readonly string[],
  paths: readonly string[],
): RedactionProfile {
  const known = ruleIds();
  for (const id of without) {
    if (known.includes(id)) continue;
    throw new TapedeckError(
      'usage',
      `--no-redact-rule ${id}: expected the id of a rule, one of ${known.join(', ')}.`,
    );
  }
  const taken = new Set([...known, PATH_RULE]);
  for (const rule of rules) {
    const { id } = readCustomRule(rule);
    if (taken.has(id))
      throw new TapedeckError('usage', `--redact-rule ${rule}: there is a rule \`${id}\` already.`);
    taken.add(id);
  }
  for (const path of paths) {
    if (!parseJsonPath(path, '--redact').isWhole) continue;
    throw new TapedeckError(
      'usage',
      '--redact $: expected a path into the message; to keep no payloads at all: --capture meta.',
    );
  }
  return { without, rules, paths };
}

/** What either of them redacts. */
export function joinedProfiles(before: RedactionProfile | null, now: RedactionProfile): RedactionProfile {
  if (before === null) return now;
  const both = (name: 'rules' | 'paths') => [...new Set([...before[name], ...now[name]])];
  return {
    without: before.without.filter((id) => now.without.includes(id)),
    ...(before.capture === undefined ? {} : { capture: before.capture }),
    rules: both('rules'),
    paths: both('paths'),
    ...withMetaFor([...(before.metaFor ?? []), ...(now.metaFor ?? [])]),
  };
}

/** `metaFor` of a profile, as it stands there. */
export function withMetaFor(filters: readonly string[]): Pick<RedactionProfile, 'metaFor'> {
  return filters.length === 0 ? {} : { metaFor: [...new Set(filters)] };
}
