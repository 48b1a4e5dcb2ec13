/** The forward proxy and its recorders, joined; and `tapedeck record --forward`, which runs one until it is stopped. */

import { now } from '../../capture/clock.ts';
import { type Authority, issueCertificate } from '../../capture/forward/authority.ts';
import { clientEnvironment } from '../../capture/forward/environment.ts';
import { captureForward, type ForwardCapture, type Passed } from '../../capture/forward/forward.ts';
import { type OnwardSettings, readOnward } from '../../capture/forward/onward.ts';
import type { ForwardOrigin } from '../../capture/forward/origin.ts';
import { keepRenewed } from '../../capture/forward/renewal.ts';
import { TapedeckError } from '../../errors.ts';
import { formatNumber, formatSize } from '../../inspect/view/text.ts';
import { type Listen, ownUrl } from '../../net/listen.ts';
import { isLoopback } from '../../protocol/http/origin.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import type { HttpRecorder } from '../../store/record/http-recorder.ts';
import type { RecordingRules } from '../../store/record/thread.ts';
import { type Io, ignoreErrors } from '../io.ts';
import { cannotListen, readListen, warnBeyondLoopback } from '../listening.ts';
import { authoritiesFolder, type KeptAuthority, keepAuthority, keepNext, useNext } from './authorities.ts';
import {
  createRecordingStop,
  type Desk,
  leave,
  NO_PROCESS_END,
  openDesk,
  openUrlRecorder,
  type ProxyRecording,
  recordUntil,
  reloadAtHangUp,
  STRICT_REFUSED,
  sayFailed,
} from './desk.ts';
import { hostsOf, type Named, type RawForwardOptions, readNamed, refuseCircle } from './forward-options.ts';
import { DEFAULT_LISTEN, type RawHttpOptions, readEndLimits } from './http-options.ts';
import { filled, type RecordOptions, withRules } from './options.ts';

export type ForwardRecordOptions = {
  named: Named;
  listen: Listen;
  password: string | null;
  isInsecure: boolean;
  /** The proxies that this one goes through. */
  onward: OnwardSettings;
  graceMs: number;
  /** Vouches for the origins with TLS; null: there is none. */
  authority: Authority | null;
};

type Hooks = Pick<ForwardOrigin, 'onEvent' | 'onOpen'>;

export type ForwardRecording = ProxyRecording & {
  capture: ForwardCapture;
  /** Counts for what is not stored yet, and for servers that are first asked later. */
  setRules(rules: RecordingRules): void;
  /** From now on clients are shown certificates of this CA. */
  useAuthority(authority: Authority): Promise<void>;
};

/**
 * Null where `--strict` refuses, because there is no store. `onFailure` is called, at most once a server, where `--strict` asks
 * for the end. Rejects with Node's error where it cannot listen.
 */
