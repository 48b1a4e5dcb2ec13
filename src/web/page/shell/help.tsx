import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Button } from '../look/parts.tsx';
import css from './help.module.css';
import { ALL_KEYS } from './keys.ts';
import { about } from './source.ts';

/** All keys, over the page. */
export function HelpDialog({ onClose }: { onClose(): void }): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={css.dialog} aria-labelledby="help-title" onClose={onClose}>
      <header class={css.head}>
        <h1 id="help-title">Keys</h1>
        <Button icon="x" label="Close" onClick={() => dialog.current?.close()} />
      </header>
      <div class={css.groups}>
        {ALL_KEYS.map(([group, rows]) => (
          <section key={group}>
            <h2>{group}</h2>
            <dl class={css.keys}>
              {rows.map(([keys, does]) => (
                <div key={keys}>
                  <dt>
                    {keys.split(' ').map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p class={css.version}>mcp-tapedeck {about.value?.version}</p>
    </dialog>
  );
}
