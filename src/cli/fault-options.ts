/** The options of faults, the same for all commands that have them. Asked before anything is started, so this loads nothing. */

import type { RawFaults } from '../fault/faults.ts';

export const FAULT_OPTIONS = {
  fault: {
    type: 'string',
    multiple: true,
    describe:
      'Put a fault in on purpose: filter, action and chance (see: tapedeck help faults); may be repeated',
  },
  seed: {
    type: 'string',
    describe: 'Choose as in the run with this seed (default: a new one, which is printed)',
  },
  'max-faults': { type: 'string', describe: 'Put in no more faults than so many' },
  'fault-plan': { type: 'boolean', describe: 'Print which calls get which faults' },
} as const;

/** Whether one of them was given: else nothing of faults is loaded. */
export function asksForFaults({ fault = [], seed, ...raw }: RawFaults): boolean {
  return (
    fault.length > 0 || seed !== undefined || raw['max-faults'] !== undefined || raw['fault-plan'] === true
  );
}
