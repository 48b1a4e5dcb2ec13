/** What went wrong, for programs. The command line exits with 2 whichever it is. */
export type ErrorCode =
  /** An option, argument, filter or call is wrong, or does not go with another. The caller has to change it. */
  | 'usage'
  /** What was named is not there: a file, a store, a session, a client, a server, a tool. */
  | 'not-found'
  /** A name fits several things. */
  | 'ambiguous'
  /** A file, a port, an output or a server cannot be read, written, opened or reached: a full disk, missing rights. */
  | 'io'
  /** Another process is using it. The same call may succeed later. */
  | 'busy'
  /** The call is well formed, but what it names does not allow it, or the other side has said no. */
  | 'refused'
  /** A file is not of the format that it should have, or is damaged. */
  | 'corrupt'
  /** A store or a recording was written by a newer program. An update helps. */
  | 'newer'
  /** The file is another program's database. */
  | 'not-a-store'
  /** better-sqlite3 brings an SQLite with a known fault. A reinstall helps. */
  | 'old-sqlite'
  /** A signal ended the work before it was done. */
  | 'stopped'
  /** A test's expectation does not hold. */
  | 'assertion';

/** An error that tapedeck itself raises. Its message says what was expected, what was got and what to do. */
export class TapedeckError extends Error {
  override name = 'TapedeckError';
  /** What went wrong, for programs. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The code for a named file that the system could not read. */
export function readFailure(error: unknown): ErrorCode {
  return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'not-found' : 'io';
}
