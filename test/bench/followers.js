// Followers of a viewer, as open tabs are, in a process of their own: `followers.js <origin> <token> <count>`. With every event
// they fetch what is new. Says when all of them follow, and runs until its input ends.
import { followChanges } from './viewer-client.js';

const [origin, token, count] = process.argv.slice(2);

const ask = (path, init = {}) =>
  fetch(origin + path, { ...init, headers: { Authorization: `Bearer ${token}` } });

for (let i = 0; i < Number(count); i += 1) {
  const seen = new Map();
  /** As the page does it: slice after slice, until it has all that is there. */
  const load = async (session) => {
    session.hasMore = true;
    if (session.isLoading) return;
    session.isLoading = true;
    let next = null;
    while (next !== null || session.hasMore) {
      session.hasMore = false;
      const path = `/api/sessions/${session.id}/outline?after=${next ?? session.upTo}`;
      const slice = await (await ask(path)).json();
      session.upTo = slice.seq.at(-1) ?? session.upTo;
      next = slice.next;
    }
    session.isLoading = false;
  };
  await followChanges(ask, ({ kind, id, upTo }) => {
    if (kind !== 'frames') return;
    if (!seen.has(id)) seen.set(id, { id, upTo: Math.max(0, upTo - 200) });
    load(seen.get(id)).catch(() => process.exit(1));
  });
}
console.log('following');
process.stdin.on('end', () => process.exit(0)).resume();
