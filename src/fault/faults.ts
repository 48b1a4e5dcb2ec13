/** The faults of one run: what was asked for, what is chosen, what is told of it. */

import { createHash, randomInt } from 'node:crypto';
import { TapedeckError } from '../errors.ts';
import { jsonOf } from '../protocol/message/conversation.ts';
import { escapeText } from '../protocol/text.ts';
import type { Direction, Frame, FrameFault } from '../protocol/wire/frame.ts';
import type { Action, FaultPlace } from './action.ts';
import { type Chosen, createJudge } from './decide.ts';
import { type Effect, effectOf } from './effect.ts';
import { type FaultRule, readFaultRules } from './rule.ts';

/** As they stand on a command line, in a configuration file, or in the options of a deck. */
export type RawFaults = {
  fault?: readonly string[] | undefined;
  seed?: string | number | undefined;
  'max-faults'?: string | number | undefined;
  'fault-plan'?: boolean | undefined;
};

/** `most`: no more faults than so many; null: any number. */
export type FaultSettings = {
  rules: readonly FaultRule[];
  seed: number;
  most: number | null;
  showsPlan: boolean;
};

const SEEDS = 2 ** 32;

/**
 * Null where no fault is asked for. Chooses a seed where none is given. Throws `TapedeckError` `usage` for a rule that cannot be
 * read, or not be carried out at that place, and for what makes no sense without a rule.
 */
export function readFaults(raw: RawFaults, place: FaultPlace): FaultSettings | null {
  const { fault = [], seed, 'max-faults': most, 'fault-plan': showsPlan = false } = raw;
  if (fault.length === 0) {
    const stray =
      seed !== undefined ? 'seed' : most !== undefined ? 'max-faults' : showsPlan ? 'fault-plan' : null;
    if (stray === null) return null;
    throw new TapedeckError('usage', `Expected \`--fault\` with \`--${stray}\`. See: tapedeck help faults`);
  }
  return {
    rules: readFaultRules(fault, place),
    seed: seed === undefined ? randomInt(SEEDS) : wholeNumber('--seed', seed),
    most: most === undefined ? null : wholeNumber('--max-faults', most),
    showsPlan,
  };
}

function wholeNumber(option: string, value: string | number): number {
  const text = String(value);
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new TapedeckError(
    'usage',
    `Expected a whole number after \`${option}\`, got \`${escapeText(text)}\`.`,
  );
}

/** A message that gets a fault, and what becomes of it. */
export type Fault = { chosen: Chosen; effect: Effect };

export type Faults = {
  /** Whether a rule answers with a status of HTTP. */
  changesStatus: boolean;
  /** Whether a rule is about what goes in this direction. */
  isAbout(direction: Direction): boolean;
  /** What could not be held until it was decided upon has passed as it is: said once, and counted. */
  letPass(): void;
  /**
   * Takes each frame in the order in which it passes, before it goes on. Returns what is to happen to it; null: nothing.
   * `refuses`: actions that this frame cannot have.
   */
  choose(frame: Frame, refuses?: (action: Action) => boolean): Fault | null;
  /** One line for people, and after it those of the plan, where that was asked for. */
  startText(): string;
  endTexts(): string[];
  /** The same of what was only tried. */
  planTexts(): string[];
  close(): void;
};

/** `onNotice` is called with what people should know at once. */
export function createFaults(
  { rules, seed, most, showsPlan }: FaultSettings,
  onNotice: (text: string) => void = () => {},
): Faults {
  const counts = new Map<number, number>();
  const plan: PlanRow[] = [];
  let count = 0;
  let passed = 0;
  const judge = createJudge({ rules, seed, mayMore: () => most === null || count < most });

  function shares(): string {
    const by = [...counts].sort(([a], [b]) => a - b).map(([number, some]) => `rule ${number}: ${some}`);
    return by.length === 0 ? '' : ` (${by.join(', ')})`;
  }

  return {
    changesStatus: rules.some(({ action }) => action.name === 'http'),
    isAbout: (direction) => rules.some((rule) => rule.direction === direction),
    letPass() {
      passed += 1;
      if (passed === 1) onNotice(TOO_LARGE);
    },
    choose(frame, refuses) {
      const chosen = judge.judge(frame, refuses);
      if (chosen === null) return null;
      const { number } = chosen.rule;
      count += 1;
      counts.set(number, (counts.get(number) ?? 0) + 1);
      const effect = effectOf(chosen, jsonOf(frame));
      if (showsPlan) plan.push({ ...chosen.call, number, action: effect.text });
      return { chosen, effect };
    },
    startText() {
      const what = rules.length === 1 ? '1 rule' : `${rules.length} rules`;
      return `faults are put in on purpose: ${what}, --seed ${seed}`;
    },
    endTexts() {
      const total = `${count} ${count === 1 ? 'fault was' : 'faults were'} put in on purpose`;
      return [...planLines(plan), `${total}${shares()}, --seed ${seed}`, ...passedLines(passed)];
    },
    planTexts() {
      const total = `${count} ${count === 1 ? 'fault' : 'faults'} would be put in`;
      return [...planLines(plan), `${total}${shares()}, --seed ${seed}`];
    },
    close: judge.close,
  };
}

const TOO_LARGE =
  'a body, or an event, is too large for a fault, and passes as it is: over 16 MiB, or over 256 MiB with all that is held';

function passedLines(count: number): string[] {
  if (count === 0) return [];
  return [`${count} ${count === 1 ? 'body or event was' : 'bodies or events were'} too large for a fault`];
}

/** A fault of a plan: to which of equal calls it goes. */
type PlanRow = { key: string; name: string; times: number; number: number; action: string };

/** In an order that does not depend on when each was chosen. */
function planLines(plan: readonly PlanRow[]): string[] {
  const order = ({ name, key, times }: PlanRow) => `${name}\0${key}\0${String(times).padStart(9, '0')}`;
  return plan
    .toSorted((one, other) => (order(one) < order(other) ? -1 : 1))
    .map(
      ({ key, name, times, number, action }) =>
        `plan: ${escapeText(name)} ${shortOf(key)} #${times}: fault ${number}: ${action}`,
    );
}

/** Tells calls of one name apart. */
function shortOf(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 6);
}

/** What is stored of a fault with its frame. `original`: what was said, where that did not go on as it was. */
export function markOf({ rule }: Chosen, { text }: Effect, original: Buffer | null): FrameFault {
  return { number: rule.number, rule: rule.text, action: text, original };
}
