import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { FramePage, FrameView, HttpDetail, Snippet } from '../../api.ts';
import { counted, microsOf, showLasting, showMoment, showSize } from '../look/format.ts';
import { Headers } from '../look/headers.tsx';
import { Button, Status, Unseen } from '../look/parts.tsx';
import { Recorded } from '../look/text.tsx';
import { Menu, type MenuItem } from '../menus/menu.tsx';
import { go, withQuery } from '../shell/router.ts';
import { about, source, useAnswer } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import css from './http.module.css';
import { PHASE_WORDS, phasesOf, TimeBar } from './time-bar.tsx';

/** One HTTP exchange: heads as they passed, times, and the frames that it carried. */
export function HttpExchangePane({ session, number }: { session: string; number: number }): VNode {
  const route = `sessions/${encodeURIComponent(session)}/http/${number}`;
  const { value: one, failure } = useAnswer<HttpDetail>(route);
  const frames = useFrames(session, one?.frames ?? NO_FRAMES);
  if (failure !== null) return <TroubleBox failure={failure} />;
  if (one === null) return <Unseen>Loading…</Unseen>;
  const status = one.status === null ? 'no answer' : `${one.status} ${one.statusText ?? ''}`;
  return (
    <section class={css.detail}>
      <header class={css.head}>
        <h2>
          <Recorded text={`${one.method} ${one.path}`} />
        </h2>
        <span class={css.acts}>
          <CopyCurl session={session} number={number} />
          <Button icon="x" label="Close the detail" onClick={() => go(withQuery({}, `/s/${session}/http`))} />
        </span>
      </header>
      <p class={css.facts}>
        <Status tone={one.status === null || one.status >= 400 ? 'error' : 'ok'}>
          <Recorded text={status} />
        </Status>
        <span>HTTP/{one.httpVersion}</span>
        <span>
          from <Recorded text={one.client} />
        </span>
        <time dateTime={one.at}>{showMoment(one.at)}</time>
        <span>
          {showSize(one.requestBytes)} up, {showSize(one.responseBytes)} down
        </span>
      </p>
      {one.error !== null && (
        <Status tone="error" icon="triangle-alert">
          <Recorded text={one.error} />
        </Status>
      )}
      <Times one={one} firstEventAt={firstEventAt(frames)} />
      <Headers title="Request headers" headers={one.requestHeaders} edits={editsOf(one, 'request')} />
      {one.informations.map(({ at, status: early, headers }) => (
        <Headers key={at} title={`Information ${early}`} headers={headers} />
      ))}
      {one.responseHeaders && (
        <Headers title="Answer headers" headers={one.responseHeaders} edits={editsOf(one, 'response')} />
      )}
      <Headers title="Request trailers" headers={one.requestTrailers} />
      <Headers title="Answer trailers" headers={one.responseTrailers} />
      <Frames session={session} seqs={one.frames} frames={frames} />
    </section>
  );
}

/** Of a frame the conversation copies more; an exchange may have none. */
function CopyCurl({ session, number }: { session: string; number: number }): VNode | null {
  if (about.value?.can.export !== true) return null;
  const item: MenuItem = {
    label: 'curl',
    about: 'sends the request again',
    async act() {
      const path = `snippet/${session}/http/${number}`;
      const { text } = await source().json<Snippet>(path, new AbortController().signal);
      await navigator.clipboard.writeText(text);
      return 'Copied: curl';
    },
  };
  return <Menu label="Copy as" icon="copy" items={[item]} hotkey="c" />;
}

const NO_FRAMES: readonly number[] = [];

/** When the first event of a stream was whole; of another body no time is known but its end. */
function firstEventAt(frames: ReadonlyMap<number, FrameView>): number | null {
  const first = [...frames.values()].find(({ channel }) => channel === 'sse');
  return first === undefined ? null : microsOf(first.at);
}

function Times({ one, firstEventAt }: { one: HttpDetail; firstEventAt: number | null }): VNode {
  const phases = phasesOf(one, firstEventAt);
  const [from, to] = [phases[0]?.from ?? 0, phases.at(-1)?.to ?? 1];
  return (
    <Part title="Times">
      <TimeBar phases={phases} from={from} to={Math.max(to, from + 1)} />
      <table class={css.times}>
        <tbody>
          {phases.map((phase) => (
            <tr key={phase.name}>
              <td>
                <span class={`${css.swatch} ${css[phase.name]}`} />
              </td>
              <td class={css.end}>{showLasting(phase.to - phase.from)}</td>
              <th scope="row">{PHASE_WORDS[phase.name]}</th>
            </tr>
          ))}
          <tr>
            <td />
            <td class={css.end}>{one.endedAt === null ? '' : showLasting(to - from)}</td>
            <th scope="row">
              {one.endedAt === null
                ? 'it has not ended'
                : `in all; closed by the ${one.closedBy ?? 'recorder'}`}
            </th>
          </tr>
        </tbody>
      </table>
    </Part>
  );
}

function editsOf({ edits }: HttpDetail, side: 'request' | 'response'): HttpDetail['edits'] {
  return edits.filter((edit) => edit.side === side);
}

function Part({ title, children }: { title: string; children: ComponentChildren }): VNode {
  return (
    <section class={css.part}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** More are in the conversation. */
const SHOWN = 200;

type FramesProps = { session: string; seqs: readonly number[]; frames: ReadonlyMap<number, FrameView> };

/** Bodies and events of streams, each a frame. */
function Frames({ session, seqs, frames }: FramesProps): VNode {
  return (
    <Part title={counted(seqs.length, 'frame')}>
      <ol class={css.frames}>
        {seqs.slice(0, SHOWN).map((seq) => (
          <li key={seq}>
            <a href={`/s/${session}/f/${seq}`}>#{seq}</a> <FrameLine frame={frames.get(seq)} />
          </li>
        ))}
      </ol>
      {seqs.length > SHOWN && <p class={css.muted}>and {counted(seqs.length - SHOWN, 'more frame')}</p>}
    </Part>
  );
}

/** Those of one exchange lie near each other: a few pages have them. */
function useFrames(session: string, seqs: readonly number[]): ReadonlyMap<number, FrameView> {
  const [frames, setFrames] = useState<ReadonlyMap<number, FrameView>>(new Map());
  useEffect(() => {
    const abort = new AbortController();
    const load = async () => {
      const found = new Map<number, FrameView>();
      for (const seq of seqs.slice(0, SHOWN)) {
        if (found.has(seq)) continue;
        const path = `sessions/${encodeURIComponent(session)}/frames?after=${seq - 1}&limit=20`;
        const page = await source().json<FramePage>(path, abort.signal);
        for (const frame of page.frames) found.set(frame.seq, frame);
        setFrames(new Map(found));
      }
    };
    // What does not come is not shown: the links are there.
    load().catch(() => {});
    return () => abort.abort();
  }, [session, seqs]);
  return frames;
}

const SHOWN_CHARACTERS = 160;

function FrameLine({ frame }: { frame: FrameView | undefined }): VNode | null {
  if (frame === undefined) return null;
  const { direction, channel, size, text, base64, sse } = frame;
  const what = channel === 'sse' ? `event ${sse?.event ?? 'message'}` : 'body';
  return (
    <>
      <span class={css.muted}>
        {direction === 'client-to-server' ? '→' : '←'} <Recorded text={what} />, {showSize(size)}
      </span>{' '}
      <code>
        <Recorded text={(sse?.data ?? text ?? base64 ?? '').slice(0, SHOWN_CHARACTERS)} />
      </code>
    </>
  );
}
