import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { createRedactor } from '../../../src/protocol/redact/redactor.ts';
import { blob, INNOCENT } from '../../support/innocent.ts';
import { scale } from '../../support/scale.ts';

const digest = (secret: string) => createHash('sha256').update(secret).digest('hex').slice(0, 12);
const redactor = createRedactor(PLAIN_PROFILE, digest);

function redacted(text: string): string {
  return redactor.payload(Buffer.from(text), false, false)?.payload.toString() ?? text;
}

test.each(Object.entries(INNOCENT))('innocent %s pass as they are, bare and in a message', (_kind, text) => {
  expect(redacted(text)).toBe(text);
  for (const line of text.split('\n')) expect(redacted(line)).toBe(line);
  const message = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text }] } });
  expect(redacted(message)).toBe(message);
});

test('base64 of random bytes passes as it is, however much of it', () => {
  for (let i = 0; i < scale(60); i += 1) {
    const text = blob(i, scale(1024, 256) * 1024);
    expect(redacted(text) === text, `blob ${i}`).toBe(true);
    const image = JSON.stringify({ type: 'image', mimeType: 'image/png', data: text });
    expect(redacted(image) === image, `blob ${i} in JSON`).toBe(true);
  }
});
