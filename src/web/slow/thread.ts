/** A thread of the viewer that searches and counts. */

import { serveWorks } from '../reader-thread.ts';
import { SLOW_WORKS } from './works.ts';

/** It comes after recorders and after the fast reader. */
const NICENESS = 10;

serveWorks(SLOW_WORKS, NICENESS);
