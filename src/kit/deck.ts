/// <reference lib="esnext.disposable" preserve="true" />
/** The public types of the test kit. They refer to nothing but each other, so that they hold in any project. */

/**
 * What is answered from the recording, and what by the real server, whose answers are then recorded:
 *
 * - `none`: everything from the recording; no server is started or reached, and where there is no recording, that is an
 *   error;
 * - `once`: as `none`; where there is no recording, everything is recorded;
 * - `new_episodes`: what the recording lacks is asked of the real server, and added;
 * - `all`: everything is recorded anew. The old recording stays until the new one is whole.
 */
export type RecordMode = 'none' | 'once' | 'new_episodes' | 'all';

/** A real server that is started by a command, as a client's config has it. */
export type UpstreamCommand = {
  /** A program: a path, or a name on the PATH. */
  readonly command: string;
  /** Its arguments. They are recorded, so paths in them are better relative to where the tests run. */
  readonly args?: readonly string[] | undefined;
  /** Added to the environment of the test. */
  readonly env?: Readonly<Record<string, string>> | undefined;
};

/** A real server by Streamable HTTP. */
export type UpstreamUrl = {
  /** The URL of its MCP endpoint. */
  readonly url: string;
  /** Sent with every request, such as `Authorization`. They are not recorded. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
};

/** How `openRecording` opens a recording. */
export type DeckOptions = {
  /**
   * By default the mode that `TAPEDECK_MODE` names, else `none` where `CI` is set, else `once`. Without `upstream` these
   * are all `none`.
   */
  readonly mode?: RecordMode | undefined;
  /** The real server, for modes that ask it: a command, or a URL. */
  readonly upstream?: UpstreamCommand | UpstreamUrl | string | undefined;
  /** Also record calls that the real server did not answer by itself: it died, was too slow, was not there. */
  readonly recordFailures?: boolean | undefined;
  /**
   * Removes from the text recording what no client has asked for, when the deck is closed in a mode that records nothing. Only
   * for a recording that no other test uses.
   */
  readonly pruneUnused?: boolean | undefined;
  /**
   * Says on stderr that the recording is older than this: `90d`, `2w`, `12h`. By default half a year where there is an
   * `upstream` to record from and `CI` is not set.
   */
  readonly maxAge?: string | undefined;
  /** The store that a session is looked up in; by default `TAPEDECK_DB`, else the platform's own place. */
  readonly db?: string | undefined;
  /** Further rules for what counts as a secret, `id=/pattern/flags`. Secrets are redacted before anything is stored. */
  readonly redactRule?: readonly string[] | undefined;
  /** JSON paths of values to redact in every message, whatever they are, such as `$..card`. */
  readonly redact?: readonly string[] | undefined;
  /** Ids of rules to do without. */
  readonly noRedactRule?: readonly string[] | undefined;
  /** JSON paths in the params of requests that do not count, such as `$.arguments.now`. */
  readonly ignore?: readonly string[] | undefined;
  /** The same for one tool, in its arguments: `search:$.now`. */
  readonly ignoreTool?: readonly string[] | undefined;
  /**
   * JSON paths in the params of requests, or `search:$.now` in the arguments of one tool: what must be there, with any value.
   */
  readonly anyValue?: readonly string[] | undefined;
  /** The same for arrays whose elements may come in any order. */
  readonly anyOrder?: readonly string[] | undefined;
  /**
   * Returns what counts of a request: two requests for the same tool are equal if these values are. Called for live and for
   * recorded requests; `undefined` leaves one as it is. `command` cannot be used with it.
   */
  readonly matchBy?: ((call: MatchedCall) => object | undefined) | undefined;
  /**
   * Returns what is stored of a message, the same or a changed one; the client gets what the server said. Its `id` and `method`
   * must stay. Called for live requests, too, before they are compared. Secrets are redacted afterwards. `command` cannot be
   * used with it.
   */
  readonly beforeStoring?:
    | ((message: StoredMessage, about: { readonly from: 'client' | 'server' }) => StoredMessage)
    | undefined;
  /** How to answer a call that comes more often than it was recorded: `error` (the default), the `last` answer, or a `cycle`. */
  readonly repeat?: 'error' | 'last' | 'cycle' | undefined;
  /** `fast` (the default), `recorded`, or how many times as fast as recorded. */
  readonly speed?: 'fast' | 'recorded' | number | undefined;
  /**
   * What goes wrong on purpose: filter, action and chance, such as `tool=search error(-32000) p=0.2`. The recording and `calls`
   * say what was answered before.
   */
  readonly faults?: readonly string[] | undefined;
  /** Other seeds choose other calls of those that a fault may hit. By default 0: the same in each run. */
  readonly seed?: number | undefined;
};

/** A message as `beforeStoring` gets it, a copy of its own: it may be changed, all but its `id` and `method`. */
export type StoredMessage = {
  /** The version of JSON-RPC. */
  readonly jsonrpc: '2.0';
  /** Of a request, and of its answer. */
  readonly id?: string | number | null;
  /** Of a request or a notification. */
  readonly method?: string;
  /** Of a request or a notification. */
  params?: unknown;
  /** Of an answer. */
  result?: unknown;
  /** Of an answer in place of a result. */
  error?: unknown;
};

/** A request as `matchBy` gets it. */
export type MatchedCall = {
  /** Such as `tools/call`. */
  readonly method: string;
  /** The tool, prompt or resource that it is about; null where the method has none. */
  readonly target: string | null;
  /** As JSON has them; `{}` where the request had none. */
  readonly params: unknown;
};

/** A result, as a server answers it. */
export type ServerResult = {
  /** As the method has it. */
  readonly result: object;
};

/** An error, as a server answers it. */
export type ServerError = {
  /** A JSON-RPC error. */
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
};

/** What a server answers: a result, or an error. */
export type ServerAnswer = ServerResult | ServerError;

/** An answer, or what makes one of a call; `undefined` leaves the call as it is. */
export type DeckAnswer = ServerAnswer | ((call: MatchedCall) => ServerAnswer | undefined);

/** A `URL` with the scheme `file:`. It is not the type `URL`, because a project may lack the types of Node and of browsers. */
export type FileUrl = {
  /** The whole URL as text. */
  readonly href: string;
};

/** Any JSON-RPC 2.0 message. */
export type JsonRpcMessage = {
  /** The version of JSON-RPC. The other members depend on the message. */
  readonly jsonrpc: '2.0';
};

/**
 * A transport of the official SDK for its `Client`, both `@modelcontextprotocol/sdk` 1.x and
 * `@modelcontextprotocol/client` 2.x: `await client.connect(deck.transport())`. It serves one connection.
 */
export type DeckTransport = {
  /** Called by `connect`. Rejects when it is called twice, or after `close`. */
  start(): Promise<void>;
  /** Rejects before `start`, after `close`, and for what is no JSON. Answers come later, never within the call. */
  send(message: JsonRpcMessage): Promise<void>;
  /** Called by the client's own `close`. Nothing more is delivered. */
  close(): Promise<void>;
  /** Set by `connect`. Called once, when the transport is closed from either side. */
  onclose?: (() => void) | undefined;
  /** Set by `connect`. Called with what `onmessage` throws. */
  onerror?: ((error: Error) => void) | undefined;
  /** Set by `connect`. Called with every message of the server, in order, each in a turn of its own. */
  onmessage?: ((message: JsonRpcMessage) => void) | undefined;
  /** Always undefined: there are no session ids without HTTP. */
  sessionId?: string | undefined;
};

/** The recorded server at a URL of this machine. */
export type Listening = {
  /** The URL for an HTTP client, such as `http://127.0.0.1:40123/mcp`. */
  readonly url: string;
  /** Ends open streams and frees the port. Closing the deck does it too. */
  close(): Promise<void>;
};

/** How to spawn the recorded server. */
export type ServerCommand = {
  /** The absolute path of this Node. */
  readonly command: string;
  /** `tapedeck replay` with absolute paths. */
  readonly args: string[];
  /** What the process needs in its environment besides the usual. */
  readonly env: Record<string, string>;
};

/**
 * What became of a call: `ok`; `tool-error`, a result with `isError`; `error`, a JSON-RPC error of the server;
 * `input-required`, a round of a request that takes several; `cancelled` by the client; `miss`: there is no
 * answer to it; `unanswered` so far.
 */
export type CallOutcome =
  | 'ok'
  | 'tool-error'
  | 'error'
  | 'input-required'
  | 'cancelled'
  | 'miss'
  | 'unanswered';

/** A request that a client made in the test. */
export type Call = {
  /** Such as `tools/call`. */
  readonly method: string;
  /** The tool, prompt or resource that it is about; null where the method has none. */
  readonly target: string | null;
  /** As JSON has them; undefined where the request had none. */
  readonly params: unknown;
  /** What became of it so far. */
  readonly outcome: CallOutcome;
  /** The number of the recorded frame with the request whose answer it got; null where the answer is not recorded. */
  readonly frame: number | null;
};

/** A call that had no answer in the recording, nor from the real server. The client got a JSON-RPC error, code 1404. */
export type Miss = {
  /** What was asked. */
  readonly call: Call;
  /** Such as `used-up`, `arguments-differ`, `never-recorded`. */
  readonly reason: string;
  /** In one line, with the nearest recorded call. Control characters are escaped, here and in `report`. */
  readonly message: string;
  /** In several lines, with every difference to the nearest recorded calls. */
  readonly report: string;
};

/** A request in the recording. */
export type RecordedCall = {
  /** Such as `tools/call`. */
  readonly method: string;
  /** The tool, prompt or resource that it is about; null where the method has none. */
  readonly target: string | null;
  /** As JSON has them; undefined where the request had none. */
  readonly params: unknown;
  /** The number of its frame. */
  readonly frame: number;
};

/**
 * A call by its method, or by method and target: `'tools/list'`, `'tools/call echo'`.
 */
export type CallName = string;

/** Members of `params` that must be equal, as JSON values. Members that are not named here do not count. */
export type ExpectedParams = Readonly<Record<string, unknown>>;

/** What must hold of the messages of a test, in the filter language of `show --filter`: one filter, or several. */
export type TrafficAssertions = {
  /** A message must match it, such as `tool=search status=ok`. */
  readonly expect?: string | readonly string[] | undefined;
  /** No message may match it. */
  readonly forbid?: string | readonly string[] | undefined;
  /** A bound, and what it is for: `tool=search size<10kb`. */
  readonly max?: string | readonly string[] | undefined;
};

/**
 * One recording, opened for one test. Each transport, HTTP client and spawned process is a client of its own and begins
 * at the first recorded call. Several clients are recorded as several, and told apart by their handshakes; `calls`,
 * `misses`, `unused` and the assertions are about all of them together.
 *
 * The assertions throw a `TapedeckError` with the code `assertion`.
 */
export type Deck = {
  /** The mode in force. */
  readonly mode: RecordMode;
  /** A new in-process transport for a `Client` of the official SDK: no process, no port. */
  transport(): DeckTransport;
  /** Answers over HTTP on a free port of 127.0.0.1, whatever the recording's own transport was. */
  listen(): Promise<Listening>;
  /** A command line for anything that spawns a stdio server. The spawning side ends the process, as with any server. */
  command(): ServerCommand;
  /**
   * Answers a call otherwise than it was recorded: the next one, or as many as `times` says. Nothing recorded is used up, no
   * server is asked, and nothing is stored. `params`: only calls with these. Of several that fit, the last one counts. `command`
   * cannot be used with it.
   */
  override(
    call: CallName,
    answer: DeckAnswer,
    options?: { readonly params?: ExpectedParams; readonly times?: number },
  ): void;
  /** What was called so far, in order. */
  readonly calls: readonly Call[];
  /** The recorded calls that no client has asked for so far, in recorded order. */
  readonly unused: readonly RecordedCall[];
  /** The calls that had no answer so far, in order. */
  readonly misses: readonly Miss[];
  /**
   * What clients of this process did wrong, or unlike the recorded one, besides calls: malformed messages, other answers to
   * the server's questions. A few lines each. Processes by `command` write theirs to stderr.
   */
  readonly notices: readonly string[];
  /** There was such a call; with `times`, exactly so many. */
  assertCalled(call: CallName, params?: ExpectedParams, options?: { readonly times?: number }): void;
  /** There was no such call. */
  assertNotCalled(call: CallName, params?: ExpectedParams): void;
  /** These calls were made in this order. Others may have come before, between and after. */
  assertOrder(calls: readonly (CallName | readonly [call: CallName, params: ExpectedParams])[]): void;
  /** Every recorded call was asked for, apart from `except`. */
  assertAllUsed(options?: { readonly except?: readonly CallName[] }): void;
  /** Every call had an answer, and there are no `notices`. */
  assertNoMisses(): void;
  /**
   * Holds what the clients said and heard, answers and notifications too, to filters. `command` cannot be used with it. Throws
   * a `TapedeckError` with the code `usage` for a filter that is wrong.
   */
  assertTraffic(assertions: TrafficAssertions): void;
  /**
   * Closes all transports and ports that came from the deck, ends the real server, and stores what is to be recorded. What
   * was called can still be read. May be called twice; `await using deck = …` calls it by itself. Rejects where the
   * recording cannot be stored.
   */
  close(): Promise<void>;
  /**
   * `close` for a test that has failed: nothing is stored, and the recording stays as it was before the deck was opened. Does
   * nothing after `close`, so that it can stand where all tests pass by. Of a session in a store, it does not take back what
   * processes by `command` have stored.
   */
  discard(): Promise<void>;
  /** `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
};
