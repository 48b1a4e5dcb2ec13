import type { VNode } from 'preact';
import type { Ticket } from '../../api.ts';
import { about, source } from '../shell/source.ts';
import { Menu, type MenuItem } from './menu.tsx';

type Form = { format: string; label: string; about: string; isOfHttp?: boolean };

const FORMS: readonly Form[] = [
  { format: 'ndjson', label: 'Text recording', about: 'NDJSON, lossless' },
  { format: 'html', label: 'Report', about: 'one HTML file for a bug report' },
  { format: 'har', label: 'HAR', about: 'for the developer tools of browsers', isOfHttp: true },
  { format: 'markdown', label: 'Markdown', about: 'a report for people' },
  { format: 'mermaid', label: 'Mermaid', about: 'a sequence diagram' },
  { format: 'otlp', label: 'OpenTelemetry', about: 'spans and metrics' },
  { format: 'curl', label: 'curl', about: 'a script of its requests', isOfHttp: true },
];

type ExportMenuProps = { session: string; transport: string; filter: string };

/** A session as a file; of a filtered one what the filter leaves. */
export function ExportMenu({ session, transport, filter }: ExportMenuProps): VNode | null {
  if (about.value?.can.export !== true) return null;
  const forms = FORMS.filter(({ isOfHttp }) => isOfHttp !== true || transport !== 'stdio');
  const items = forms.map(
    ({ format, label, about: what }): MenuItem => ({
      label,
      about: what,
      async act() {
        const asked = new URLSearchParams({ format, ...(filter === '' ? {} : { filter }) });
        await download(`/api/export/${session}?${asked}`);
        return `Exported: ${label}`;
      },
    }),
  );
  return (
    <Menu
      label={filter === '' ? 'Export the session' : 'Export what the filter leaves'}
      icon="download"
      items={items}
    >
      Export
    </Menu>
  );
}

/** A link that is followed carries no token: it gets one that works once. */
async function download(path: string): Promise<void> {
  const ticket = `ticket?for=${encodeURIComponent(path)}`;
  const { url } = await source().json<Ticket>(ticket, new AbortController().signal);
  const link = document.createElement('a');
  link.href = url;
  link.download = '';
  document.body.append(link);
  link.click();
  link.remove();
}
