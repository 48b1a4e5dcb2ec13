/**
 * Tells which recorded client a live one is, so that nobody gets what was said to another. A live client is bound at its
 * first request, by its handshake: the params of its `initialize`, or what it says of itself in `_meta` (2026-07-28). It
 * becomes the first recorded client with the same handshake that no other one is or was; then, where recorded clients may
 * be shared, one that has left, and then the one that was bound first. Each begins at its first call.
 *
 * Of recorded clients with one handshake, a live one is another as soon as it asks what only that one asked, if all answers
 * that it had are those of that one, too. Two live clients may change places so. Answers that differ are never mixed.
 *
 * Who comes with another handshake than all recorded clients is taken by its name and version, or by its name. Where names
 * tell nothing, because there is only one, any recorded client will do. Where there is one recorded client, everybody is it.
 */

import { canonicalText, KEEP_ALL, type MemberFilter } from '../../protocol/json/canonical.ts';
import { substituteOne } from '../../protocol/json/edit.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import { FIRST_CLIENT } from '../../protocol/wire/frame.ts';
import type { Recording } from '../recording/recording.ts';
import type { Script } from '../recording/script.ts';
import { findParams, type RequestKey } from './key.ts';
import { type CallCursor, type CallTable, createMatcher, type Hit, type NoHit } from './matcher.ts';
import { loadIfThere } from './recording-keys.ts';
import type { Repeat } from './repeat.ts';

type ClientsOptions = {
  repeat: Repeat;
  digestOf: CallTable['digestOf'];
  /** Recorded calls that are no part of a conversation. */
  leftOut: ReadonlySet<number>;
  /** Whether a live client may be a recorded one that another live client is or was. */
  areShared: boolean;
};

/** One live client. */
export type BoundClient = {
  /** Binds it, if it is not bound yet. False where no recorded client is this one. Call it before `next`. */
  meet(request: RequestMessage, json: Buffer): boolean;
  /** The recorded call that answers, by its number in the script. */
  next(key: RequestKey): Hit | NoHit;
  /** As those of a cursor, for a client that has asked before and can be no other one. */
  nextLike(call: number): Hit | null;
  takeLike(hit: Hit): void;
  nextInStep(): number;
  takeInStep(): void;
  candidates: CallCursor['candidates'];
  /** Another recorded client that asked this; null where none did. */
  askedBy(key: RequestKey): number | null;
  /** The recorded client that it is; null while it is none. */
  boundTo(): number | null;
  /** The number for what is added to the recording: that of the recorded client, or a new one. It is never another one after. */
  number(): number;
  leave(): void;
};

export type Clients = {
  connect(): BoundClient;
  /** The calls of all recorded clients beyond those that were asked for, by their numbers in the script. */
  unasked(): number[];
  /** How many calls they have. */
  size: number;
  /** Reads calls before anybody asks for them, as long as there is time. */
  readAhead(isTime: () => boolean): void;
};

/** What a client says of itself. */
type Handshake = { whole: string; name: string | null; version: string | null };

/** A recorded client, as live ones may be it. */
type Role = {
  number: number;
  calls: RoleCalls;
  /** More than one where a client probed first; none where it never said who it is. */
  handshakes: readonly Handshake[];
  /** The live clients that are this one. */
  players: Set<Player>;
  /** When it was last bound for more than a probe; 0 for never. */
  takenAt: number;
};

/** The calls of one recorded client, by their numbers in the script. */
type RoleCalls = {
  size: number;
  connect(): CallCursor;
  tryOut(): Pick<CallCursor, 'next'>;
  unasked(): Iterable<number>;
  readAhead(isTime: () => boolean): void;
};

type Player = {
  role: Role | null;
  cursor: CallCursor | null;
  /** The recorded clients that it may be. */
  roles: readonly Role[];
  /** It has said who it is, and not only to ask for the revisions that the server speaks. */
  isKnown: boolean;
  /** It has asked for more than these. */
  isAsking: boolean;
  /** What it was answered. Null where it stays who it is: that is too much to be compared, or was added to the recording. */
  heard: { key: RequestKey; call: number }[] | null;
};

/** After so many answers a client stays who it is. */
const MAX_HEARD = 256;

const PROBE = 'server/discover';

const NOBODY: Handshake = { whole: '', name: null, version: null };

