/**
 * The first line of a text recording: the session. Left out is what means something on one machine only: the session's id,
 * its host, folder and processes. What the frames tell (client, server, protocol version) stands there for people.
 */

import { parseJsonPath } from '../../protocol/json/path.ts';
import { readCustomRule } from '../../protocol/redact/custom-rules.ts';
import { withMetaFor } from '../../protocol/redact/profile.ts';
import { formatIsoTime, parseIsoTime } from '../../protocol/text.ts';
import type {
  Basis,
  EndReason,
  Loss,
  RunEvidence,
  SessionEnd,
  SessionRedaction,
  Transport,
} from '../../store/file/columns.ts';
import type { SessionDetails, SessionRow } from '../../store/read/sessions.ts';
import { BadLine, type Members, NewerFormat, required } from './members.ts';

/** What is written, and the newest that is read. */
const FORMAT = 1;

export type Header = {
  name: string | null;
  labels: [key: string, value: string][];
  basis: Basis;
  transport: Transport;
  target: string;
  command: string[] | null;
  at: number;
  /** Null: nobody knows. */
  end: SessionEnd | null;
  loss: Loss;
  /** The share of such sessions that are kept; null: all are, or it is no part of a sample. */
  sample: number | null;
  tapedeck: string | null;
  redaction: SessionRedaction | null;
  run: RunEvidence | null;
};

const BASES: Record<Basis, true> = {
  'stdio-process': true,
  'sdk-transport': true,
  'session-header': true,
  'sse-endpoint': true,
  stateless: true,
};

const TRANSPORTS: Record<Transport, true> = { stdio: true, http: true, sse: true };

const END_REASONS: Record<EndReason, true> = {
  'client-closed': true,
  'server-exited': true,
  signalled: true,
  'not-started': true,
  stopped: true,
  deleted: true,
  gone: true,
  idle: true,
  'crowded-out': true,
  'server-closed': true,
};

const MEMBERS = [
  'name',
  'labels',
  'basis',
  'transport',
  'target',
  'command',
  'startedAt',
  'endedAt',
  'endReason',
  'exitCode',
  'signal',
  'clientClosedAt',
  'serverClosedAt',
  'lost',
  'sample',
  'recordedWith',
  'redaction',
  'run',
] as const;

/** Not read: the frames tell it. */
const DERIVED = ['protocolVersion', 'client', 'server'] as const;

export function headerLine(session: SessionRow, details: SessionDetails): string {
  const { dropped, droppedBytes } = session;
  const members: [name: (typeof MEMBERS | typeof DERIVED)[number], json: string | undefined][] = [
    ['name', json(session.name)],
    ['labels', labelsJson(details.labels)],
    ['basis', json(session.basis)],
    ['transport', json(session.transport)],
    ['target', json(session.target)],
    ['command', json(details.command)],
    ['startedAt', time(session.startedAt)],
    ['endedAt', time(session.endedAt)],
    ['endReason', json(session.endReason)],
    ['exitCode', json(session.exitCode)],
    ['signal', json(session.signal)],
    ['clientClosedAt', time(details.clientClosedAt)],
    ['serverClosedAt', time(details.serverClosedAt)],
    ['lost', dropped + droppedBytes === 0 ? undefined : json({ frames: dropped, bytes: droppedBytes })],
    // The share of such sessions that were kept: without it another store would count this one once.
    ['sample', session.sample ? json(session.sample) : undefined],
    ['recordedWith', json(details.tapedeck)],
    ['redaction', json(details.redaction && withoutEmpty(details.redaction))],
    ['run', details.run === null ? undefined : runJson(details.run)],
    ['protocolVersion', json(session.protocolVersion)],
    ['client', peer(session.clientName, session.clientVersion)],
    ['server', peer(session.serverName, session.serverVersion)],
  ];
  const known = members.flatMap(([name, value]) => (value === undefined ? [] : [`"${name}":${value}`]));
  return `{"tapedeck":${FORMAT},"session":{${known.join(',')}}}\n`;
}

function json(value: unknown): string | undefined {
  return value === null ? undefined : JSON.stringify(value);
}

function withoutEmpty(redaction: SessionRedaction): Partial<SessionRedaction> {
  return Object.fromEntries(Object.entries(redaction).filter(([, value]) => value.length > 0));
}

/** The client's process, as a hash. Other evidence need not be told: a label stands among the labels, a trace in the frames. */
function runJson({ kind, key }: RunEvidence): string {
  return JSON.stringify({ evidence: kind, process: key.slice(PROCESS.length) });
}

const PROCESS = 'process ';

const RUN_KINDS = { process: true, peer: true } as const;

function readRun(run: Members | null): RunEvidence | null {
  if (run === null) return null;
  run.only('evidence', 'process');
  const kind = required(run, 'evidence', run.oneOf('evidence', RUN_KINDS));
  return { kind, key: PROCESS + required(run, 'process', run.text('process')) };
}

