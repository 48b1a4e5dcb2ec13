/** Whether a recording process is well: asked by `/healthz`, and before a service manager's watchdog is fed. */

import type { Watched } from '../store/record/thread.ts';

/** So long the writer's thread may take to answer. Specification: fleet operations, `/healthz`. */
export const ANSWER_MS = 5000;

/** Why the process is not well; null: it is. That this settles shows that the main loop turns. */
export async function findIllness(recorders: readonly Watched[]): Promise<string | null> {
  const answers = await Promise.all(recorders.map((recorder) => recorder.figures(ANSWER_MS)));
  if (!answers.includes(null)) return null;
  return `a writer's thread has not answered within ${ANSWER_MS / 1000} s`;
}
