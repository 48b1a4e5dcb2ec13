/** `tapedeck record <url>`: runs one recording HTTP proxy until it is stopped. */
import type { HttpRecordOptions } from './http-options.ts';
import { createStop, recordUntil, startHttpRecording } from './http-recording.ts';
import { cannotListen, say, warnBeyondLoopback } from './listening.ts';
import type { RecordOptions } from './record-options.ts';

/** Exits with 0 when it was stopped, with 1 where `--strict` refused or stopped. Throws `TapedeckError` if it cannot listen. */
export async function recordHttp(options: RecordOptions, http: HttpRecordOptions): Promise<void> {
  const stop = createStop();
  // Whoever read it may have left: that is no reason to end the traffic.
  process.stderr.on('error', () => {});
  const recording = await startHttpRecording(options, http, stop.fail).catch((error) => {
    throw cannotListen(http.listen, error as NodeJS.ErrnoException);
  });
  if (recording === null) process.exit(1);
  sayWhere(http, recording.capture.url);
  await recordUntil(stop, [recording], http.graceMs);
  process.exit(stop.hasFailed() ? 1 : 0);
}

function sayWhere({ upstream, listen, isInsecure }: HttpRecordOptions, url: URL): void {
  if (isInsecure) say('WARNING: --insecure: the certificate of the server is not verified');
  warnBeyondLoopback(listen, 'use the server through it');
  say(
    `listening on ${url.href} for ${upstream.href}; put the first URL into the client’s config in place of the second`,
  );
}
