/** The file beside the store, for the commands that are faster with it and do without where it cannot be kept. */
import type { Store } from '../store/file/open.ts';
import { troubleOf } from '../store/file/trouble.ts';
import { openSideFile, type SideFile } from '../store/keep/side-file.ts';

export function openSide(store: Store): SideFile | null {
  try {
    return openSideFile(store);
  } catch (error) {
    sayWithoutSide(error);
    return null;
  }
}

/** Passes on what is no trouble of a file but a fault of ours. */
export function sayWithoutSide(error: unknown): void {
  if (!(error instanceof Error && 'code' in error)) throw error;
  process.stderr.write(
    `tapedeck: the index beside the store cannot be kept: ${troubleOf(error).text}; it goes on without, slower\n`,
  );
}
