/** What happened in a session besides its messages: HTTP exchanges that carried none, edits, losses, how it ended. */
import type { VNode } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { HttpPage, HttpView, SessionDetail } from '../../api.ts';
import type { ListRow } from '../list/row-list.tsx';
import { microsOf, showLasting, showOffset } from '../look/format.ts';
import { Icon, type IconName } from '../look/parts.tsx';
import { Brief } from '../look/text.tsx';
import { source } from '../shell/source.ts';
import type { SessionOutline } from './outline.ts';
import type { TimeScale } from './scale.ts';
import css from './session.module.css';

export type SessionEvent = {
  /** Microseconds since the session's start. */
  at: number;
  /** Names its row in the address. */
  key: string;
  icon: IconName;
  tag: string;
  text: string;
  /** A page of its own. */
  href?: string;
  /** How long it took; null: it has not ended. Of what takes no time there is none. */
  latency?: number | null;
  isWrong?: boolean;
};

/** In order of time. */
export function useEvents(
  { session, losses, ending, httpExchanges }: SessionDetail,
  outline: SessionOutline,
  end: number,
): SessionEvent[] {
  const [heads, setHeads] = useState<SessionEvent[]>([]);
  const { session: id, startedAt, state } = session;
  useEffect(() => {
    if (httpExchanges === 0) return;
    const abort = new AbortController();
    readHeads(id, microsOf(startedAt), abort.signal)
      .then(setHeads)
      .catch(() => {});
    return () => abort.abort();
  }, [id, startedAt, httpExchanges]);
  const edited = outline.edited.length;
  return useMemo(() => {
    const edits = outline.edited.map((i) => editedFrame(id, outline, i));
    const lost: SessionEvent[] = losses.map((text, i) => ({
      ...{ at: end, key: `loss${i}`, icon: 'triangle-alert', tag: 'lost', text, isWrong: true },
    }));
    const last: SessionEvent = { at: end, key: 'end', icon: 'x', tag: 'end', text: ending };
    const between = [...heads, ...edits].sort((a, b) => a.at - b.at);
    return [...between, ...lost, ...(state === 'open' ? [] : [last])];
  }, [id, heads, outline, edited, losses, ending, end, state]);
}

function editedFrame(id: string, outline: SessionOutline, i: number): SessionEvent {
  const seq = outline.number('seq', i);
  return {
    at: outline.number('at', i),
    key: `e${seq}`,
    icon: 'pencil',
    tag: 'edited',
    text: `#${seq} was changed on its way; what its sender had sent is kept`,
    href: `/s/${id}/f/${seq}?tab=bytes`,
  };
}

async function readHeads(id: string, startedAt: number, signal: AbortSignal): Promise<SessionEvent[]> {
  const events: SessionEvent[] = [];
  let after: number | null = 0;
  while (after !== null) {
    const page: HttpPage = await source().json(`sessions/${id}/http?after=${after}&limit=500`, signal);
    for (const http of page.http) {
      if (!carriesCalls(http)) events.push(eventOf(id, http, startedAt));
      const edit = editedHead(id, http, startedAt);
      if (edit !== null) events.push(edit);
    }
    after = page.next;
  }
  return events;
}

/** Towards another host every request has its `Host` changed: that is told with the exchange alone. */
function editedHead(id: string, http: HttpView, startedAt: number): SessionEvent | null {
  const edits = http.edits.filter(({ header }) => header.toLowerCase() !== 'host');
  const [first] = edits;
  if (first === undefined) return null;
  const names = edits.map(({ header }) => header).join(', ');
  return {
    at: microsOf(http.responseAt ?? http.at) - startedAt,
    key: `he${http.http}`,
    icon: 'pencil',
    tag: 'edited',
    text: `${names} had ${edits.length === 1 ? `been ${first.original}` : 'other values'} (${http.method} ${http.path})`,
    href: `/s/${id}/h/${http.http}`,
  };
}

/** A POST that was taken is told by the messages in it. */
function carriesCalls({ method, status }: HttpView): boolean {
  return method === 'POST' && status !== null && status < 400;
}

function eventOf(id: string, http: HttpView, startedAt: number): SessionEvent {
  const { method, path, status, statusText, at, endedAt, error } = http;
  const answer = status === null ? (error ?? 'no answer') : `${status} ${statusText ?? ''}`;
  return {
    at: microsOf(at) - startedAt,
    key: `h${http.http}`,
    icon: 'arrow-right',
    tag: 'http',
    text: `${method} ${path} → ${answer}`,
    href: `/s/${id}/h/${http.http}`,
    latency: endedAt === null ? null : microsOf(endedAt) - microsOf(at),
    isWrong: status === null || status >= 400,
  };
}

/** `scale`: of the waterfall; null without one. */
export function eventRow(event: SessionEvent, scale: TimeScale | null): ListRow {
  const { at, latency, isWrong } = event;
  const cells = [
    '',
    showOffset(at),
    <EventTitle key="title" event={event} />,
    '',
    latency == null ? '' : showLasting(latency),
    '',
  ];
  if (scale !== null) cells.push(<EventBar key="bar" event={event} scale={scale} />);
  return { cells, tone: isWrong ? 'error' : 'quiet' };
}

/** Of an HTTP exchange from its request to the end of its answer. */
function EventBar({
  event: { at, latency, isWrong },
  scale,
}: {
  event: SessionEvent;
  scale: TimeScale;
}): VNode {
  if (latency === undefined) return <span class={css.waterfall} />;
  const [from, to] = [scale.x(at), scale.x(latency === null ? scale.to : at + latency)];
  return (
    <span class={css.waterfall} aria-hidden="true">
      <span
        class={`${latency === null ? css.barOpen : css.bar} ${isWrong ? css.ofError : css.ofHttp}`}
        style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }}
      />
    </span>
  );
}

function EventTitle({ event: { icon, tag, text } }: { event: SessionEvent }): VNode {
  return (
    <span class={css.message}>
      <Icon name={icon} />
      <span class={css.tag}>{tag}</span>
      <span class={css.text}>
        <Brief text={text} />
      </span>
    </span>
  );
}
