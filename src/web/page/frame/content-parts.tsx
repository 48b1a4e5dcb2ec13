/** The parts of content that MCP messages carry, as people read them. The tree beside it shows how they were written. */
import type { VNode } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { counted, showSize } from '../look/format.ts';
import { Recorded } from '../look/text.tsx';
import css from './frame.module.css';

/** Larger texts would stop the page while they are read; their tree is shown alone. */
const MOST = 8_000_000;
const MOST_PARTS = 50;

/** What a browser may draw or play of it; never SVG, which is a document with scripts. */
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const AUDIO = new Set(['audio/wav', 'audio/mpeg', 'audio/ogg', 'audio/webm', 'audio/mp4', 'audio/flac']);

type Part = Record<string, unknown>;

export function ContentParts({ text }: { text: string }): VNode | null {
  const parts = useMemo(() => partsIn(text), [text]);
  if (parts.length === 0) return null;
  return (
    <section class={css.parts} aria-label="Content">
      <h3>{counted(parts.length, 'part')} of content</h3>
      {parts.slice(0, MOST_PARTS).map((part, i) => (
        <PartView key={i} part={part} />
      ))}
      {parts.length > MOST_PARTS && (
        <p class={css.muted}>{parts.length - MOST_PARTS} more stand in the tree.</p>
      )}
    </section>
  );
}

function PartView({ part }: { part: Part }): VNode {
  const type = textOf(part['type']) || (part['blob'] === undefined ? 'text' : 'blob');
  const mime = textOf(part['mimeType']);
  const data = textOf(part['data']) || textOf(part['blob']);
  const uri = textOf(part['uri']);
  const words = textOf(part['text']);
  return (
    <figure class={css.part}>
      <figcaption>
        <Recorded text={type} />{' '}
        <Recorded text={[mime, textOf(part['name'])].filter((word) => word !== '').join(' · ')} />
        {uri !== '' && (
          <code>
            <Recorded text={uri} />
          </code>
        )}
        {data !== '' && <span>{showSize(Math.floor((data.length * 3) / 4))}</span>}
      </figcaption>
      {words !== '' && <Words text={words} />}
      {data !== '' && (IMAGES.has(mime) || AUDIO.has(mime)) && <Medium data={data} mime={mime} />}
    </figure>
  );
}

const SHOWN = 4000;

function Words({ text }: { text: string }): VNode {
  const [isWhole, setWhole] = useState(false);
  const isCut = text.length > SHOWN && !isWhole;
  return (
    <pre class={css.words}>
      <Recorded text={isCut ? text.slice(0, SHOWN) : text} keep={'\n\t'} />
      {isCut && (
        <button type="button" class={css.more} onClick={() => setWhole(true)}>
          Show all {showSize(text.length)}
        </button>
      )}
    </pre>
  );
}

/** The type of the blob is of our list, not of the recording: a browser shows it as that or not at all. */
function Medium({ data, mime }: { data: string; mime: string }): VNode | null {
  const [url, setUrl] = useState<string | null>(null);
  const [isWrong, setWrong] = useState(false);
  useEffect(() => {
    const blob = blobOf(data, mime);
    if (blob === null) return setWrong(true);
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data, mime]);
  if (isWrong) return <p class={css.muted}>This cannot be shown as {mime}.</p>;
  if (url === null) return null;
  return IMAGES.has(mime) ? (
    <img class={css.image} src={url} alt={`recorded, ${mime}`} onError={() => setWrong(true)} />
  ) : (
    // biome-ignore lint/a11y/useMediaCaption: what was recorded has none
    <audio controls src={url} onError={() => setWrong(true)} />
  );
}

function blobOf(base64: string, mime: string): Blob | null {
  try {
    const binary = atob(base64);
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    return new Blob([bytes], { type: mime });
  } catch {
    return null;
  }
}

function partsIn(text: string): Part[] {
  if (text.length > MOST) return [];
  try {
    const read: unknown = JSON.parse(text);
    return (Array.isArray(read) ? read : [read]).flatMap((message) => {
      const { result, params } = asPart(message);
      const [given, asked] = [asPart(result), asPart(params)];
      const messages = [...listOf(given['messages']), ...listOf(asked['messages'])].map(
        ({ content }) => content,
      );
      return [given['content'], given['contents'], asked['content'], ...messages].flatMap(listOf);
    });
  } catch {
    return [];
  }
}

function asPart(value: unknown): Part {
  return typeof value === 'object' && value !== null ? (value as Part) : {};
}

/** A list of parts, or one part alone; what a resource holds in place of the part that holds it. */
function listOf(value: unknown): Part[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list
    .filter((one) => typeof one === 'object' && one !== null)
    .map((one) => {
      const part = asPart(one);
      return part['type'] === 'resource' ? { ...asPart(part['resource']), type: 'resource' } : part;
    });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