function time(at: number | null): string | undefined {
  return at === null ? undefined : `"${formatIsoTime(at)}"`;
}

/** Joined as text: an object of JavaScript's would put keys that are numbers first, and mistake `__proto__`. */
function labelsJson(labels: SessionDetails['labels']): string | undefined {
  if (labels.length === 0) return undefined;
  return `{${labels.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`;
}

function peer(name: string | null, version: string | null): string | undefined {
  return name === null ? undefined : JSON.stringify(version === null ? { name } : { name, version });
}

/** Reads the first line. Throws `BadLine`. */
export function readHeader(line: Members): Header {
  if (!line.has('tapedeck')) {
    throw new BadLine(
      'expected the header of a text recording, with `tapedeck` and `session`, got another object',
    );
  }
  const format = line.count('tapedeck');
  if (format !== null && format > FORMAT) {
    throw new NewerFormat(
      `written by a newer tapedeck (format ${format}, this one knows ${FORMAT}): update mcp-tapedeck`,
    );
  }
  if (format !== FORMAT) throw new BadLine(`expected format ${FORMAT} as \`tapedeck\`, got ${format}`);
  const session = line.object('session');
  if (session === null) throw new BadLine('expected `session` in the header, got none');
  line.only('tapedeck', 'session');
  session.only(...MEMBERS, ...DERIVED);
  return readSession(session);
}

function readSession(session: Members): Header {
  const basis = required(session, 'basis', session.oneOf('basis', BASES));
  const transport = required(session, 'transport', session.oneOf('transport', TRANSPORTS));
  if ((basis === 'stdio-process' || basis === 'sdk-transport') !== (transport === 'stdio')) {
    throw new BadLine(`expected a transport that fits the basis ${basis}, got ${transport}`);
  }
  return {
    name: session.text('name'),
    labels: readLabels(session.object('labels')),
    basis,
    transport,
    target: required(session, 'target', session.text('target')),
    command: session.texts('command'),
    at: required(session, 'startedAt', readTime(session, 'startedAt')),
    end: readEnd(session),
    loss: readLoss(session.object('lost')),
    sample: readSample(session),
    tapedeck: session.text('recordedWith'),
    redaction: readRedaction(session.object('redaction')),
    run: readRun(session.object('run')),
  };
}

function readTime(session: Members, name: string): number | null {
  const text = session.text(name);
  if (text === null) return null;
  const at = parseIsoTime(text);
  if (at !== null && at >= 0 && Number.isSafeInteger(at)) return at;
  throw new BadLine(
    `expected a time like 2026-11-20T10:00:00.123456Z as \`${name}\`, got ${JSON.stringify(text)}`,
  );
}

function readLabels(labels: Members | null): Header['labels'] {
  if (labels === null) return [];
  return labels.names().map((key) => [key, required(labels, key, labels.text(key))]);
}

function readSample(session: Members): number | null {
  const sample = session.number('sample');
  if (sample === null || (sample > 0 && sample <= 1)) return sample;
  throw new BadLine(`expected a share above 0 and up to 1 as \`sample\`, got ${sample}`);
}

function readLoss(lost: Members | null): Loss {
  lost?.only('frames', 'bytes');
  return { frames: lost?.count('frames') ?? 0, bytes: lost?.count('bytes') ?? 0 };
}

function readRedaction(redaction: Members | null): SessionRedaction | null {
  if (redaction === null) return null;
  redaction.only('key', 'without', 'rules', 'paths', 'capture', 'metaFor');
  const capture = redaction.oneOf('capture', { meta: true } as const);
  const read = {
    key: redaction.text('key') ?? '',
    without: redaction.texts('without') ?? [],
    rules: redaction.texts('rules') ?? [],
    paths: redaction.texts('paths') ?? [],
    ...(capture === null ? {} : { capture }),
    ...withMetaFor(redaction.texts('metaFor') ?? []),
  };
  try {
    for (const rule of read.rules) readCustomRule(rule);
    for (const path of read.paths) parseJsonPath(path, '--redact');
  } catch (error) {
    throw new BadLine(
      `expected rules and paths as \`record\` takes them in \`redaction\`: ${(error as Error).message}`,
    );
  }
  return read;
}

function readEnd(session: Members): SessionEnd | null {
  const at = readTime(session, 'endedAt');
  const reason = session.oneOf('endReason', END_REASONS);
  const how = {
    exitCode: session.count('exitCode'),
    signal: session.text('signal'),
    clientClosedAt: readTime(session, 'clientClosedAt'),
    serverClosedAt: readTime(session, 'serverClosedAt'),
  };
  if (at !== null && reason !== null) return { at, reason, ...how };
  if (at === null && reason === null && Object.values(how).every((value) => value === null)) return null;
  throw new BadLine('expected `endedAt` and `endReason` together, as how the session ended');
}
