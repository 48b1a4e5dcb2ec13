import type { VNode } from 'preact';
import { CopyButton } from '../look/copy.tsx';
import { about } from '../shell/source.ts';
import css from './sessions.module.css';

/** The commands without the words that start tapedeck. */
const WAYS: readonly (readonly [title: string, command: string, about: string])[] = [
  [
    'A client that you have',
    'wrap all',
    'Puts tapedeck in front of every server in the configs of your MCP clients; unwrap takes it out again.',
  ],
  [
    'A server over stdio',
    'record -- node server.js',
    'Give the client this command in place of the server’s.',
  ],
  [
    'A server over HTTP',
    'record http://127.0.0.1:3000/mcp',
    'Prints the URL that the client is to use in place of the server’s.',
  ],
];

/** The first thing that many see: how something gets onto this page. */
export function EmptyStore(): VNode {
  const typed = about.value?.typed ?? '';
  const ways = WAYS.map(([title, words, what]) => ({ title, what, command: `${typed} ${words}` }));
  return (
    <section class={css.empty}>
      <h1>Nothing is recorded yet</h1>
      <p>
        {about.value?.store} has no session. Record one in any of these ways; it appears here as soon as it
        begins.
      </p>
      <ol>
        {ways.map(({ title, what, command }) => (
          <li key={title}>
            <h2>{title}</h2>
            <div class={css.command}>
              <code>{command}</code>
              <CopyButton text={command} label={`Copy ${command}`} />
            </div>
            <p>{what}</p>
          </li>
        ))}
      </ol>
    </section>
  );
}
