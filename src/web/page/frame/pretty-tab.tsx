import type { VNode } from 'preact';
import type { FrameDetail } from '../../api.ts';
import { JsonTree } from '../json/json-tree.tsx';
import { showSize } from '../look/format.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import { ContentParts } from './content-parts.tsx';
import css from './frame.module.css';
import { carriedText, usePayload } from './payload.ts';
import { TextRows } from './text-rows.tsx';

/** What the frame says: its parts as people read them, and all of its JSON. */
export function PrettyTab({ frame }: { frame: FrameDetail }): VNode {
  const { text, failure } = usePayload(frame);
  if (failure !== null) return <TroubleBox failure={failure} />;
  if (text === null) return <p class={css.wait}>Fetching {showSize(frame.storedBytes)}…</p>;
  const carried = carriedText(frame, text);
  if (!/^\s*[[{]/.test(carried)) return <TextRows text={carried} label="Text" />;
  return (
    <>
      <ContentParts text={carried} />
      <JsonTree text={carried} />
    </>
  );
}
