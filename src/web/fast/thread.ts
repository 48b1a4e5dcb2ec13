/** The thread of the viewer that answers at once, and that looks for changes. */

import { serveWorks } from '../reader-thread.ts';
import { createWatch } from './watch.ts';
import { FAST_WORKS } from './works.ts';

/** Somebody waits for it, but what is being recorded comes first. */
const NICENESS = 5;

serveWorks(FAST_WORKS, NICENESS, createWatch);
