import type { VNode } from 'preact';
import { CopyButton } from './copy.tsx';
import css from './headers.module.css';
import { Recorded } from './text.tsx';

/** Of a value that redaction put in place of a secret. */
const MASKED = /\[redacted:|masked-[0-9a-f]{8}/;

type HeadersProps = {
  title: string;
  headers: readonly (readonly [name: string, value: string])[];
  /** What of them was changed on its way. */
  edits?: readonly { header: string; original: string }[];
};

/** The headers of a head, in the order and the case in which they passed. */
export function Headers({ title, headers, edits = [] }: HeadersProps): VNode | null {
  if (headers.length === 0) return null;
  const text = headers.map(([name, value]) => `${name}: ${value}`).join('\n');
  return (
    <section>
      <h3 class={css.title}>
        <Recorded text={title} />
        <CopyButton text={text} label={`Copy the ${title.toLowerCase()}`} />
      </h3>
      <table class={css.headers}>
        <tbody>
          {headers.map(([name, value], i) => (
            <tr key={i}>
              <th scope="row">
                <Recorded text={name} />
              </th>
              <td>
                <Recorded text={value} />
                {MASKED.test(value) && <span class={css.masked}>masked</span>}
                {edits
                  .filter(({ header }) => header.toLowerCase() === name.toLowerCase())
                  .map(({ original }) => (
                    <span key={original} class={css.edited}>
                      edited; its sender had sent <Recorded text={original} />
                    </span>
                  ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
