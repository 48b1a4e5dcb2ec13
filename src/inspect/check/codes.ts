/** Error codes. JSON-RPC 2.0, 5.1; specification 2026-07-28, basic, "Error Codes". */
import type { Revision } from './rule.ts';
import type { Report } from './rules.ts';
import type { Inspector, Seen } from './seen.ts';

const JSON_RPC: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602, -32603]);

/** Codes that some revisions define: what they mean, and in which. */
const DEFINED: ReadonlyMap<
  number,
  readonly [meaning: string, since: Revision | null, until: Revision | null]
> = new Map([
  [-32002, ['resource not found', null, '2025-11-25']],
  [-32042, ['URL elicitation required', '2025-11-25', '2025-11-25']],
  [-32020, ['header mismatch', '2026-07-28', null]],
  [-32021, ['missing client capability', '2026-07-28', null]],
  [-32022, ['unsupported protocol version', '2026-07-28', null]],
]);

export function inspectCodes(report: Report): Inspector {
  function message(seen: Seen): void {
    if (seen.message.kind !== 'error' || seen.message.code === null) return;
    const { code } = seen.message;
    if (JSON_RPC.has(code)) return;
    const defined = DEFINED.get(code);
    // A probe for the modern era is refused with its code, before any version is agreed.
    if (defined !== undefined) {
      revision(seen, code, defined);
      return;
    }
    if (code >= -32768 && code <= -32100)
      report(
        'code-reserved',
        seen.side,
        seen,
        'a code that JSON-RPC defines, or one outside its range',
        String(code),
      );
    else if (code >= -32099 && code <= -32020)
      report(
        'code-invented',
        seen.side,
        seen,
        '-32020, -32021 or -32022, or a code outside -32768 to -32000',
        String(code),
      );
    else if (code >= -32019 && code <= -32000)
      report('code-legacy', seen.side, seen, 'a code outside -32768 to -32000', String(code));
  }

  function revision(
    seen: Seen,
    code: number,
    [meaning, since, until]: readonly [string, Revision | null, Revision | null],
  ): void {
    const revision = seen.asked?.revision ?? seen.revision;
    if (revision === null) return;
    const isProbe =
      seen.asked === null || seen.asked.method === 'initialize' || seen.asked.method === 'server/discover';
    const isEarly = since !== null && revision < since && !isProbe;
    const isLate = until !== null && revision > until;
    if (isEarly || isLate)
      report('code-revision', seen.side, seen, `a code of ${revision}`, `${code} (${meaning})`);
  }

  return { message };
}
