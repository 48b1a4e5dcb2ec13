import type { VNode } from 'preact';
import type { FrameDetail, Snippet } from '../../api.ts';
import { about, source } from '../shell/source.ts';
import { Menu, type MenuItem } from './menu.tsx';

type Form = {
  as: string;
  label: string;
  about: string;
  /** Made of what a report holds. */
  isInReport?: true;
  isFor?(frame: FrameDetail): boolean;
};

const isCall = ({ messages }: FrameDetail) =>
  messages.some(({ kind }) => kind === 'request' || kind === 'result' || kind === 'error');

const FORMS: readonly Form[] = [
  { as: 'link', label: 'Link', about: 'to this frame, for this store' },
  { as: 'json', label: 'JSON', about: 'the frame, as show --json', isInReport: true },
  { as: 'raw', label: 'Raw', about: 'the text that passed', isInReport: true },
  { as: 'ndjson', label: 'NDJSON line', about: 'of a text recording' },
  { as: 'curl', label: 'curl', about: 'sends the request again', isFor: ({ http }) => http !== null },
  { as: 'verify', label: 'tapedeck verify', about: 'asks the live server this again', isFor: isCall },
  { as: 'test', label: 'vitest test', about: 'with the recording as server', isFor: isCall },
];

/** A frame on the clipboard, in one form or another. */
export function CopyMenu({ frame }: { frame: FrameDetail }): VNode | null {
  if (about.value === null) return null;
  const isWhole = about.value.can.export;
  const forms = FORMS.filter(({ isFor, isInReport }) => (isWhole || isInReport) && (isFor?.(frame) ?? true));
  const items = forms.map(
    ({ as, label, about: what }): MenuItem => ({
      label,
      about: what,
      async act() {
        const path = `snippet/${frame.session}/${frame.seq}?as=${as}`;
        const { text } = await source().json<Snippet>(path, new AbortController().signal);
        await navigator.clipboard.writeText(as === 'link' ? location.origin + text : text);
        return `Copied: ${label}`;
      },
    }),
  );
  return <Menu label="Copy as" icon="copy" items={items} hotkey="c" />;
}
