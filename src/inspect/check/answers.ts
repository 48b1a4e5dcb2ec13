/** Error codes. JSON-RPC 2.0, 5.1; specification 2026-07-28, basic, "Error Codes". */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import { type CheckedMessage, type Inspector, methodOf, resultOf, shown } from './checked-message.ts';
import type { Report, Revision } from './rules.ts';

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
  function message(seen: CheckedMessage): void {
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
    seen: CheckedMessage,
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

/** Keys of `_meta`. Specification, basic, "_meta": the rule about reserved prefixes changed with 2025-11-25. */

const LABEL = '[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?';

const PREFIX = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);

/** The name may be empty where there is a prefix. */
const NAME = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$/;

/** The keys that the specification itself defines, without the prefix `io.modelcontextprotocol/`. */
const META_DEFINED = new Set([
  'protocolVersion',
  'clientCapabilities',
  'clientInfo',
  'logLevel',
  'subscriptionId',
  'serverInfo',
  'related-task',
  'model-immediate-response',
]);

const OWN_PREFIX = 'io.modelcontextprotocol';

/** Reserved too, for extensions: for skills (SEP-2640). */
const EXTENSION_PREFIXES = new Set(['io.modelcontextprotocol.skills']);

const REQUIRED = ['protocolVersion', 'clientCapabilities'];

export function inspectMeta(report: Report): Inspector {
  function message(seen: CheckedMessage): void {
    const holder = seen.params ?? resultOf(seen);
    const meta = holder?.['_meta'];
    if (meta !== undefined && !isObject(meta)) report('meta-type', seen.side, seen, 'an object', shown(meta));
    if (isObject(meta)) for (const key of Object.keys(meta)) checkKey(seen, key);
    required(seen, isObject(meta) ? meta : {});
  }

  function checkKey(seen: CheckedMessage, key: string): void {
    const slash = key.indexOf('/');
    const prefix = slash < 0 ? null : key.slice(0, slash);
    const name = key.slice(slash + 1);
    const isGood = (prefix === null ? name !== '' : PREFIX.test(prefix)) && NAME.test(name);
    if (!isGood) {
      report(
        'meta-key',
        seen.side,
        seen,
        'a name of letters, digits, `-`, `_` and `.`, or a prefix, `/` and a name',
        shown(key),
      );
      return;
    }
    if (prefix === null || (prefix === OWN_PREFIX && META_DEFINED.has(name))) return;
    if (EXTENSION_PREFIXES.has(prefix)) return;
    if (isReserved(prefix, seen.revision ?? ''))
      report('meta-reserved', seen.side, seen, 'a prefix of its own', shown(key));
  }

  /** `ext` and `ui` belong to extensions of MCP itself. */
  function isReserved(prefix: string, revision: string): boolean {
    const labels = prefix.split('.');
    if (revision >= '2025-11-25') return isOurs(labels[1]) && prefix !== OWN_PREFIX;
    return labels.some((label, i) => isOurs(label) && i < labels.length - 1);
  }

  function required(seen: CheckedMessage, meta: JsonObject): void {
    const isRequest = seen.message.kind === 'request' && seen.side === 'client';
    if (!isRequest || methodOf(seen) === 'initialize') return;
    for (const name of REQUIRED) {
      const key = `${OWN_PREFIX}/${name}`;
      if (seen.value !== null && meta[key] === undefined)
        report('meta-missing', seen.side, seen, `\`${key}\``, 'none');
    }
  }

  return { message };
}

function isOurs(label: string | undefined): boolean {
  return label === 'modelcontextprotocol' || label === 'mcp';
}
