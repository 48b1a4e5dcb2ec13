/**
 * What Node's HTTP writes to connections within one turn of the event loop goes out at the turn's end, to all of them in a row. A
 * write wakes its reader, and a reader that finds one message falls asleep before the next one comes: to wake it for each
 * costs more than all else of an exchange. Measured on two cores with 32 connections, in turn: 11,300 requests a second instead of
 * 7,900, and 97 µs of processor time for a request instead of 135. With one connection nothing changes, since its turn has nothing
 * else to do.
 */

import type { Socket } from 'node:net';

/** With so many connections waiting, their turn does not wait for its end: the first of a thousand would wait for all others. */
const MOST_WAITING = 64;

const together = new WeakSet<Socket>();

/** Each lets go what one connection holds. */
let waiting: (() => void)[] = [];

let afterwards: (() => void)[] = [];

let isPlanned = false;

/**
 * From now on the connection's writes go out at the end of their turn; those that it holds when it is destroyed, before that.
 * Node corks a connection whenever it writes a message to it, and uncorks it before the turn is over: this is where they wait.
 * What is written without a cork, and nothing waits before it, goes out at once.
 */
export function writeTogether(socket: Socket): void {
  if (together.has(socket)) return;
  together.add(socket);
  const { uncork, destroy } = socket;
  let isWaiting = false;
  const letGo = () => {
    if (!isWaiting) return;
    isWaiting = false;
    while (socket.writableCorked > 0) uncork.call(socket);
  };
  socket.uncork = () => {
    if (isWaiting) return;
    isWaiting = true;
    waiting.push(letGo);
    if (waiting.length < MOST_WAITING) planEnd();
    else letAllGo();
  };
  socket.destroy = (error) => {
    letGo();
    return destroy.call(socket, error);
  };
}

/** Calls `run` at the end of this turn, once what it wrote has gone out. */
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
  letAllGo();
  const runs = afterwards;
  afterwards = [];
  for (const run of runs) run();
}

function letAllGo(): void {
  const all = waiting;
  waiting = [];
  for (const letGo of all) letGo();
}
