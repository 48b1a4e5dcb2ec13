import type { VNode } from 'preact';
import { Button, NoticeBox } from '../look/parts.tsx';
import { type ApiFailure, UNAUTHORIZED } from './source.ts';

/** In place of a screen that got no answer. */
export function TroubleBox({ failure }: { failure: ApiFailure }): VNode {
  if (failure.code === UNAUTHORIZED) {
    return (
      <NoticeBox title="This page needs the link that was printed" icon="triangle-alert">
        <p>
          <code>tapedeck ui</code> printed a link with a token in it, in the terminal where it was started.
          Open that link once; this browser then keeps the token until <code>tapedeck ui</code> is started
          anew.
        </p>
        <p>The token keeps other users of this machine away from your recordings.</p>
      </NoticeBox>
    );
  }
  return (
    <NoticeBox title="There is no answer" icon="circle-x">
      <p>{failure.message}</p>
      <Button kind="framed" onClick={() => location.reload()}>
        Try again
      </Button>
    </NoticeBox>
  );
}
