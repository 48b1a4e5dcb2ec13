/**
 * The store's schema. `frame` (with `frame_part`) is the truth; `message` is an index derived from it, which
 * `tapedeck reindex` rebuilds. People query this with SQL: docs/store.md documents every table and view.
 *
 * Times are microseconds since the Unix epoch. `session` in the other tables is `session.number`.
 */

/** Migration i brings a store from `user_version` i to i + 1. Never edit one that was released: append. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE session (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    basis TEXT NOT NULL,
    transport TEXT NOT NULL,
    target TEXT NOT NULL,
    command TEXT,
    cwd TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    end_reason TEXT,
    exit_code INTEGER,
    signal TEXT,
    client_closed_at INTEGER,
    server_closed_at INTEGER,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started TEXT,
    server_pid INTEGER,
    client_pid INTEGER,
    client_program TEXT,
    tapedeck TEXT NOT NULL,
    era TEXT,
    protocol_version TEXT,
    client_name TEXT,
    client_version TEXT,
    server_name TEXT,
    server_version TEXT,
    frames INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    exchanges INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0,
    unanswered INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0,
    dropped_bytes INTEGER NOT NULL DEFAULT 0,
    truncated INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX session_started ON session (started_at);

  CREATE TABLE label (
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (session, key)
  ) WITHOUT ROWID;

  CREATE TABLE frame (
    rowid INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    channel TEXT NOT NULL,
    size INTEGER NOT NULL,
    flags TEXT,
    payload BLOB NOT NULL
  );
  CREATE UNIQUE INDEX frame_place ON frame (session, seq);

  CREATE TABLE frame_part (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    FOREIGN KEY (session, seq) REFERENCES frame (session, seq) ON DELETE CASCADE
  );
  CREATE UNIQUE INDEX frame_part_place ON frame_part (session, seq, part);

  CREATE TABLE unfinished (
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    channel TEXT NOT NULL,
    part INTEGER NOT NULL,
    at INTEGER NOT NULL,
    bytes BLOB NOT NULL
  );
  CREATE INDEX unfinished_place ON unfinished (session, channel, part);

  CREATE TABLE message (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id_type TEXT,
    id TEXT,
    method TEXT,
    canonical TEXT,
    target TEXT,
    task TEXT,
    relation TEXT,
    to_seq INTEGER,
    to_n INTEGER,
    latency INTEGER,
    outcome TEXT,
    error_code INTEGER,
    problem TEXT,
    PRIMARY KEY (session, seq, n)
  ) WITHOUT ROWID;
  CREATE INDEX message_link ON message (session, to_seq) WHERE to_seq IS NOT NULL;

  CREATE VIEW frame_text AS
  SELECT session.id AS session, frame.seq, frame.at, frame.channel,
    CASE frame.channel WHEN 'stdin' THEN 'client-to-server' ELSE 'server-to-client' END AS direction,
    frame.size, frame.flags, CAST(frame.payload AS TEXT) AS text
  FROM frame JOIN session ON session.number = frame.session;

  CREATE VIEW exchange AS
  SELECT session.id AS session, request.seq AS request_seq, answer.seq AS answer_seq,
    CASE asked.channel WHEN 'stdin' THEN 'client' ELSE 'server' END AS asked_by,
    request.id, request.id_type, request.canonical AS method, request.target,
    asked.at AS asked_at, answer.latency / 1000.0 AS latency_ms,
    CASE
      WHEN answer.outcome IS NOT NULL THEN answer.outcome
      WHEN EXISTS (
        SELECT 1 FROM message AS cancel
        WHERE cancel.session = request.session AND cancel.to_seq = request.seq AND cancel.to_n = request.n
          AND cancel.relation = 'cancel'
      ) THEN 'cancelled'
      ELSE 'unanswered'
    END AS outcome,
    answer.error_code
  FROM message AS request
  JOIN session ON session.number = request.session
  JOIN frame AS asked ON asked.session = request.session AND asked.seq = request.seq
  LEFT JOIN message AS answer
    ON answer.session = request.session AND answer.to_seq = request.seq AND answer.to_n = request.n
    AND answer.relation = 'reply'
  WHERE request.kind = 'request';

  -- What ANALYZE would find in a large store. Without it SQLite takes a session to have ten messages, and reads all of
  -- them for each request to find its answer.
  ANALYZE sqlite_schema;
  INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('message', 'message', '1000000 10000 1 1'),
    ('message', 'message_link', '400000 4000 1');
  ANALYZE sqlite_schema;
  `,
  // HTTP
  `
  CREATE TABLE http_exchange (
    rowid INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    version TEXT NOT NULL,
    client TEXT NOT NULL,
    request_headers TEXT NOT NULL,
    request_trailers TEXT,
    request_bytes INTEGER NOT NULL,
    informations TEXT,
    status INTEGER,
    status_text TEXT,
    response_headers TEXT,
    response_trailers TEXT,
    response_bytes INTEGER NOT NULL,
    at INTEGER NOT NULL,
    request_ended_at INTEGER,
    response_at INTEGER,
    ended_at INTEGER,
    ended_after INTEGER,
    closed_by TEXT,
    error TEXT,
    edits TEXT
  );
  CREATE UNIQUE INDEX http_exchange_place ON http_exchange (session, number);

  ALTER TABLE frame ADD COLUMN http INTEGER;
  ALTER TABLE frame ADD COLUMN sha256 TEXT;
  ALTER TABLE unfinished ADD COLUMN http INTEGER;

  CREATE TABLE sse_event (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    event TEXT,
    id TEXT,
    retry TEXT,
    PRIMARY KEY (session, seq),
    FOREIGN KEY (session, seq) REFERENCES frame (session, seq) ON DELETE CASCADE
  ) WITHOUT ROWID;

  CREATE TABLE frame_edit (
    rowid INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    original BLOB NOT NULL,
    FOREIGN KEY (session, seq) REFERENCES frame (session, seq) ON DELETE CASCADE
  );
  CREATE UNIQUE INDEX frame_edit_place ON frame_edit (session, seq);

  CREATE TABLE secret (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) WITHOUT ROWID;

  DROP VIEW frame_text;
  CREATE VIEW frame_text AS
  SELECT session.id AS session, frame.seq, frame.at, frame.channel,
    CASE WHEN frame.channel IN ('stdin', 'request') THEN 'client-to-server' ELSE 'server-to-client' END AS direction,
    frame.http, frame.size, frame.flags, CAST(frame.payload AS TEXT) AS text
  FROM frame JOIN session ON session.number = frame.session;

  DROP VIEW exchange;
  CREATE VIEW exchange AS
  SELECT session.id AS session, request.seq AS request_seq, answer.seq AS answer_seq,
    CASE WHEN asked.channel IN ('stdin', 'request') THEN 'client' ELSE 'server' END AS asked_by,
    request.id, request.id_type, request.canonical AS method, request.target,
    asked.at AS asked_at, answer.latency / 1000.0 AS latency_ms,
    CASE
      WHEN answer.outcome IS NOT NULL THEN answer.outcome
      WHEN request.outcome IS NOT NULL THEN request.outcome
      WHEN EXISTS (
        SELECT 1 FROM message AS cancel
        WHERE cancel.session = request.session AND cancel.to_seq = request.seq AND cancel.to_n = request.n
          AND cancel.relation = 'cancel'
      ) THEN 'cancelled'
      ELSE 'unanswered'
    END AS outcome,
    answer.error_code, asked.http
  FROM message AS request
  JOIN session ON session.number = request.session
  JOIN frame AS asked ON asked.session = request.session AND asked.seq = request.seq
  LEFT JOIN message AS answer
    ON answer.session = request.session AND answer.to_seq = request.seq AND answer.to_n = request.n
    AND answer.relation = 'reply'
  WHERE request.kind = 'request';
  `,
  // Retention
  `
  ALTER TABLE session ADD COLUMN imported_at INTEGER;

  -- Sessions whose own row is gone, and whose other rows are on their way out.
  CREATE TABLE removal (
    session INTEGER PRIMARY KEY
  );

  -- One row: who prunes this store at the moment, if anybody does; and whether scraps of what was deleted may be left in
  -- the unused part of pages, which only rewriting the store removes.
  CREATE TABLE upkeep (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    host TEXT,
    pid INTEGER,
    process_started TEXT,
    at INTEGER,
    scraps INTEGER NOT NULL
  );
  INSERT INTO upkeep (one, scraps) SELECT 1, EXISTS (SELECT 1 FROM session);
  `,
  // Redaction
  `
  ALTER TABLE session ADD COLUMN redaction TEXT;

  CREATE TABLE frame_redaction (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    rules TEXT NOT NULL,
    PRIMARY KEY (session, seq),
    FOREIGN KEY (session, seq) REFERENCES frame (session, seq) ON DELETE CASCADE
  ) WITHOUT ROWID;

  -- Sessions that are being masked after the fact: with what, up to which frame, and the state at that place.
  CREATE TABLE masking (
    session INTEGER PRIMARY KEY REFERENCES session (number) ON DELETE CASCADE,
    profile TEXT NOT NULL,
    seq INTEGER NOT NULL,
    key_lines TEXT NOT NULL
  );
  `,
  // Runs of clients
  `
  ALTER TABLE session ADD COLUMN client_started TEXT;

  -- What tells which client run a session belongs to. Sessions of one id are one run: they share a key, or each shares one
  -- with another of them.
  CREATE TABLE run (
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (session, key)
  ) WITHOUT ROWID;
  CREATE INDEX run_key ON run (key);
  CREATE INDEX run_id ON run (id);
  INSERT INTO run (session, kind, key, id)
    SELECT label.session, 'label', 'label ' || label.value, named.id FROM label
    JOIN (SELECT value, lower(hex(randomblob(6))) AS id FROM label WHERE key = 'run' GROUP BY value) AS named
      ON named.value = label.value
    WHERE label.key = 'run';

  -- The traces that messages, or the HTTP requests that carried them, say they are part of.
  CREATE TABLE trace (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    trace_id TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    PRIMARY KEY (session, seq, trace_id, parent_id),
    FOREIGN KEY (session, seq) REFERENCES frame (session, seq) ON DELETE CASCADE
  ) WITHOUT ROWID;
  CREATE INDEX trace_id ON trace (trace_id);
  `,
  // Faults
  `
  -- What --fault did to a frame; what its sender had sent is in frame_edit, where something else or nothing went on.
  CREATE TABLE frame_fault (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    rule TEXT NOT NULL,
    action TEXT NOT NULL,
    PRIMARY KEY (session, seq),
    FOREIGN KEY (session, seq) REFERENCES frame (session, seq) ON DELETE CASCADE
  ) WITHOUT ROWID;

  DROP VIEW exchange;
  CREATE VIEW exchange AS
  SELECT session.id AS session, request.seq AS request_seq, answer.seq AS answer_seq,
    CASE WHEN asked.channel IN ('stdin', 'request') THEN 'client' ELSE 'server' END AS asked_by,
    request.id, request.id_type, request.canonical AS method, request.target,
    asked.at AS asked_at, answer.latency / 1000.0 AS latency_ms,
    CASE
      WHEN request.outcome = 'fault' THEN 'fault'
      WHEN answer.outcome IS NOT NULL THEN answer.outcome
      WHEN request.outcome IS NOT NULL THEN request.outcome
      WHEN EXISTS (
        SELECT 1 FROM message AS cancel
        WHERE cancel.session = request.session AND cancel.to_seq = request.seq AND cancel.to_n = request.n
          AND cancel.relation = 'cancel'
      ) THEN 'cancelled'
      ELSE 'unanswered'
    END AS outcome,
    answer.error_code, asked.http
  FROM message AS request
  JOIN session ON session.number = request.session
  JOIN frame AS asked ON asked.session = request.session AND asked.seq = request.seq
  LEFT JOIN message AS answer
    ON answer.session = request.session AND answer.to_seq = request.seq AND answer.to_n = request.n
    AND answer.relation = 'reply'
  WHERE request.kind = 'request';
  `,
  // Shipping to an engine
  `
  -- One row: what tells this store from all others, a random UUID. A copy of the file has the same.
  CREATE TABLE identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
  );
  INSERT INTO identity (one, id) SELECT 1, lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' ||
    substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (abs(random()) % 4), 1) ||
    substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)));

  -- Raised by whatever rewrites rows that were stored: what was shipped of the session is then taken back, and shipped anew.
  ALTER TABLE session ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;

  -- One row once this store is shipped: to which engine, by whom at the moment, what belongs to it, and what is in the way.
  CREATE TABLE shipper (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    target TEXT,
    imported INTEGER NOT NULL DEFAULT 0,
    unredacted INTEGER NOT NULL DEFAULT 0,
    trouble TEXT,
    host TEXT,
    pid INTEGER,
    process_started TEXT,
    at INTEGER
  );

  -- How far each session has come. What the engine says counts, not this.
  CREATE TABLE shipped (
    target TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    frames INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    indexed INTEGER NOT NULL,
    digest BLOB NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (target, session)
  ) WITHOUT ROWID;
  CREATE INDEX shipped_session ON shipped (session);

  -- Sessions that are to be deleted in the engine too.
  CREATE TABLE withdrawal (
    target TEXT NOT NULL,
    key TEXT NOT NULL,
    day TEXT NOT NULL,
    PRIMARY KEY (target, key, day)
  ) WITHOUT ROWID;

  -- What had to go before it was shipped. told_at: the engine knows of it.
  CREATE TABLE loss (
    at INTEGER PRIMARY KEY,
    sessions INTEGER NOT NULL,
    frames INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    told_at INTEGER
  );
  `,
  // Packing
  `
  -- How the payload of an ended session was packed, and its bytes before; null: it stands as it passed.
  ALTER TABLE frame ADD COLUMN codec TEXT;
  ALTER TABLE frame ADD COLUMN unpacked INTEGER;
  ALTER TABLE frame_part ADD COLUMN codec TEXT;
  ALTER TABLE frame_part ADD COLUMN unpacked INTEGER;

  -- How far the packing of a session has come: a process that is killed on the way is followed by the next one from there.
  CREATE TABLE packing (
    session INTEGER PRIMARY KEY REFERENCES session (number) ON DELETE CASCADE,
    seq INTEGER NOT NULL
  );

  DROP VIEW frame_text;
  CREATE VIEW frame_text AS
  SELECT session.id AS session, frame.seq, frame.at, frame.channel,
    CASE WHEN frame.channel IN ('stdin', 'request') THEN 'client-to-server' ELSE 'server-to-client' END AS direction,
    frame.http, frame.size, frame.flags, CASE WHEN frame.codec IS NULL THEN CAST(frame.payload AS TEXT) END AS text
  FROM frame JOIN session ON session.number = frame.session;
  `,
  // Sampling
  `
  -- The share of sessions like this one that are kept: it stands for 1 / sample of them. 0: it is not kept, and is the first to go.
  ALTER TABLE session ADD COLUMN sample REAL;
  -- By what that is decided once the session has ended (JSON); null: nothing is to be decided.
  ALTER TABLE session ADD COLUMN sampling TEXT;
  CREATE INDEX session_sampling ON session (number) WHERE sampling IS NOT NULL;
  `,
  // What shipping has done
  `
  -- Frames that the engine has taken since the store is shipped, and their bytes; what is shipped anew counts again. They never fall.
  ALTER TABLE shipper ADD COLUMN frames INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE shipper ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  -- Transactions by their end, and when the last one was committed.
  ALTER TABLE shipper ADD COLUMN committed INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE shipper ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE shipper ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE shipper ADD COLUMN committed_at INTEGER;
  -- A store that was shipped before begins with what the engine is known to have.
  UPDATE shipper SET frames = (SELECT ifnull(sum(frames), 0) FROM shipped WHERE target = shipper.target),
    bytes = (SELECT ifnull(sum(bytes), 0) FROM shipped WHERE target = shipper.target);
  `,
  // Departures
  `
  -- What engines have of sessions that are gone here, for a while: one that was restored from a backup may have lost it. loss: that is
  -- counted there.
  CREATE TABLE departed (
    target TEXT NOT NULL,
    key TEXT NOT NULL,
    day TEXT NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    frames INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    shipped_at INTEGER NOT NULL,
    at INTEGER NOT NULL,
    loss INTEGER,
    PRIMARY KEY (target, key)
  ) WITHOUT ROWID;
  CREATE INDEX departed_at ON departed (at);
  CREATE INDEX departed_loss ON departed (loss) WHERE loss IS NOT NULL;

  -- Since when it is deleted there. It is remembered for a while: a restored engine has it again.
  ALTER TABLE withdrawal ADD COLUMN done_at INTEGER;
  CREATE INDEX withdrawal_done ON withdrawal (done_at);

  -- 'unshipped': it went before it was shipped. 'engine': the engine had it, and has lost it.
  ALTER TABLE loss ADD COLUMN cause TEXT NOT NULL DEFAULT 'unshipped';
  `,
  // Sampling what is shipped
  `
  -- The share of sessions like this one that are shipped, as it was decided: 1, it has what the filter asks for; 0, it is not shipped, and
  -- is the first to go. Null: nothing had to be decided.
  ALTER TABLE shipped ADD COLUMN sample REAL;
  -- By which rules that is decided (JSON); null: all are shipped.
  ALTER TABLE shipper ADD COLUMN sampling TEXT;
  `,
  // What is learned of a session that was shipped
  `
  -- Raised by what is learned of the session without a frame; where shipped has another number, its row in the engine is brought up to date.
  ALTER TABLE session ADD COLUMN amendments INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE shipped ADD COLUMN amendments INTEGER NOT NULL DEFAULT 0;
  CREATE TRIGGER run_added AFTER INSERT ON run BEGIN UPDATE session SET amendments = amendments + 1 WHERE number = new.session; END;
  CREATE TRIGGER run_renamed AFTER UPDATE OF id ON run WHEN new.id <> old.id BEGIN UPDATE session SET amendments = amendments + 1 WHERE number = new.session; END;
  CREATE TRIGGER run_taken AFTER DELETE ON run BEGIN UPDATE session SET amendments = amendments + 1 WHERE number = old.session; END;
  `,
];
