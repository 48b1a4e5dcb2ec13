/** Keys of `_meta`. Specification, basic, "_meta": the rule about reserved prefixes changed with 2025-11-25. */
import type { Report } from './rules.ts';
import { type Inspector, isObject, type Json, methodOf, resultOf, type Seen, shown } from './seen.ts';

const LABEL = '[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?';
const PREFIX = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
/** The name may be empty where there is a prefix. */
const NAME = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$/;

/** The keys that the specification itself defines, without the prefix `io.modelcontextprotocol/`. */
const DEFINED = new Set([
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
const REQUIRED = ['protocolVersion', 'clientCapabilities'];

export function inspectMeta(report: Report): Inspector {
  function message(seen: Seen): void {
    const holder = seen.params ?? resultOf(seen);
    const meta = holder?.['_meta'];
    if (meta !== undefined && !isObject(meta)) report('meta-type', seen.side, seen, 'an object', shown(meta));
    if (isObject(meta)) for (const key of Object.keys(meta)) checkKey(seen, key);
    required(seen, isObject(meta) ? meta : {});
  }

  function checkKey(seen: Seen, key: string): void {
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
    if (prefix === null || (prefix === OWN_PREFIX && DEFINED.has(name))) return;
    if (isReserved(prefix, seen.revision ?? ''))
      report('meta-reserved', seen.side, seen, 'a prefix of its own', shown(key));
  }

  /** `ext` and `ui` belong to extensions of MCP itself. */
  function isReserved(prefix: string, revision: string): boolean {
    const labels = prefix.split('.');
    if (revision >= '2025-11-25') return isOurs(labels[1]) && prefix !== OWN_PREFIX;
    return labels.some((label, i) => isOurs(label) && i < labels.length - 1);
  }

  function required(seen: Seen, meta: Json): void {
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
