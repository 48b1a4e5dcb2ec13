import type { VNode } from 'preact';
import type { FrameDetail } from '../../api.ts';
import { CopyButton } from '../look/copy.tsx';
import { showSize } from '../look/format.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import css from './frame.module.css';
import { usePayload } from './payload.ts';
import { TextRows } from './text-rows.tsx';

/** The characters as they passed, with what cannot be seen as marks. */
export function RawTab({ frame }: { frame: FrameDetail }): VNode {
  const { text, failure } = usePayload(frame);
  if (failure !== null) return <TroubleBox failure={failure} />;
  if (text === null) return <p class={css.wait}>Fetching {showSize(frame.storedBytes)}…</p>;
  return (
    <>
      <div class={css.tools}>
        {frame.encoding === 'utf-8' ? (
          <CopyButton text={text} label="Copy the characters as they passed">
            Raw
          </CopyButton>
        ) : (
          <span class={css.muted}>Not valid UTF-8: such bytes stand as \xNN.</span>
        )}
      </div>
      <TextRows text={text} label="Characters" />
    </>
  );
}
