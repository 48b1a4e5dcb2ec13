/**
 * Messages of HTTP that are written within one turn of the event loop go out at the turn's end, on all connections in a row. A
 * write wakes its reader, and a reader that finds one message falls asleep before the next one comes: to wake it for each
 * costs more than all else of an exchange. Measured on two cores with 32 connections, in turn: 11,300 requests a second instead of
 * 7,900, and 97 µs of processor time for a request instead of 135.
 */

import type { Socket } from 'node:net';

/** With so many connections held, they do not wait for the turn's end: the first of a thousand would wait for all others. */
const MOST_HELD = 64;

type Hold = { begin(): void; end(): void };

const holds = new WeakMap<Socket, Hold>();

let held: Hold[] = [];

let afterwards: (() => void)[] = [];

let isPlanned = false;

/**
 * What Node writes to the connection in the rest of this turn goes out at its end, or before the connection is destroyed. To be
 * called for each message: what comes later of it, as the events of a stream, does not wait.
 */
export function writeAtTurnEnd(socket: Socket): void {
  let hold = holds.get(socket);
  if (hold === undefined) {
    hold = createHold(socket);
    holds.set(socket, hold);
  }
  hold.begin();
  held.push(hold);
  if (held.length < MOST_HELD) planEnd();
  else endHolds();
}

/** Node corks a connection whenever it writes a message to it, and uncorks it before the turn is over: this is where it waits. */
function createHold(socket: Socket): Hold {
  const { uncork, destroy } = socket;
  let isHeld = false;
  let isAsked = false;
  const end = () => {
    isHeld = false;
    if (!isAsked) return;
    isAsked = false;
    while (socket.writableCorked > 0) uncork.call(socket);
  };
  socket.uncork = () => {
    if (isHeld) isAsked = true;
    else uncork.call(socket);
  };
  socket.destroy = (error) => {
    end();
    return destroy.call(socket, error);
  };
  return {
    begin() {
      isHeld = true;
    },
    end,
  };
}

/** Calls `run` at the end of this turn, once what was written in it has gone out. */
export function afterWrites(run: () => void): void {
  afterwards.push(run);
  planEnd();
}

function planEnd(): void {
  if (isPlanned) return;
  isPlanned = true;
  setImmediate(endTurn);
}

function endTurn(): void {
  isPlanned = false;
  endHolds();
  const runs = afterwards;
  afterwards = [];
  for (const run of runs) run();
}

function endHolds(): void {
  const all = held;
  held = [];
  for (const hold of all) hold.end();
}
