/** Every screen of the viewer, in each of its states, over one store. */
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { runOfThree } from './run-store.ts';
import { tapedeckInProcess } from './tapedeck.ts';

const [STDIO, HTTP] = ['everything-stdio', 'everything-http'];

/** A path, and a text that is in sight once all of it is there. */
export type Place = readonly [path: string, text: string];

/** The last one is no screen: links alone lead there. */
export const PLACES: readonly Place[] = [
  ['/', STDIO],
  ['/?group=run', '3 sessions'],
  ['/?filter=tool%3Decho&sort=errors', STDIO],
  ['/live', 'Nothing is being recorded'],
  ['/search?q=Hello', 'Hello'],
  ['/search', 'Search in all sessions'],
  ['/stats', 'get-sum'],
  ['/stats?by=session', STDIO],
  [`/s/${STDIO}`, 'get-sum'],
  [`/s/${STDIO}?facts=1`, '14 tools'],
  [`/s/${STDIO}?open=15`, 'tool error'],
  [`/s/${STDIO}?raw=1&wf=0`, 'get-sum'],
  [`/s/${STDIO}?t=100-300`, 'Times'],
  [`/s/${STDIO}?filter=tool%3Decho`, 'echo'],
  [`/s/${STDIO}?hl=tool%3Decho`, 'echo'],
  [`/s/${STDIO}/f/13`, '"tools/call"'],
  [`/s/${STDIO}/f/4?tab=raw`, '"notifications/initialized"'],
  [`/s/${STDIO}/f/4?tab=hex`, '00000000'],
  [`/s/${STDIO}/f/4?tab=bytes`, 'SHA-256'],
  [`/s/${HTTP}/f/1?tab=headers`, 'Content-Type'],
  [`/s/${STDIO}/stats`, 'get-sum'],
  [`/s/${STDIO}/check`, 'tool-arguments'],
  [`/s/${HTTP}/http`, 'DELETE'],
  [`/s/${HTTP}/h/5`, 'Request headers'],
  [`/diff/${STDIO}/${HTTP}?all=1&at=3`, 'Equal calls too'],
  [`/diff/${STDIO}/${HTTP}?view=times`, 'get-sum'],
  ['/run/demo?stretch=1', 'query'],
  ['/nothing/is/here', 'There is no such page'],
];

/** Two sessions of one server, and a run of three. */
export async function storeOfScreens(): Promise<string> {
  const db = await runOfThree();
  for (const name of [STDIO, HTTP]) {
    const { code, stderr } = await tapedeckInProcess(['import', `recordings/${name}.ndjson`, '--db', db]);
    expect([code, stderr]).toEqual([0, '']);
  }
  return db;
}

/** Settles once what the place shows is in sight. */
export async function waitForPlace(page: Page, [, text]: Place): Promise<void> {
  const main = page.getByRole('main');
  await main.getByText(text).filter({ visible: true }).first().waitFor();
}
