import type { Store } from '../store/file/open.ts';
import type { FrameSelection } from '../store/read/frames.ts';
import type { SessionRow } from '../store/read/sessions.ts';

export type WriteOptions = {
  /** Called with the number of frames written so far. */
  onFrame: (count: number) => void;
  /** Only these frames of the session, or what they belong to. */
  only?: FrameSelection | undefined;
  /** For `otlp`: the arguments and results of tool calls. */
  withArguments?: boolean;
};

export type Format = {
  describe: string;
  /** The session in pieces of text. Throws `TapedeckError` `refused` for a session that the format cannot hold. */
  write(store: Store, session: SessionRow, options: WriteOptions): Iterable<string>;
};
