/**
 * An offer as a file, for stubs without the server: JSON, which its readers may edit. What the server said keeps every digit.
 *
 *     { "tapedeckOffer": 1, "legacy": { "handshake": {…}, "lists": { "tools/list": [ { "cursor": null, "result": {…} } ] } }, "modern": null }
 */

import { TapedeckError } from '../../errors.ts';
import { memberAt, sourceAt, withoutSpace } from '../../protocol/json/edit.ts';
import { eachElement, eachMember, isObject } from '../../protocol/json/read.ts';
import { isList, type ListMethod } from '../verify/offers.ts';
import type { EraOffer, ListPage, ServerOffer } from './ask.ts';

const FORMAT = 'tapedeckOffer';

const VERSION = 1;

/** `redacted`: what is stored of a message. */
export function writeOffer({ legacy, modern }: ServerOffer, redacted: (message: Buffer) => Buffer): string {
  function kept(member: ListPage['member'], json: string): string {
    return (
      sourceAt(redacted(Buffer.from(`{"jsonrpc":"2.0","id":1,"${member}":${json}}`)), [member]) ?? 'null'
    );
  }

  function page({ cursor, member, json }: ListPage): string {
    return `{"cursor":${cursor},"${member}":${kept(member, json)}}`;
  }

  function era(offer: EraOffer | null): string {
    if (offer === null) return 'null';
    const lists = Array.from(offer.lists, ([method, pages]) => `"${method}":[${pages.map(page).join(',')}]`);
    return `{"handshake":${kept('result', offer.handshake)},"lists":{${lists.join(',')}}}`;
  }

  return `${readable(`{"${FORMAT}":${VERSION},"legacy":${era(legacy)},"modern":${era(modern)}}`)}\n`;
}

/** In lines, where JSON's own way of writing changes nothing. */
function readable(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text ? JSON.stringify(value, null, 2) : text;
  } catch (error) {
    // Too deep to be written by anything that recurses.
    if (error instanceof RangeError) return text;
    throw error;
  }
}

/** Throws `TapedeckError` `corrupt` for a file that has no offer, and `newer`. `name`: the file's, for people. */
export function readOffer(file: Buffer, name: string): ServerOffer {
  const value = parsed(file);
  const version = isObject(value) ? value[FORMAT] : undefined;
  if (!isObject(value) || typeof version !== 'number')
    throw new TapedeckError(
      'corrupt',
      `${name} holds no offer of a server. One is made by: tapedeck replay --stub --save offer.json -- ./server`,
    );
  if (version > VERSION) throw new TapedeckError('newer', `${name} was written by a newer tapedeck.`);
  const [legacy, modern] = [readEra(file, 'legacy'), readEra(file, 'modern')];
  if (legacy === null && modern === null)
    throw new TapedeckError(
      'corrupt',
      `${name} has neither a \`legacy\` nor a \`modern\` offer with a \`handshake\`.`,
    );
  return { legacy, modern };
}

function parsed(file: Buffer): unknown {
  try {
    return JSON.parse(file.toString());
  } catch {
    return null;
  }
}

/** What is of another form than it should be is left out. */
function readEra(file: Buffer, era: string): EraOffer | null {
  const handshake = memberAt(file, [era, 'handshake']);
  if (handshake?.type !== 'object') return null;
  const lists = new Map<ListMethod, ListPage[]>();
  const all = memberAt(file, [era, 'lists']);
  if (all?.type === 'object')
    eachMember(file, all.start, (method, pages) => {
      if (isList(method) && pages.type === 'array') lists.set(method, readPages(file, pages.start));
    });
  return { handshake: compact(file.subarray(handshake.start, handshake.end)), lists };
}

function readPages(file: Buffer, start: number): ListPage[] {
  const pages: ListPage[] = [];
  eachElement(file, start, ({ start: from, end, type }) => {
    if (type !== 'object') return;
    const page = file.subarray(from, end);
    const cursor = sourceAt(page, ['cursor']) ?? 'null';
    for (const member of ['result', 'error'] as const) {
      const json = sourceAt(page, [member]);
      if (json !== undefined)
        pages.push({ cursor: cursor === 'null' ? null : cursor, member, json: compact(Buffer.from(json)) });
    }
  });
  return pages;
}

function compact(json: Buffer): string {
  return withoutSpace(json).toString();
}
