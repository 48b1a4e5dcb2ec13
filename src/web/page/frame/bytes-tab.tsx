import type { ComponentChildren, VNode } from 'preact';
import type { FrameDetail } from '../../api.ts';
import { CopyButton } from '../look/copy.tsx';
import { showCount, showSize } from '../look/format.ts';
import { Recorded } from '../look/text.tsx';
import css from './frame.module.css';

/** What the frame is as bytes, and what happened to them. */
export function BytesTab({ frame }: { frame: FrameDetail }): VNode {
  const { size, storedBytes, lineEnd, encoding, sha256, edited, original, originalBase64, redactedBy } =
    frame;
  const isOther = original !== undefined || originalBase64 !== undefined;
  return (
    <div class={css.bytes}>
      <dl>
        <Fact name="Size">
          {showCount(size)} bytes ({showSize(size)})
        </Fact>
        {storedBytes !== size && <Fact name="Stored">{showCount(storedBytes)} bytes</Fact>}
        <Fact name="Line end">
          <code>{lineEnd === '' ? 'none' : lineEnd}</code>
        </Fact>
        <Fact name="Encoding">{encoding === 'utf-8' ? 'UTF-8' : 'not valid UTF-8'}</Fact>
        <Fact name="SHA-256">
          <code>{sha256}</code> <CopyButton text={sha256} label="Copy the SHA-256" />
        </Fact>
        <Fact name="Redacted">{frame.redacted ? `yes, by ${redactedBy?.join(', ') ?? 'a rule'}` : 'no'}</Fact>
        <Fact name="Edited">{edited ? 'yes, on its way' : 'no'}</Fact>
      </dl>
      {isOther && (
        <div class={css.beside}>
          <Side title="What its sender had sent" text={original ?? originalBase64 ?? ''} />
          <Side title="What went on" text={frame.text ?? frame.base64 ?? ''} />
          {frame.cut && <p class={css.muted}>Each is cut at 64 kB; the frame’s bytes have all of it.</p>}
        </div>
      )}
    </div>
  );
}

function Side({ title, text }: { title: string; text: string }): VNode {
  return (
    <section>
      <h3>{title}</h3>
      <pre class={css.original}>
        <Recorded text={text} />
      </pre>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
