import { useState } from 'preact/hooks';

/**
 * What stands in a box whose value is in the address: what was typed, until it is entered (`set(null)`) or the address changes. Not
 * an effect that copies the value: one that runs late would undo what was typed by then.
 */
export function useDraft(value: string): [text: string, set: (typed: string | null) => void] {
  const [draft, setDraft] = useState<{ of: string; text: string } | null>(null);
  const set = (typed: string | null) => setDraft(typed === null ? null : { of: value, text: typed });
  return [draft?.of === value ? draft.text : value, set];
}
