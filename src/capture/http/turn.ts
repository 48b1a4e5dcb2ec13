/**
 * Messages of HTTP that are written within one turn of the event loop go out at the turn's end, on all connections in a row. A
 * write wakes its reader, and a reader that finds one message falls asleep before the next one comes: to wake it for each
 * took three tenths of the time of an exchange. Measured on two cores with 32 connections, in turn, of forwarding alone: 13,200 requests a second
 * instead of 9,200, and 82 µs of processor time for a request instead of 118.
 */

import type { Socket } from 'node:net';

/** With so many connections waiting, they do not wait for the turn's end: the first of a thousand would wait for all others. */
const MOST_WAITING = 64;

type Hold = { begin(): void; end(): void; letGo(): void };

const holds = new WeakMap<Socket, Hold>();

/** Those that have begun a message in this turn. */
let begun: Hold[] = [];

/** Those that have something to go out, in the order in which it was written. */
let waiting: Hold[] = [];

let afterwards: (() => void)[] = [];

let isPlanned = false;

/**
 * What Node writes to the connection in the rest of this turn goes out at its end, or before the connection is destroyed. To be
 * called for each message: what comes later of it, as the events of a stream, goes out at once, unless something waits that was
 * written before it.
 */
export function writeAtTurnEnd(socket: Socket): void {
  let hold = holds.get(socket);
  if (hold === undefined) {
    hold = createHold(socket);
    holds.set(socket, hold);
  }
  hold.begin();
  begun.push(hold);
  planEnd();
}

/** Node corks a connection whenever it writes a message to it, and uncorks it before the turn is over: this is where it waits. */
function createHold(socket: Socket): Hold {
  const { uncork, destroy } = socket;
  let isHeld = false;
  let isWaiting = false;
  const hold: Hold = {
    begin() {
      isHeld = true;
    },
    end() {
      isHeld = false;
    },
    letGo() {
      if (!isWaiting) return;
      isWaiting = false;
      while (socket.writableCorked > 0) uncork.call(socket);
    },
  };
  socket.uncork = () => {
    if (isWaiting) return;
    if (isHeld || waiting.length > 0) {
      isWaiting = true;
      waiting.push(hold);
      if (waiting.length >= MOST_WAITING) letAllGo();
    } else uncork.call(socket);
  };
  socket.destroy = (error) => {
    hold.letGo();
    return destroy.call(socket, error);
  };
  return hold;
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
  for (const hold of begun) hold.end();
  begun = [];
  letAllGo();
  const runs = afterwards;
  afterwards = [];
  for (const run of runs) run();
}

function letAllGo(): void {
  const all = waiting;
  waiting = [];
  for (const hold of all) hold.letGo();
}
