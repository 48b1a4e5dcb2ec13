/** `record <url>` and the forward proxy with faults: what the proxy answers goes to the client by way of them. */

import { now } from '../../capture/clock.ts';
import type { HttpOptions } from '../../capture/http/proxy.ts';
import { createFaults, type RawFaults, readFaults } from '../../fault/faults.ts';
import { createHttpFaults } from '../../fault/http/http.ts';

type FaultyProxy = {
  hooks: Pick<HttpOptions, 'onEvent' | 'onOpen'>;
  /** All is over: says what was done. */
  end(): void;
};

/** Throws `TapedeckError` `usage` for a fault that cannot be read, or not be carried out here. Says that faults come. */
export function putHttpFaultsIn(
  raw: RawFaults,
  onEvent: HttpOptions['onEvent'],
  say: (text: string) => void,
): FaultyProxy {
  const settings = readFaults(raw, 'record-http');
  if (settings === null) return { hooks: { onEvent }, end() {} };
  const faults = createFaults(settings, say);
  const http = createHttpFaults({ faults, now, onEvent });
  say(faults.startText());
  return {
    hooks: { onEvent: http.onEvent, onOpen: http.open },
    end() {
      faults.close();
      for (const text of faults.endTexts()) say(text);
    },
  };
}
