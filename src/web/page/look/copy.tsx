import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { Button, Unseen } from './parts.tsx';

/** Puts a text on the clipboard, and says so for a moment. */
export function CopyButton({
  text,
  label,
  children,
}: {
  text: string | (() => string);
  label: string;
  children?: string;
}): VNode {
  const [isDone, setDone] = useState(false);
  const onClick = async () => {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <>
      <Button icon={isDone ? 'check' : 'copy'} label={label} onClick={onClick}>
        {children}
      </Button>
      <Unseen live="done">{isDone ? 'Copied' : ''}</Unseen>
    </>
  );
}
