/** What a protocol rule is, and what is found against one. */
import type { Place } from '../../protocol/message/correlate.ts';

/** `error`: against a MUST of the specification. `warning`: against a SHOULD, or sure to hurt someone. `note`: worth a look. */
export const SEVERITIES = ['note', 'warning', 'error'] as const;

export type Severity = (typeof SEVERITIES)[number];

/** Whose fault it is. */
export type Side = 'client' | 'server';

/** The revisions of the specification, the oldest first. */
export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const;

export type Revision = (typeof REVISIONS)[number];

export type Rule = {
  severity: Severity;
  /** The rule in a sentence. */
  text: string;
  /** Where it stands in the specification (or in JSON-RPC's own). */
  url: string;
  /** The first and the last revision that has it; null where there is no bound. */
  since: Revision | null;
  until: Revision | null;
};

/** One thing against a rule. `expected` and `seen` continue the sentences "expected …" and "saw …". */
export type Finding<Id extends string = string> = {
  rule: Id;
  /** Null where it is nobody's message alone. */
  side: Side;
  /** The message; null where the session as a whole is meant. */
  place: Place | null;
  /** Number of the HTTP exchange, where one is meant. */
  http: number | null;
  expected: string;
  seen: string;
};

const SPECIFICATION = 'https://modelcontextprotocol.io/specification';

const JSON_RPC = 'https://www.jsonrpc.org/specification';

type Bounds = { since?: Revision; until?: Revision };

/** A rule of the specification. `page` begins with the revision whose text is the clearest, mostly the last that has it. */
export function mcp(severity: Severity, page: string, text: string, { since, until }: Bounds = {}): Rule {
  return { severity, text, url: `${SPECIFICATION}/${page}`, since: since ?? null, until: until ?? null };
}

/** A rule of JSON-RPC 2.0, for every revision. */
export function jsonRpc(severity: Severity, section: string, text: string): Rule {
  return { severity, text, url: `${JSON_RPC}#${section}`, since: null, until: null };
}

/** Whether a revision has the rule. Where the revision is unknown, only rules that every revision has apply. */
export function applies({ since, until }: Rule, revision: string | null): boolean {
  if (revision === null) return since === null && until === null;
  // Dates compare as text; a revision of another form is newer than all that are known.
  const known = /^\d{4}-\d\d-\d\d$/.test(revision) ? revision : '9999-99-99';
  return (since === null || known >= since) && (until === null || known <= until);
}

/** Says that a rule is broken. */
export type Report<Id extends string = string> = (
  rule: Id,
  side: Side,
  at: { place: Place | null; revision: string | null; http?: number | null },
  expected: string,
  seen: string,
) => void;
