/** `tapedeck ca`: the certificate authorities of `record --forward`. */

import { join } from 'node:path';
import { expiryOf } from '../../capture/forward/authority.ts';
import { TapedeckError } from '../../errors.ts';
import { formatTime } from '../../inspect/view/text.ts';
import { type Command, say } from '../io.ts';
import { JSON_OPTION } from '../options.ts';
import { writeOutput } from '../output.ts';
import {
  authoritiesFolder,
  CERTIFICATE_FILE,
  forgetAuthority,
  type KeptAuthority,
  keptAuthorities,
} from '../record/authorities.ts';

type Options = { print: boolean; forget: boolean; json: boolean };

export const caCommand: Command<Options> = {
  command: 'ca',
  describe: 'Show or remove the certificate authorities that `record --forward` has made',
  builder: (args) =>
    args
      .usage(
        '$0 ca [--print | --forget]\n\nEach vouches for the hosts that were named and for nothing else, for 30 days. It is in no trust store: clients are told of it by their environment. `run` makes one for itself, and keeps none.',
      )
      .options({
        print: { type: 'boolean', default: false, describe: 'Print the certificates, as PEM' },
        forget: { type: 'boolean', default: false, describe: 'Remove them all, with their keys' },
        json: JSON_OPTION,
      })
      .example('$0 ca', 'Which there are, for which hosts, and until when')
      .example('$0 ca --print', 'For a client that takes certificates in a way of its own')
      .example('$0 ca --forget', 'Clients that were told of them trust nothing more of it'),
  async run({ print, forget, json }, io) {
    if (print && forget)
      throw new TapedeckError('usage', 'Expected either `--print` or `--forget`, got both.');
    const kept = keptAuthorities(authoritiesFolder(io));
    if (forget) for (const authority of kept) forgetAuthority(authority);
    const asText = print ? asPem : json ? asJson : asLine;
    await writeOutput(io, kept.map(asText));
    if (kept.length === 0 && !json)
      say(io, 'there are no certificate authorities; `tapedeck record --forward <https URL>` makes one');
    else if (forget) say(io, 'removed, with their keys');
  },
};

/** With the one after it, which clients may trust before it is used. */
function asPem({ certificate, next }: KeptAuthority): string {
  return `${certificate}${next?.certificate ?? ''}`;
}

function asLine(kept: KeptAuthority): string {
  const until = formatTime(expiryOf(kept) * 1000);
  return `${join(kept.folder, CERTIFICATE_FILE)}  until ${until}  for ${kept.hosts.join(', ')}\n`;
}

function asJson(kept: KeptAuthority): string {
  const { folder, hosts } = kept;
  const expiresAt = new Date(expiryOf(kept)).toISOString();
  return `${JSON.stringify({ file: join(folder, CERTIFICATE_FILE), hosts, expiresAt })}\n`;
}
