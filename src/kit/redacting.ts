/** What a live server has answered is redacted before it is stored, as `record` does. */
import type { Frame } from '../protocol/frame.ts';
import type { RedactionProfile } from '../protocol/redact-profile.ts';
import type { Store } from '../store/open.ts';
import { createLineRedactor, createStoreRedactor, redactHttpFrame } from '../store/redaction.ts';
import type { Tape } from '../store/session-append.ts';

/** `profile`: that of the recording; null: secrets are stored. `keyStore` has the key that placeholders are made with. */
export function redacting(tape: Tape, profile: RedactionProfile | null, keyStore: Store): Tape {
  if (profile === null) return tape;
  const { redactor, open } = createStoreRedactor(profile);
  open(keyStore);
  const redactLine = createLineRedactor(redactor);
  const redact = (frame: Frame) =>
    frame.http === null ? redactLine(frame) : redactHttpFrame(frame, redactor);
  return { ...tape, add: ({ frames, exchanges }) => tape.add({ frames: frames.map(redact), exchanges }) };
}
