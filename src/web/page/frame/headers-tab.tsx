import type { VNode } from 'preact';
import type { FrameDetail, HttpDetail } from '../../api.ts';
import { Headers } from '../look/headers.tsx';
import { Recorded } from '../look/text.tsx';
import { useAnswer } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import css from './frame.module.css';

/** The heads of the HTTP exchange that the frame came in. */
export function HeadersTab({ frame }: { frame: FrameDetail }): VNode | null {
  const number = frame.http?.exchange ?? 0;
  const { value, failure } = useAnswer<HttpDetail>(`sessions/${frame.session}/http/${number}`);
  if (failure !== null) return <TroubleBox failure={failure} />;
  if (value === null) return null;
  const { method, path, httpVersion, status, statusText, requestHeaders, responseHeaders, edits } = value;
  const editsOf = (side: 'request' | 'response') => edits.filter((edit) => edit.side === side);
  return (
    <div class={css.headers}>
      <p>
        <a href={`/s/${frame.session}/h/${number}`}>HTTP exchange {number}</a>
      </p>
      <p class={css.startLine}>
        <Recorded text={`${method} ${path} HTTP/${httpVersion}`} />
      </p>
      <Headers title="Request headers" headers={requestHeaders} edits={editsOf('request')} />
      {status !== null && (
        <p class={css.startLine}>
          {status} <Recorded text={statusText ?? ''} />
        </p>
      )}
      <Headers title="Answer headers" headers={responseHeaders ?? []} edits={editsOf('response')} />
    </div>
  );
}