export async function startForwardRecording(
  desk: Desk,
  given: RecordOptions,
  forward: ForwardRecordOptions,
  onFailure: () => void,
): Promise<ForwardRecording | null> {
  const { log, operations } = desk;
  const options = await withRules(given);
  const faulty = options.faults === null ? null : await import('./faulty-http.ts');
  if (faulty !== null) assertOneServer(forward.named);
  const recorders = new Map<string, HttpRecorder>();
  let current = options;
  /** A recorder has a thread: a server that is never asked needs none. */
  const recorderOf = (url: URL): HttpRecorder => {
    const known = recorders.get(url.href);
    if (known !== undefined) return known;
    const recorder = openUrlRecorder(desk, current, url, onFailure);
    desk.recorders.push({ transport: 'http', figures: recorder.figures, queue: recorder.queue });
    recorders.set(url.href, recorder);
    return recorder;
  };
  const close = async () => {
    const end = { at: now(), reason: 'stopped', ...NO_PROCESS_END } as const;
    await Promise.all([...recorders.values()].map((recorder) => recorder.close(end)));
  };
  if (options.isStrict) {
    const opened = forward.named.flat().map((url) => recorderOf(url).opened);
    if ((await Promise.all(opened)).includes(false)) {
      await close();
      return null;
    }
  }
  const endFaults: (() => void)[] = [];
  const hooksOf = (onEvent: ForwardOrigin['onEvent']): Hooks => {
    if (faulty === null) return { onEvent };
    const { hooks, end } = faulty.putHttpFaultsIn(options.faults ?? {}, onEvent, (text) =>
      log.info('fault', text),
    );
    endFaults.push(end);
    return hooks;
  };
  const capture = await captureForward({
    ...forward,
    onward: forward.onward.onward,
    origins: await originsOf(desk, forward, recorderOf, hooksOf),
    trustAdvice,
    onNotice: (text) => log.warn('notice', text),
    onForwarded: operations?.onForwarded,
  }).catch(async (error) => {
    // Their threads would keep this process alive.
    await close();
    throw error;
  });
  return {
    capture,
    setRules({ redaction, retention, sampling = null, metaFor = null }) {
      current = { ...current, redaction, retention, sampling, metaFor };
      for (const recorder of recorders.values()) recorder.setRules(current);
    },
    async useAuthority(authority) {
      const shown = forward.named
        .filter(([{ protocol }]) => protocol === 'https:')
        .map(async ([url]) => [url, await issueCertificate(authority, url.hostname)] as const);
      for (const [url, certificate] of await Promise.all(shown)) capture.showCertificate(url, certificate);
    },
    async close() {
      sayFailed(log, capture.failedEvents());
      for (const end of endFaults) end();
      await close();
    },
  };
}

/** A plan counts the messages of one server. */
function assertOneServer(named: Named): void {
  const urls = named.flat();
  if (urls.length > 1)
    throw new TapedeckError(
      'usage',
      `Expected one server for \`--fault\`, got ${urls.length}. Name the one that is to fail: --forward ${urls[0]}`,
    );
}

function originsOf(
  { operations }: Desk,
  { named, authority }: ForwardRecordOptions,
  recorderOf: (url: URL) => HttpRecorder,
  hooksOf: (record: ForwardOrigin['onEvent']) => Hooks,
): Promise<ForwardOrigin[]> {
  const origins = named.map(async (urls) => {
    const [url] = urls;
    const isTls = url.protocol === 'https:' && authority !== null;
    const tls = isTls ? await issueCertificate(authority, url.hostname) : null;
    const record = recordByPath(urls, recorderOf);
    const onEvent = (event: HttpEvent) => {
      operations?.onHttpEvent(event);
      return record(event);
    };
    return { url, tls, ...hooksOf(onEvent) };
  });
  return Promise.all(origins);
}

/** Each exchange goes to the recorder of the URL that its path belongs to; what belongs to none, to the first one's. */
function recordByPath(urls: readonly [URL, ...URL[]], recorderOf: (url: URL) => HttpRecorder) {
  const [first, ...others] = urls;
  if (others.length === 0) return (event: HttpEvent) => recorderOf(first).append(event);
  const longestFirst = urls.toSorted((a, b) => b.pathname.length - a.pathname.length);
  const chosen = new Map<number, HttpRecorder>();
  return (event: HttpEvent) => {
    const { exchange } = event;
    if (event.type === 'request') {
      const url = longestFirst.find(({ pathname }) => belongsTo(event.path, pathname)) ?? first;
      chosen.set(exchange, recorderOf(url));
    }
    const recorder = chosen.get(exchange);
    if (event.type === 'end') chosen.delete(exchange);
    return recorder?.append(event);
  };
}

