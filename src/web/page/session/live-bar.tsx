/** A session while it is recorded: what is in flight, whether the list follows, and how much came since. */
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { counted, showLasting } from '../look/format.ts';
import { Button, Status } from '../look/parts.tsx';
import { Brief } from '../look/text.tsx';
import { useKeys } from '../shell/keys.ts';
import type { SessionOutline } from './outline.ts';
import css from './session.module.css';

export type Following = {
  isOn: boolean;
  /** How many rows came since it was off. */
  missed: number;
  turn(): void;
  onLeave(): void;
};

/** On from the start, unless a frame was asked for. */
export function useFollowing(isLive: boolean, seq: number, rows: number): Following {
  const [isOn, setOn] = useState(isLive && seq === 0);
  const seen = useRef(rows);
  if (isOn) seen.current = rows;
  const turn = () => setOn(!isOn);
  useKeys({
    // Only while it is off: End otherwise goes to the last row, as everywhere.
    End: () => {
      if (isLive && !isOn) setOn(true);
      return false;
    },
  });
  return { isOn, missed: Math.max(0, rows - seen.current), turn, onLeave: () => setOn(false) };
}

const SLOW_MICROS = 5_000_000;
const SHOWN = 3;

type LiveBarProps = {
  sessions: readonly { outline: SessionOutline; startedAt: number }[];
  children?: ComponentChildren;
  following: Following;
  isPaused: boolean;
  onPause(): void;
};

export function LiveBar({ sessions, children, following, isPaused, onPause }: LiveBarProps): VNode {
  const calls = sessions.flatMap(({ outline, startedAt }) =>
    [...outline.open].map((call) => ({ outline, call, at: startedAt + outline.number('at', call) })),
  );
  const now = useNow(calls.length > 0) * 1000;
  return (
    <div class={css.live}>
      <Status tone="live" icon="radio">
        {isPaused ? 'paused' : 'recording'}
      </Status>
      <Button pressed={following.isOn} onClick={following.turn} label="Keep the latest row in sight (f)">
        Follow
      </Button>
      <Button pressed={isPaused} onClick={onPause} label="Let the list stand still">
        Pause
      </Button>
      {!following.isOn && following.missed > 0 && (
        <Button kind="primary" onClick={following.turn}>
          {counted(following.missed, 'new row')}
        </Button>
      )}
      {children}
      <span class={css.flight}>
        {calls.length === 0 ? 'nothing in flight' : `${calls.length} in flight`}
        {calls.slice(-SHOWN).map((call) => (
          <InFlight key={`${call.at} ${call.call}`} {...call} now={now} />
        ))}
      </span>
    </div>
  );
}

type InFlightProps = { outline: SessionOutline; call: number; at: number; now: number };

function InFlight({ outline, call, at, now }: InFlightProps): VNode {
  const age = Math.max(0, now - at);
  const isSlow = age > SLOW_MICROS;
  return (
    <Status tone={isSlow ? 'warn' : 'quiet'}>
      <Brief text={outline.text('target', call) || outline.text('method', call)} /> {showLasting(age)}
      {isSlow && ' (slow)'}
    </Status>
  );
}

/** The time in milliseconds, every second while it matters. */
function useNow(isWanted: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isWanted) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isWanted]);
  return now;
}
