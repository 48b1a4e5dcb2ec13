/** Who reads by other ways than a command that prints: of an engine they see what they see of the store. */
import { isDeepStrictEqual } from 'node:util';
import { afterEach, expect, vi } from 'vitest';
import { withEngine } from '../support/engine.ts';
import { type Fleet, fleet, ship } from '../support/fleet.ts';
import {
  RECORDINGS,
  seenInDeck,
  toldToAgent,
  undated,
  VIEWER_PATHS,
  wholeAnswer,
} from '../support/other-readers.ts';
import { inFull } from '../support/scale.ts';
import { tapedeckInProcess, until } from '../support/tapedeck.ts';
import { startUi, storeOf } from '../support/ui.ts';

async function shipped(): Promise<{ own: Fleet; file: string }> {
  const own = await fleet();
  const file = await storeOf(...RECORDINGS);
  await ship(own, file);
  return { own, file };
}

afterEach(() => void vi.unstubAllEnvs());

withEngine('other readers of an engine', () => {
  inFull('the viewer answers what it answers of the store', async () => {
    const { own, file } = await shipped();
    const [here, there] = await Promise.all([file, own.reader].map((db) => startUi(db, [], 0, own.env)));
    const answers = async (path: string) => Promise.all([here, there].map((ui) => wholeAnswer(ui, path)));
    let bytes = 0;
    for (const path of VIEWER_PATHS) {
      let [local, central] = await answers(path);
      // A completion has what was found in its time.
      if (path.startsWith('/api/complete?'))
        await until(`the same values of ${path}`, async () => {
          [local, central] = await answers(path);
          return isDeepStrictEqual(central, local);
        });
      expect(central).toEqual(local);
      bytes += local?.status === 200 ? (local.body?.length ?? 0) : 0;
    }
    expect(bytes).toBeGreaterThan(100_000);
    expect(there?.run.stderr()).toContain('the newest 50 sessions of the engine as they are now');
  });

  inFull('a report as one file is the same', async () => {
    const { own, file } = await shipped();
    const [here, there] = await Promise.all(
      [file, own.reader].map(async (db) => {
        const words = ['export', 'everything-http', '--format', 'html', '--db', db];
        return undated(String((await tapedeckInProcess(words, { env: own.env })).stdout));
      }),
    );
    expect(there?.length).toBeGreaterThan(100_000);
    expect(there).toBe(here);
  });

  inFull('a test finds in a deck what it finds in one of the store', async () => {
    const { own, file } = await shipped();
    vi.stubEnv('XDG_CACHE_HOME', String(own.env['XDG_CACHE_HOME']));
    const local = await seenInDeck('everything-stdio', file);
    expect(await seenInDeck('everything-stdio', own.reader)).toEqual(local);
    expect(await seenInDeck(`${own.reader}#everything-stdio`)).toEqual(local);
  });

  inFull('an agent is answered by every tool, resource and prompt as of the store', async () => {
    const { own, file } = await shipped();
    const [local, central] = [await toldToAgent(file, own.env), await toldToAgent(own.reader, own.env)];
    expect(central).toEqual(local);
  });
});
