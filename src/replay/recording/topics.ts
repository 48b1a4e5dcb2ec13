import { createColumn, createDigestTable, digestText } from './columns.ts';

/** The canonical method, and the tool, prompt or resource that the request is about (`Details.target`). */
export type CallTopic = { method: string; target: string | null };

/**
 * Numbers what requests are about: a method and a target (a tool, a prompt, a resource). The numbers come from the
 * recording's index, without reading a request, so that a live request is compared with those of its own topic only.
 */

/** Topics are numbered from 0. */
export type Topics = {
  /** The topic's number, a new one for a new topic. */
  add(asked: CallTopic): number;
  /** The topic's number, or -1. */
  find(asked: CallTopic): number;
  methodOf(topic: number): string;
  /** The targets of a method; of very many the first. */
  targetsOf(method: string): string[];
  /** In the order in which they first appear. */
  methods: readonly string[];
};

/** How many names are looked up without a digest. Recordings have either few topics, or one for nearly every call. */
const MAX_KNOWN = 4096;

const REPLACED = '\ufffd';

export function createTopics(): Topics {
  const table = createDigestTable();
  const known = new Map<string, number>();
  const methods: string[] = [];
  const methodNumbers = new Map<string, number>();
  const methodOfTopic = createColumn(Uint32Array);
  /** What was looked for last: a name costs more to make than to compare. */
  let last: CallTopic & { topic: number } = { method: '', target: null, topic: -1 };

  function add({ method, target }: CallTopic): number {
    const written = nameOf(method, target);
    const before = known.get(written);
    if (before !== undefined) return before;
    const name = asStored(written);
    const size = table.size();
    const topic = table.add(digestText(name));
    if (known.size < MAX_KNOWN) known.set(name, topic);
    if (topic === size) methodOfTopic.set(topic, numberOf(method));
    return topic;
  }

  function numberOf(method: string): number {
    const number = methodNumbers.get(method) ?? methods.push(method) - 1;
    methodNumbers.set(method, number);
    return number;
  }

  return {
    add,
    find({ method, target }) {
      if (last.topic >= 0 && method === last.method && target === last.target) return last.topic;
      const name = nameOf(method, target);
      const topic = known.get(name) ?? table.find(digestText(asStored(name)));
      last = { method, target, topic };
      return topic;
    },
    methodOf: (topic) => methods[methodOfTopic.at(topic)] ?? '',
    targetsOf: (method) =>
      [...known.keys()].flatMap((name) =>
        name.startsWith(`${method}\0`) ? [name.slice(method.length + 1)] : [],
      ),
    methods,
  };
}

function nameOf(method: string, target: string | null): string {
  return target === null ? method : `${method}\0${target}`;
}

/** Half a surrogate pair comes out of a store as one or more other characters. */
function asStored(name: string): string {
  return /[\ud800-\udfff\ufffd]/.test(name)
    ? Buffer.from(name)
        .toString()
        .replace(/\ufffd+/g, REPLACED)
    : name;
}
