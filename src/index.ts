export { type ErrorCode, TapedeckError } from './errors.ts';

export type {
  Call,
  CallName,
  CallOutcome,
  Deck,
  DeckOptions,
  DeckTransport,
  ExpectedParams,
  FileUrl,
  JsonRpcMessage,
  Listening,
  Miss,
  RecordedCall,
  RecordMode,
  ServerCommand,
  UpstreamCommand,
  UpstreamUrl,
} from './kit/deck.ts';

export { openRecording } from './kit/open-recording.ts';

export { recordingPath } from './kit/recording-path.ts';
