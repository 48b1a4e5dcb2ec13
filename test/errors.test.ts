import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { cannotListen } from '../src/cli/listening.ts';
import { writeReport } from '../src/cli/output.ts';
import { openSource } from '../src/cli/play/source.ts';
import { readClientConfig, replaceClientConfig } from '../src/clients/file.ts';
import type { ErrorCode } from '../src/errors.ts';
import { writeHar } from '../src/export/har.ts';
import { openRecording, TapedeckError } from '../src/index.ts';
import { parseFilter } from '../src/inspect/filter/filter.ts';
import { openStore } from '../src/store/file/open.ts';
import { replaceFile } from '../src/store/file/replace-file.ts';
import { findSession } from '../src/store/read/sessions.ts';
import { EVERYTHING_STDIO } from './support/kit.ts';
import { tempFolder, tempStore } from './support/tapedeck.ts';
import { importText } from './support/text-recording.ts';

const RECORDING = readFileSync(EVERYTHING_STDIO, 'utf8');

/** What raises each code. The type asks for a case of every one. */
const CASES: Record<ErrorCode, Record<string, () => unknown>> = {
  usage: {
    'a filter that cannot be read': () => parseFilter('method~', 0),
    'a mode that there is not': () => openRecording(EVERYTHING_STDIO, { mode: 'twice' as 'once' }),
  },
  'not-found': {
    'a file that is not there': () => openSource(process, join(tempFolder(), 'none.ndjson'), undefined),
    'a session that is not there': () => findSession(openStore(tempStore()), 'latest'),
    'a config that is not there': () => readClientConfig(join(tempFolder(), 'config.json')),
  },
  ambiguous: {
    'the beginning of several ids': async () => {
      const store = openStore(tempStore());
      const ids: string[] = [];
      // Ids are hexadecimal: of seventeen, two begin alike.
      while (ids.length < 17) ids.push(await importText(store, RECORDING));
      const firsts = ids.map((id) => id.slice(0, 1));
      findSession(store, firsts.find((one, i) => firsts.indexOf(one) !== i) ?? '');
    },
  },
  io: {
    'a full disk': () => writeReport(process, '/dev/full', 'a report'),
    'a folder that is not there': () => replaceFile(join(tempFolder(), 'none', 'new.ndjson'), ['']),
    'a file in place of a folder': () => replaceFile(join(EVERYTHING_STDIO, 'new.ndjson'), ['']),
    'a folder in place of a file': () => {
      const folder = join(tempFolder(), 'session.ndjson');
      mkdirSync(folder);
      return openSource(process, folder, undefined);
    },
  },
  busy: {
    'a port that somebody listens on': async () => {
      const server = await listening(0);
      const { port } = server.address() as { port: number };
      await listening(port)
        .catch((error) => Promise.reject(cannotListen({ host: '127.0.0.1', port }, error)))
        .finally(() => server.close());
    },
    'a config that its client has just changed': () => {
      const file = join(tempFolder(), 'config.json');
      writeFileSync(file, '{}');
      const config = readClientConfig(file);
      writeFileSync(file, '{"mcpServers":{}}');
      replaceClientConfig(config, Buffer.from('[]'));
    },
  },
  refused: {
    'an HTTP archive of a stdio session': async () => {
      const store = openStore(tempStore());
      await importText(store, RECORDING);
      [...writeHar(store, findSession(store, 'latest'), { onFrame() {} })];
    },
    'a config that is larger than any': () => {
      const file = join(tempFolder(), 'config.json');
      writeFileSync(file, Buffer.alloc(64 * 1024 * 1024 + 1));
      readClientConfig(file);
    },
  },
  corrupt: {
    'a text recording that is cut off': () => importText(openStore(tempStore()), RECORDING.slice(0, -9)),
    'a config that is not UTF-8': () => {
      const file = join(tempFolder(), 'config.json');
      writeFileSync(file, Buffer.of(0xff));
      readClientConfig(file);
    },
  },
  newer: {
    'a store of a newer tapedeck': () => {
      const file = storeWith('user_version', 9999);
      openStore(file);
    },
    'a text recording of a newer tapedeck': () =>
      importText(openStore(tempStore()), RECORDING.replace('{"tapedeck":1', '{"tapedeck":2')),
  },
  'not-a-store': {
    "another program's database": () => {
      const file = tempStore();
      new Database(file).exec('CREATE TABLE theirs (a)').close();
      openStore(file);
    },
  },
  'old-sqlite': {
    'an SQLite with a known fault': async () => {
      vi.resetModules();
      vi.doMock('better-sqlite3', () => ({ default: OldDatabase }));
      const { openStore: openOld } = await import('../src/store/file/open.ts');
      // What was read meanwhile belongs to this case alone: other tests of this process read it anew.
      vi.doUnmock('better-sqlite3');
      vi.resetModules();
      openOld(tempStore());
    },
  },
  stopped: {
    'a signal while a recording is read': () => {
      const reading = openSource(process, EVERYTHING_STDIO, undefined);
      process.emit('SIGHUP', 'SIGHUP');
      return reading;
    },
  },
  assertion: {
    'a call that was not made': async () => {
      const deck = await openRecording(EVERYTHING_STDIO, { mode: 'none' });
      try {
        deck.assertCalled('tools/call');
      } finally {
        await deck.close();
      }
    },
  },
};

class OldDatabase {
  prepare = () => ({ pluck: () => ({ get: () => '3.40.0' }) });
  close() {}
}

function storeWith(pragma: string, value: number): string {
  const file = tempStore();
  const store = openStore(file);
  store.pragma(`${pragma} = ${value}`);
  store.close();
  return file;
}

function listening(port: number) {
  const server = createServer();
  return new Promise<typeof server>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', () => resolve(server));
  });
}

for (const [code, cases] of Object.entries(CASES)) {
  for (const [what, raise] of Object.entries(cases)) {
    test(`${what}: ${code}`, async () => {
      const raised = await new Promise((resolve) => resolve(raise())).catch((error) => error);
      // By its name: modules that were loaded anew have a class of their own.
      expect(raised).toMatchObject({ name: TapedeckError.name, code, message: expect.stringMatching(/\S/) });
    });
  }
}
