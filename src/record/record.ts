/** `mcp-tapedeck/record`: the recorder as a library, for the authors of clients and servers. */

export { type ErrorCode, TapedeckError } from '../errors.ts';
export type { Door, RecordingOptions } from './door.ts';

export { type RecordedFetch, recordedFetch } from './fetch.ts';

export { type HandlerRecordingOptions, type RecordedHandler, recordedHandler } from './handler.ts';

export { type RecordedStdio, recordStdio, type StdioRecordingOptions } from './stdio.ts';

export { type RecordableTransport, type RecordedTransport, recordedTransport } from './transport.ts';