export function createClients(recording: Recording, options: ClientsOptions): Clients {
  const roles = readRoles(recording, options);
  const { areShared } = options;
  let lastNumber = Math.max(FIRST_CLIENT - 1, ...recording.script.clients);
  let clock = 0;
  const isOnly = roles.length === 1;

  /** The recorded clients that a live one may be. */
  function rolesFor(own: Handshake): readonly Role[] {
    const { whole, name, version } = own;
    const tests: ((one: Handshake) => boolean)[] = [
      (one) => one.whole === whole,
      (one) => one.name !== null && one.name === name && one.version === version,
      (one) => one.name !== null && one.name === name,
    ];
    for (const test of tests) {
      const found = roles.filter(({ handshakes }) =>
        handshakes.length === 0 ? test(NOBODY) : handshakes.some(test),
      );
      if (found.length > 0) return found;
    }
    const names = new Set(roles.map(({ handshakes }) => handshakes[0]?.name));
    return name === null || names.size === 1 ? roles : [];
  }

  function choose(among: readonly Role[]): Role | null {
    const free = among.filter(({ takenAt }) => takenAt === 0 || areShared);
    const order = (a: Role, b: Role) =>
      Number(a.takenAt > 0) - Number(b.takenAt > 0) ||
      a.players.size - b.players.size ||
      a.takenAt - b.takenAt;
    return free.toSorted(order)[0] ?? null;
  }

  function enter(player: Player): void {
    const { heard } = player;
    const isSilent = heard === null || heard.length === 0;
    bind(
      player,
      choose(isSilent ? player.roles : player.roles.filter((role) => couldBe(role, player, null))),
    );
  }

  function bind(player: Player, role: Role | null): void {
    const { role: before } = player;
    // It was nobody's, after all.
    if (before?.players.delete(player) && before.players.size === 0) before.takenAt = 0;
    player.role = role;
    player.cursor = role?.calls.connect() ?? null;
    for (const { key } of player.heard ?? []) player.cursor?.next(key);
    // Where everybody is the one client, nobody is counted: some leave without a word.
    if (!isOnly) role?.players.add(player);
    if (role !== null && player.isAsking) take(role);
  }

  function take(role: Role): void {
    clock += 1;
    role.takenAt = clock;
  }

  /** Whether all that a client was answered would have been answered so by this role; with `key`, that too. */
  function couldBe(role: Role, { heard }: Player, key: RequestKey | null): boolean {
    if (heard === null) return false;
    const cursor = role.calls.tryOut();
    const isSame = heard.every((one) => {
      const hit = cursor.next(one.key);
      return hit.kind === 'hit' && areAlike(recording, one.call, hit.call);
    });
    return isSame && (key === null || cursor.next(key).kind === 'hit');
  }

  /** Makes a client another one that was recorded with its handshake, if that one asked this. */
  function recast(player: Player, key: RequestKey): boolean {
    const { role: before } = player;
    for (const role of player.roles) {
      if (role === before || !couldBe(role, player, key)) continue;
      const [other, ...more] = role.players;
      if (other !== undefined) {
        if (more.length > 0 || before === null || !couldBe(before, other, null)) continue;
        bind(other, before);
      } else if (role.takenAt > 0 && !areShared) continue;
      bind(player, role);
      return true;
    }
    return false;
  }

  function connect(): BoundClient {
    const player: Player = {
      ...{ role: null, cursor: null, roles, isKnown: false, isAsking: false },
      heard: isOnly ? null : [],
    };
    let number: number | null = null;

    function meet(request: RequestMessage, json: Buffer): boolean {
      const saysWho = request.canonical === 'initialize' || request.details.isModern;
      if (!player.isKnown && (player.role === null || saysWho)) {
        if (!isOnly) player.roles = rolesFor(handshakeOf(recording, request, json));
        if (player.role === null || !player.roles.includes(player.role)) enter(player);
      }
      if (saysWho && request.canonical !== PROBE) {
        player.isKnown = true;
        ask();
      }
      return player.role !== null;
    }

    function ask(): void {
      if (player.isAsking) return;
      player.isAsking = true;
      if (player.role !== null) take(player.role);
    }

    function next(key: RequestKey): Hit | NoHit {
      const found = play(key);
      if (found.kind === 'hit' || player.roles.length < 2 || !recast(player, key)) return found;
      return play(key);
    }

    function play(key: RequestKey): Hit | NoHit {
      const found = player.cursor?.next(key) ?? NOTHING;
      if (found.kind === 'hit' && key.method !== PROBE) ask();
      if (found.kind === 'hit' && player.heard !== null && key.method !== PROBE) {
        player.heard.push({ key, call: found.call });
        if (player.heard.length > MAX_HEARD) player.heard = null;
      }
      return found;
    }

    return {
      meet,
      next,
      nextLike: (call) => (isOnly && player.isAsking ? (player.cursor?.nextLike(call) ?? null) : null),
      takeLike: (hit) => player.cursor?.takeLike(hit),
      nextInStep: () => (isOnly && player.isAsking ? (player.cursor?.nextInStep() ?? -1) : -1),
      takeInStep: () => player.cursor?.takeInStep(),
      candidates: (key, max) => player.cursor?.candidates(key, max) ?? { candidates: [], isCut: false },
      askedBy(key) {
        const others = isOnly ? [] : roles.filter((role) => role !== player.role);
        return others.find(({ calls }) => calls.tryOut().next(key).kind === 'hit')?.number ?? null;
      },
      boundTo: () => player.role?.number ?? null,
      number() {
        if (number !== null) return number;
        player.heard = null;
        number = player.role?.number ?? lastNumber + 1;
        lastNumber = Math.max(lastNumber, number);
        return number;
      },
      leave: () => void player.role?.players.delete(player),
    };
  }

  return {
    connect,
    unasked: () => roles.flatMap(({ calls }) => [...calls.unasked()]).toSorted((a, b) => a - b),
    size: roles.reduce((size, { calls }) => size + calls.size, 0),
    readAhead(isTime) {
      for (const { calls } of roles) calls.readAhead(isTime);
    },
  };
}

