// What passes between clients and servers, by size and kind: many short calls and notifications, answers of prose, code and rows,
// a few of them large, some images. Half of 12,934 frames have up to 195 bytes, nine in ten up to 4.7 kB, and 3 % of all
// bytes are images. The same every time.

const MIX_FRAMES = 12_934;
const WORDS = 4000;

/** The lines of a session, from the client and from the server in turn. */
export function* mixLines(frames = MIX_FRAMES, seed = 20_261_122) {
  const random = createRandom(seed);
  const words = Array.from({ length: WORDS }, () => word(random));
  for (let i = 0; i < frames; i += 1) {
    const id = Math.floor(i / 2) + 1;
    yield i % 2 === 0 ? call(id, random, words) : answer(id, random, words);
  }
}

function call(id, random, words) {
  const path = Array.from({ length: 2 + Math.floor(random() * 3) }, () => common(random, words)).join('/');
  const params = {
    name: `${common(random, words)}_file`,
    arguments: { path: `/srv/projects/service/src/${path}.ts`, limit: Math.floor(random() * 1000) },
  };
  if (random() < 0.2) params._meta = { progressToken: id };
  // Some write what is as long as an answer.
  if (random() < 0.08)
    params.arguments.content = texts[Math.floor(random() * 3)](300 + random() * 6000, random, words);
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
}

function answer(id, random, words) {
  const kind = random();
  const result = (content) => JSON.stringify({ jsonrpc: '2.0', id, result: { content: [content] } });
  if (kind < 0.004) {
    const data = Buffer.from({ length: 22_000 }, () => 0).map(() => Math.floor(random() * 256));
    return result({ type: 'image', data: data.toString('base64'), mimeType: 'image/png' });
  }
  const bytes =
    kind < 0.25
      ? 40 + random() * 80
      : kind < 0.8
        ? 300 + random() ** 2 * 3900
        : 4300 + random() ** 2 * 10_500;
  return result({ type: 'text', text: texts[Math.floor(random() * 3)](bytes, random, words) });
}

/** Prose, code, rows of a table as JSON; each about so many bytes. */
const texts = [
  (bytes, random, words) => {
    let text = '';
    while (text.length < bytes) text += `${common(random, words)}${random() < 0.1 ? '. ' : ' '}`;
    return text;
  },
  (bytes, random, words) => {
    let text = '';
    while (text.length < bytes) {
      const [a, b, c] = [common(random, words), common(random, words), common(random, words)];
      text += `  const ${a} = await ${b}.${c}(${Math.floor(random() * 100)});\n`;
    }
    return text;
  },
  (bytes, random, words) => {
    const rows = [];
    for (let size = 0; size < bytes; size += 110)
      rows.push({
        id: Math.floor(random() * 2 ** 48).toString(16),
        name: `${common(random, words)} ${common(random, words)}`,
        updatedAt: new Date(1.7e12 + random() * 1e10).toISOString(),
        count: Math.floor(random() * 1e5),
      });
    return JSON.stringify(rows);
  },
];

/** Few words are most of a text. */
function common(random, words) {
  return words[Math.floor(words.length ** (random() ** 1.4)) - 1] ?? words[0];
}

function word(random) {
  const length = 2 + Math.floor(random() * 8);
  return Array.from({ length }, () => 'etaoinshrdlucmfwypvbgk'[Math.floor(random() ** 1.5 * 22)]).join('');
}

/** Mulberry32. */
function createRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
