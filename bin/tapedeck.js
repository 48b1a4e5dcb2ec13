#!/usr/bin/env node
import module from 'node:module';

// Node keeps what it has compiled in its own folder among the temporary files. NODE_DISABLE_COMPILE_CACHE=1 turns that off.
module.enableCompileCache?.();
const { main } = await import('../dist/main.js');
main(process.argv.slice(2));
