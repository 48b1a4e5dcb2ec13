/** The ways by which a client reaches a deck. */

import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Deck } from '../../src/index.ts';

export const WAYS = {
  'the transport': async (deck: Deck) => deck.transport() as Transport,
  'a URL': async (deck: Deck) =>
    new StreamableHTTPClientTransport(new URL((await deck.listen()).url)) as Transport,
  'a command line': async (deck: Deck) =>
    new StdioClientTransport({ ...deck.command(), stderr: 'ignore' }) as Transport,
};
