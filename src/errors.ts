/**
 * What went wrong, for machines: `usage` is the caller's mistake, `assertion` a test's expectation that does not hold, the
 * others are the store's condition.
 */
export type ErrorCode =
  | 'usage'
  | 'not-found'
  | 'ambiguous'
  | 'newer-store'
  | 'old-sqlite'
  | 'not-a-store'
  | 'busy'
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
