/** A thread that reads the store for `tapedeck mcp`. */

import { serveWorks } from '../../web/reader-thread.ts';
import { ASK_WORKS } from './works.ts';

/** It comes after recorders. */
const NICENESS = 5;

serveWorks(ASK_WORKS, NICENESS);
