/**
 * Recording without payloads: of everything that may hold some, its placeholder alone is kept, made of all of it. So sizes,
 * times and what is equal can be told, and nothing else.
 */
import type { Redacted, Redactor } from './redact.ts';
import { isPlaceholder } from './redact-names.ts';

/** The rule of a frame whose payload was not kept. */
export const META_RULE = 'meta';

export function createMetaRedactor(digest: (secret: string) => string): Redactor {
  const placeholder = (rule: string, secret: string) => `[redacted:${rule}:${digest(secret)}]`;
  const mask = (text: string) => (text === '' || isPlaceholder(text) ? text : `masked-${digest(text)}`);

  function payload(bytes: Buffer): Redacted | null {
    if (bytes.length === 0) return null;
    const text = placeholder(META_RULE, bytes.toString('latin1'));
    return { payload: Buffer.from(text), rules: [META_RULE] };
  }

  return {
    payload,
    event: payload,
    payloadEdits: () => [],
    eventEdits: () => [],
    text: mask,
    header: (_name, value) => mask(value),
    url: (url) => url.replace(/[?#].*$/s, (rest) => rest.slice(0, 1) + mask(rest.slice(1))),
    isOn: () => true,
    firstSign: () => 0,
    placeholder,
  };
}
