import type { VNode } from 'preact';
import type { SessionDetail } from '../../api.ts';
import { showCount } from '../look/format.ts';
import { LinkButton } from '../look/parts.tsx';
import { about } from '../shell/source.ts';
import { ExportMenu } from './export-menu.tsx';
import css from './menus.module.css';

type SessionLinksProps = {
  detail: SessionDetail;
  filter: string;
  /** How many were found; null: that is not known yet. */
  findings: number | null;
};

/** What else there is of a session: its other screens, and its files. */
export function SessionLinks({ detail, filter, findings }: SessionLinksProps): VNode | null {
  const { session, transport, run } = detail.session;
  if (about.value === null) return null;
  const { can } = about.value;
  return (
    <nav class={css.links} aria-label="This session">
      {can.stats && <LinkButton href={`/s/${session}/stats`}>Statistics</LinkButton>}
      <LinkButton href={`/s/${session}/check`}>
        Findings{findings !== null && ` ${showCount(findings)}`}
      </LinkButton>
      {detail.httpExchanges > 0 && <LinkButton href={`/s/${session}/http`}>HTTP</LinkButton>}
      {can.runs && run !== null && <LinkButton href={`/run/${run}`}>Run</LinkButton>}
      <ExportMenu session={session} transport={transport} filter={filter} />
    </nav>
  );
}
