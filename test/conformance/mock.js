// The mock server under test: a scenario of the suite, recorded in front of a server, is run again against
// `tapedeck replay` of what was recorded.
import { join } from 'node:path';
import { runProgram, startProgram } from './processes.js';
import { bin, createFolder, startRecording } from './proxy.js';
import { testServerScenario } from './suite.js';

const tapedeck = [process.execPath, bin];
const deadline = 30_000;

// Resolves with what the suite finds on the mock.
export async function testScenarioOnMock(url, revision, scenario) {
  const { folder, remove } = await createFolder();
  const db = join(folder, 'recordings.db');
  try {
    const proxy = await startRecording(url, db);
    const recorded = await testServerScenario(proxy.url, revision, scenario);
    await proxy.stop();
    const session = await findMainSession(db);
    // A scenario that the suite skips asks the server nothing.
    if (session === undefined) return recorded;
    const mock = await startMock(session, db);
    const replayed = await testServerScenario(mock.url, revision, scenario);
    await mock.stop();
    return replayed;
  } finally {
    await remove();
  }
}

// Of a scenario that plays several clients, what the busiest one did.
async function findMainSession(db) {
  const { stdout, stderr, exitCode } = await runProgram([...tapedeck, 'list', '--json', '--db', db], {
    deadline,
  });
  if (exitCode !== 0) throw new Error(`tapedeck cannot list the recordings:\n${stderr}`);
  const sessions = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  return sessions.sort((one, other) => other.exchanges - one.exchanges)[0]?.session;
}

async function startMock(session, db) {
  const { said, stop } = await startProgram(
    [...tapedeck, 'replay', session, '--db', db, '--listen', '127.0.0.1:0'],
    { isReady: (text) => listening.test(text) },
  );
  return { url: listening.exec(said.stderr)[1], stop };
}

const listening = /listening on (\S+);/;