const NOTHING: NoHit = { kind: 'miss', reason: 'never-recorded', recorded: 0, isMethodKnown: true };

function readRoles(recording: Recording, options: ClientsOptions): Role[] {
  const { script } = recording;
  const { leftOut } = options;
  const [only = FIRST_CLIENT] = script.clients;
  const players = (): Set<Player> => new Set();
  if (script.clients.length < 2 && leftOut.size === 0) {
    const calls = roleCalls(script, null, options);
    return [{ number: only, calls, handshakes: [], players: players(), takenAt: 0 }];
  }
  const calls = new Map<number, number[]>(script.clients.map((client) => [client, []]));
  for (let call = 0; call < script.size; call += 1)
    if (!leftOut.has(call)) calls.get(script.clientOf(call))?.push(call);
  // Who was only refused has no part.
  const asking = [...calls].filter(([, own]) => own.length > 0);
  return (asking.length > 0 ? asking : [...calls].slice(0, 1)).map(([number, own]) => ({
    number,
    calls: roleCalls(script, own, options),
    handshakes: asking.length > 1 ? handshakesOf(recording, own) : [],
    players: players(),
    takenAt: 0,
  }));
}

/** `own`: null for all calls of the script. */
function roleCalls(
  script: Script,
  own: readonly number[] | null,
  { digestOf, repeat }: Pick<ClientsOptions, 'digestOf' | 'repeat'>,
): RoleCalls {
  const callOf = own === null ? (n: number) => n : (n: number) => own[n] ?? -1;
  const size = own === null ? script.size : own.length;
  const matcher = createMatcher(
    {
      size,
      topics: script.topics,
      topicOf: (n) => script.topicOf(callOf(n)),
      placeOf: (n) => script.placeOf(callOf(n)),
      digestOf: (n) => digestOf(callOf(n)),
    },
    repeat,
  );
  const inScript = <T extends Pick<CallCursor, 'next'>>(cursor: T): T =>
    own === null
      ? cursor
      : {
          ...cursor,
          // The numbers of its calls are not those of the script.
          isFirst: () => false,
          nextInStep: () => -1,
          next(key) {
            const found = cursor.next(key);
            return found.kind === 'hit' ? { ...found, call: callOf(found.call) } : found;
          },
        };
  return {
    size,
    connect: () => inScript(matcher.connect()),
    tryOut: () => inScript(matcher.tryOut()),
    *unasked() {
      for (const n of matcher.unasked()) yield callOf(n);
    },
    readAhead: matcher.readAhead,
  };
}

/** A handshake stands at the beginning. */
const MAX_SEARCHED = 16;

function handshakesOf(recording: Recording, calls: readonly number[]): Handshake[] {
  return calls.slice(0, MAX_SEARCHED).flatMap((call) => {
    const json = loadIfThere(recording, recording.script.placeOf(call));
    const message = json === null ? undefined : recording.read(json);
    if (json === null || message?.kind !== 'request') return [];
    const { canonical, details } = message;
    return canonical === 'initialize' || details.isModern ? [handshakeOf(recording, message, json)] : [];
  });
}

/** As it would have been recorded. */
function handshakeOf(recording: Recording, { canonical, details }: RequestMessage, json: Buffer): Handshake {
  const isHandshake = canonical === 'initialize';
  if (!isHandshake && !details.isModern) return NOBODY;
  const text = recording.comparable(recording.redacted(json));
  const params = findParams(text, 0);
  const whole = params === null ? null : canonicalText(text, params, isHandshake ? HANDSHAKE : MODERN);
  const { name = null, version = null } = details.peer ?? {};
  return { whole: Buffer.isBuffer(whole) ? whole.toString('latin1') : '', name, version };
}

/** Members of `initialize` that are new in each run stand in `_meta`. */
const HANDSHAKE: MemberFilter = only((name) => name !== '_meta', KEEP_ALL);

const ABOUT_CLIENT = new Set([
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/clientCapabilities',
]);

const MODERN: MemberFilter = only(
  (name) => name === '_meta',
  only((name) => ABOUT_CLIENT.has(String(name)), KEEP_ALL),
);

function only(isKept: (step: string | number) => boolean, inside: MemberFilter): MemberFilter {
  return { enter: (step) => (isKept(step) ? inside : null), dropsEmpty: false };
}

/** Whether two recorded calls had one answer, apart from its id. */
function areAlike(recording: Recording, one: number, other: number): boolean {
  if (one === other) return true;
  const answers = [one, other].map((call) => answerText(recording, call));
  return answers[0] === answers[1];
}

function answerText(recording: Recording, call: number): string | null {
  const answer = recording.script.stepsOf(call).find(({ isAnswer }) => isAnswer);
  const json = answer === undefined ? null : loadIfThere(recording, answer.place);
  return json === null ? null : substituteOne(json, ['id'], '0').toString('latin1');
}
