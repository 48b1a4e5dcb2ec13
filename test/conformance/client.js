// The program that the suite starts, with its URL as last argument, to test the official client direct.
import { runClient } from './client-scenarios.js';

await runClient(process.argv.at(-1));
