/** What is known of a session besides its messages. */
import type { ComponentChildren, VNode } from 'preact';
import type { SessionDetail } from '../../api.ts';
import { CopyButton } from '../look/copy.tsx';
import { counted, showLasting, showMoment, showSize } from '../look/format.ts';
import { Status } from '../look/parts.tsx';
import { Brief } from '../look/text.tsx';
import css from './facts.module.css';

export function SessionFacts({ detail }: { detail: SessionDetail }): VNode {
  const { session, command, capabilities, environment, labels, losses, ending } = detail;
  const { client, server, protocolVersion, transport, basis, startedAt, lasted } = session;
  return (
    <div class={css.facts}>
      <section>
        <h2>{transport !== 'stdio' ? 'URL' : basis === 'sdk-transport' ? 'Transport' : 'Command'}</h2>
        <div class={css.command}>
          <code>
            <Brief text={command} most={20_000} />
          </code>
          <CopyButton text={command} label="Copy" />
        </div>
      </section>
      {losses.map((loss) => (
        <Status key={loss} tone="error" icon="triangle-alert">
          {loss}
        </Status>
      ))}
      <dl class={css.pairs}>
        <Pair name="Client">
          {client ? <Brief text={`${client.name} ${client.version ?? ''}`} /> : 'not said'}
        </Pair>
        <Pair name="Server">
          {server ? <Brief text={`${server.name} ${server.version ?? ''}`} /> : 'not said'}
        </Pair>
        <Pair name="Protocol">
          <Brief text={protocolVersion ?? 'not said'} />{' '}
          {protocolVersion && <span class={css.muted}>({eraOf(protocolVersion)})</span>}
        </Pair>
        <Pair name="Transport">
          {transport} <span class={css.muted}>({basis})</span>
        </Pair>
        <Pair name="Started">
          <time dateTime={startedAt}>{showMoment(startedAt)}</time>
        </Pair>
        {lasted !== null && <Pair name="Lasted">{showLasting(lasted)}</Pair>}
        <Pair name="End">{ending}</Pair>
        <Pair name="Passed">
          {counted(session.frames, 'frame')}, {counted(session.exchanges, 'exchange')},{' '}
          {counted(session.errors, 'error')}, {session.unanswered} without answer, {session.dropped} lost
        </Pair>
      </dl>
      <Capabilities title="The client can" json={capabilities.client} />
      <Capabilities title="The server can" json={capabilities.server} />
      <Offers detail={detail} />
      {labels.length > 0 && <Table title="Labels" rows={labels} />}
      {environment.length > 0 && <Table title="Environment" rows={environment} />}
    </div>
  );
}

/** Revisions before this one begin with `initialize`. */
const MODERN = '2026-07-28';

function eraOf(version: string): string {
  return version >= MODERN ? 'modern' : 'legacy';
}

function Pair({ name, children }: { name: string; children: ComponentChildren }): VNode {
  return (
    <div>
      <dt>
        <Brief text={name} />
      </dt>
      <dd>{children}</dd>
    </div>
  );
}

function Capabilities({ title, json }: { title: string; json: string | null }): VNode | null {
  if (json === null) return null;
  return (
    <section>
      <h2>{title}</h2>
      <pre class={css.json}>
        <Brief text={json} most={20_000} />
      </pre>
    </section>
  );
}

const KINDS = ['tool', 'prompt', 'resource', 'template'] as const;

function Offers({ detail: { offers, session } }: { detail: SessionDetail }): VNode[] {
  return KINDS.flatMap((kind) => {
    const own = offers.filter((offer) => offer.kind === kind);
    if (own.length === 0) return [];
    const bytes = own.reduce((sum, offer) => sum + offer.bytes, 0);
    return (
      <section key={kind}>
        <h2>
          {counted(own.length, kind)} <span class={css.muted}>defined in {showSize(bytes)}</span>
        </h2>
        <ul class={css.offers}>
          {own.map(({ name, bytes: size, seq }) => (
            <li key={`${seq} ${name}`}>
              <a href={`/s/${session.session}/f/${seq}`}>
                <Brief text={name} />
              </a>
              <span class={css.muted}>{showSize(size)}</span>
            </li>
          ))}
        </ul>
      </section>
    );
  });
}

function Table({
  title,
  rows,
}: {
  title: string;
  rows: readonly (readonly [name: string, value: string])[];
}): VNode {
  return (
    <section>
      <h2>{title}</h2>
      <dl class={css.pairs}>
        {rows.map(([name, value]) => (
          <Pair key={name} name={name}>
            <Brief text={value} />
          </Pair>
        ))}
      </dl>
    </section>
  );
}
