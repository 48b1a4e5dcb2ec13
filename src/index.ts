export { type ErrorCode, TapedeckError } from './errors.ts';

export type {
  Call,
  CallName,
  CallOutcome,
  Deck,
  DeckAnswer,
  DeckOptions,
  DeckTransport,
  ExpectedParams,
  FileUrl,
  JsonRpcMessage,
  Listening,
  MatchedCall,
  Miss,
  RecordedCall,
  RecordMode,
  ServerAnswer,
  ServerCommand,
  ServerError,
  ServerResult,
  StoredMessage,
  TrafficAssertions,
  UpstreamCommand,
  UpstreamUrl,
} from './kit/deck.ts';

export { openRecording } from './kit/open-recording.ts';

export { recordingPath } from './kit/recording-path.ts';
