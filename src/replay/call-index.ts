/**
 * Which of the recorded calls are identical. A call is read, to make its digest, no sooner than that is asked for: when
 * a live call has its topic, and none of those read so far is the answer. As they are read in recorded order, what is
 * said of the k-th identical call holds however many were not read yet. No payload and no text is kept.
 */
import type { Place } from '../protocol/correlate.ts';
import { createColumn } from './column.ts';
import { createDigestTable } from './digest-table.ts';
import type { RequestKey } from './key.ts';
import type { Topics } from './topics.ts';

/** What a request is found by. */
export type CallKey = Pick<RequestKey, 'method' | 'target' | 'digest'>;

/** The calls of a recording, numbered from 0 in recorded order. */
export type RecordedCalls = {
  size: number;
  topics: Topics;
  topicOf(call: number): number;
  placeOf(call: number): Place;
  /** Null where the call cannot be read: it equals no request. */
  digestOf(call: number): Buffer | null;
};

/** Keys are numbered from 0; -1 stands for none, also of calls. */
export type CallIndex = {
  keyNumber(key: CallKey): number;
  /** The key of a call that was read; -1 for one that was not, and so was given to nobody. */
  keyOf(call: number): number;
  firstOf(key: number): number;
  /** The identical call that comes next, from any call that was read. */
  nextSame(call: number): number;
  /** How many identical calls there are, of those that were read. */
  countOf(key: number): number;
  /** How many calls have a topic. */
  sizeOf(topic: number): number;
};

export function indexCalls(calls: RecordedCalls): CallIndex {
  const { size, topics, topicOf } = calls;
  const keys = createDigestTable();
  /** By call, plus one: its key, and the next call with its topic. 0 for none. */
  const keyOfCall = new Uint32Array(size);
  const nextOfTopic = new Uint32Array(size);
  /** By call: the next one with its key; after the last comes the first. */
  const nextOfKey = new Uint32Array(size);
  /** By topic: the first call that was not read yet, plus one, and how many calls there are. */
  const unread = createColumn(Uint32Array);
  const topicSize = createColumn(Uint32Array);
  /** By key: the last call that was read. */
  const last = createColumn(Uint32Array);

  for (let call = size - 1; call >= 0; call -= 1) {
    const topic = topicOf(call);
    nextOfTopic[call] = unread.at(topic);
    unread.set(topic, call + 1);
    topicSize.set(topic, topicSize.at(topic) + 1);
  }

  /** Reads one more call of the topic; false where all were read. */
  function readOne(topic: number): boolean {
    const call = unread.at(topic) - 1;
    if (call < 0) return false;
    const digest = calls.digestOf(call);
    unread.set(topic, nextOfTopic[call] ?? 0);
    if (digest === null) return true;
    const known = keys.size();
    const key = keys.add(digest);
    keyOfCall[call] = key + 1;
    nextOfKey[call] = key === known ? call : firstOf(key);
    if (key !== known) nextOfKey[last.at(key)] = call;
    last.set(key, call);
    return true;
  }

  function firstOf(key: number): number {
    return nextOfKey[last.at(key)] ?? 0;
  }

  const keyOf = (call: number) => (keyOfCall[call] ?? 0) - 1;

  return {
    keyNumber(key) {
      let number = keys.find(key.digest);
      if (number >= 0) return number;
      const topic = topics.find(key);
      while (number < 0 && topic >= 0 && readOne(topic)) number = keys.find(key.digest);
      return number;
    },
    keyOf,
    firstOf,
    nextSame(call) {
      const [key, topic] = [keyOf(call), topicOf(call)];
      while (last.at(key) === call && readOne(topic));
      return last.at(key) === call ? -1 : (nextOfKey[call] ?? 0);
    },
    countOf(key) {
      let count = 1;
      for (let call = firstOf(key); call !== last.at(key); call = nextOfKey[call] ?? 0) count += 1;
      return count;
    },
    sizeOf: topicSize.at,
  };
}