/** Below the path, or the metadata of it (RFC 9728, 3.1: the path stands behind the well-known one). */
function belongsTo(target: string, pathname: string): boolean {
  const path = target.replace(/[?#].*$/s, '');
  const below = pathname.endsWith('/') ? pathname : `${pathname}/`;
  return path === pathname || path.startsWith(below) || (pathname !== '/' && path.endsWith(pathname));
}

/** What is missing where a client does not trust our CA, by the name that it gives itself. */
function trustAdvice(agent: string): string {
  const name = /^(curl|go-http-client|python|deno|node|bun)/i.exec(agent)?.[1]?.toLowerCase() ?? '';
  const variable = TRUST_BY_AGENT[name];
  return variable === undefined
    ? 'it heeds none of NODE_EXTRA_CA_CERTS (Node, from the shell alone), SSL_CERT_FILE (Python, Go), REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE, or they are not set; a client that pins certificates can only pass unrecorded, with --tunnel'
    : `set ${variable} for it, as \`tapedeck run\` does`;
}

const TRUST_BY_AGENT: Readonly<Record<string, string>> = {
  curl: 'CURL_CA_BUNDLE',
  'go-http-client': 'SSL_CERT_FILE',
  python: 'SSL_CERT_FILE and REQUESTS_CA_BUNDLE',
  deno: 'DENO_CERT',
  node: 'NODE_EXTRA_CA_CERTS',
  bun: 'NODE_EXTRA_CA_CERTS',
};

/** Null where nothing passed by the recorder. */
export function passedText({ others, bytes, refused, silent }: Passed): string | null {
  if (others + refused === 0) return null;
  const what = others === 1 ? 'tunnel or request' : 'tunnels or requests';
  const parts = [
    `${formatNumber(others)} ${what} to other hosts passed unrecorded (${formatSize(bytes)} in tunnels)`,
    ...(silent === 0
      ? []
      : [`${formatNumber(silent)} of the tunnels were closed, because nothing moved in them`]),
    ...(refused === 0 ? [] : [`${formatNumber(refused)} were refused, because too many were open`]),
  ];
  return parts.join('; ');
}

/** What is to be known before anything passes. */
export function sayCautions(
  { log }: Desk,
  { isInsecure, onward }: Pick<ForwardRecordOptions, 'isInsecure' | 'onward'>,
): void {
  if (isInsecure)
    log.warn('insecure', 'WARNING: --insecure: the certificates of the servers are not verified');
  for (const { variable, proxy } of onward.proxies)
    log.info('onward', `goes on through the proxy ${proxy.url}, which ${variable} names`);
  for (const variable of onward.unused)
    log.warn(
      'other-proxy',
      `WARNING: ${variable} is set, but not to the URL of an HTTP proxy, such as http://host:port; tapedeck does not use it`,
    );
}

/** `tapedeck record --forward`. */

const PASSWORD_VARIABLE = 'TAPEDECK_PROXY_PASSWORD';

/** `argv`: what SIGHUP reads anew, if anything. Exits as `recordHttp` does. Throws `TapedeckError` `usage`, and `busy` or `io` where it cannot listen. */
export async function recordForward(
  io: Io,
  options: RecordOptions,
  urls: readonly string[],
  raw: RawHttpOptions & RawForwardOptions,
  argv: readonly string[] | null,
): Promise<void> {
  const named = readNamed(urls, raw.tunnel);
  const listen = readListen(filled('--listen', raw.listen) ?? DEFAULT_LISTEN);
  const onward = readOnward(io.env);
  refuseCircle(named, onward, listen);
  const password = passwordFor(io, listen);
  const forward = {
    ...{ named, listen, password, onward },
    isInsecure: raw.insecure ?? false,
    ...readEndLimits(raw),
  };
  const stop = createRecordingStop(io, argv !== null);
  // Its reader may have left: that is no reason to end the traffic.
  ignoreErrors(io.stderr);
  let desk: Desk | undefined;
  let endRenewal = () => {};
  try {
    desk = await openDesk(io, options, NO_BROWSER);
    const authority = hasTls(named) ? await keepAuthority(authoritiesFolder(io), hostsOf(named)) : null;
    const recording = await startForwardRecording(desk, options, { ...forward, authority }, stop.fail).catch(
      (error) => {
        throw error instanceof TapedeckError ? error : cannotListen(listen, error as NodeJS.ErrnoException);
      },
    );
    if (recording === null) return leave(io, STRICT_REFUSED);
    sayCautions(desk, forward);
    const environment = clientsOf(desk, { ...forward, authority }, recording.capture);
    const renewal = authority === null ? null : await renewKept(desk, authority, recording, environment);
    endRenewal = () => renewal?.end();
    sayWhereAndHow(desk, forward, recording.capture, environment(renewal?.certificates() ?? null));
    reloadAtHangUp(desk, stop, [recording], options, argv);
    await recordUntil(desk, stop, [recording], forward);
    const passed = passedText(recording.capture.passed());
    if (passed !== null) desk.log.info('passed', passed);
    leave(io, stop.hasFailed() ? STRICT_REFUSED : 0);
  } finally {
    endRenewal();
    desk?.operations?.close();
    stop.end();
  }
}

/** What clients are told, once the certificates are written that they are to trust. */
type Environment = (certificates: string | null) => Record<string, string>;

async function renewKept(
  { log }: Desk,
  authority: KeptAuthority,
  recording: ForwardRecording,
  environment: Environment,
) {
  let kept = authority;
  const renewal = keepRenewed({
    ...{ authority, next: authority.next, now: Date.now, warn: log.warn },
    makeNext: () => keepNext(kept, Date.now()),
    publish: (certificates) => void environment(certificates),
    async use(next) {
      await recording.useAuthority(next);
      kept = useNext({ ...kept, next });
    },
  });
  await renewal.check();
  return renewal;
}

/** Who reads metrics: nothing of `--allow-host` goes with `--forward`. */
export const NO_BROWSER = { allowHosts: [], allowOrigins: [] } as const;

function clientsOf(
  { io }: Desk,
  { named, password, authority }: ForwardRecordOptions & { authority: KeptAuthority | null },
  { address }: ForwardCapture,
): Environment {
  const { origin } = ownUrl(address, 'http', '/');
  const proxy = password === null ? origin : origin.replace('://', `://tapedeck:$${PASSWORD_VARIABLE}@`);
  const settings = { proxy, hosts: hostsOf(named), env: io.env, folder: authority?.folder ?? '' };
  return (certificate) => clientEnvironment({ ...settings, certificate });
}

function sayWhereAndHow(
  { io, log }: Desk,
  { named, listen }: Pick<ForwardRecordOptions, 'named' | 'listen'>,
  { address }: ForwardCapture,
  environment: Readonly<Record<string, string>>,
): void {
  warnBeyondLoopback(io, listen, 'go through it, with the password', (text) =>
    log.warn('beyond-loopback', text),
  );
  const { origin } = ownUrl(address, 'http', '/');
  const urls = named.flat().join(' ');
  log.info('listening', `listening on ${origin} for ${urls}, as a forward proxy; start the client with:`, {
    url: origin,
  });
  log.info('environment', assignments(environment), environment);
}

export function hasTls(named: Named): boolean {
  return named.some(([{ protocol }]) => protocol === 'https:');
}

/** As a shell takes them in front of a command. */
function assignments(environment: Readonly<Record<string, string>>): string {
  return Object.entries(environment)
    .map(
      ([name, value]) =>
        `${name}=${/^[\w@:/.,$-]*$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`}`,
    )
    .join(' ');
}

/** Not an option: other users of the machine see command lines. Throws `TapedeckError` `usage`. */
function passwordFor({ env }: Io, { host }: Listen): string | null {
  const { [PASSWORD_VARIABLE]: given = '' } = env;
  if (given === '' && isLoopback(host)) return null;
  if (/^[\w.~-]{16,}$/.test(given)) return given;
  const got = given === '' ? 'none' : 'another one';
  throw new TapedeckError(
    'usage',
    `Expected a password in ${PASSWORD_VARIABLE}, of 16 or more letters, digits, and characters of \`-._~\`, got ${got}: whoever reaches ${host} could go anywhere through this proxy.`,
  );
}
