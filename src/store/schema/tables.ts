/**
 * What migrations make in both databases, in the words of SQLite. Like them, what is here is never changed: what comes
 * later is another entry. Times are ms since 1970, money nano-dollars.
 */
export const FIRST_TABLES = `
  CREATE TABLE balances (
    id TEXT PRIMARY KEY,
    account_id TEXT,
    suspended TEXT,
    recovery_hash TEXT UNIQUE,
    created_at INTEGER NOT NULL,
    -- When it became its account's; the first is the one that a session acts on.
    attached_at INTEGER,
    -- The lineage of the key that was made at set-up; null for a balance that a sign-in made.
    setup_key TEXT,
    -- The recovery secret from before its account replaced it: see accounts/ownership.
    undo_hash TEXT,
    -- When its claim took effect: attached_at may be later, so that an account's balances keep their order.
    claimed_at INTEGER,
    closed_at INTEGER,
    -- When both secrets of a balance were shown to be saved.
    secrets_saved_at INTEGER
  ) STRICT;
  CREATE INDEX balances_by_account ON balances (account_id);
  CREATE INDEX balances_by_time ON balances (created_at, id);
  CREATE UNIQUE INDEX balances_by_undo ON balances (undo_hash) WHERE undo_hash IS NOT NULL;

  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    name TEXT,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    lineage TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    rpm_limit INTEGER,
    tpm_limit INTEGER,
    daily_limit INTEGER,
    monthly_limit INTEGER,
    allowed_models TEXT,
    budgets TEXT NOT NULL,
    -- The account whose session made the key; null for others.
    made_by TEXT
  ) STRICT;
  CREATE INDEX keys_by_balance ON keys (balance_id, created_at, id);
  CREATE INDEX keys_by_lineage ON keys (lineage);

  -- One row a person: an email or a wallet. proved_at is null until somebody signed in with it.
  CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT UNIQUE,
    wallet TEXT UNIQUE,
    suspended TEXT,
    created_at INTEGER NOT NULL,
    proved_at INTEGER,
    -- Its address is erased then, and its balances stay for the books.
    deleted_at INTEGER
  ) STRICT;

  -- Balances offered to an email address whose owner has not confirmed yet.
  CREATE TABLE claims (
    balance_id TEXT PRIMARY KEY REFERENCES balances (id),
    account_id TEXT NOT NULL REFERENCES accounts (id),
    at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX claims_by_account ON claims (account_id);

  CREATE TABLE sessions (
    hash TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_account ON sessions (account_id, expires_at);
  CREATE INDEX sessions_by_end ON sessions (expires_at);

  CREATE TABLE sign_in_links (
    hash TEXT PRIMARY KEY,
    email TEXT NOT NULL,
    claimed TEXT,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sign_in_links_by_email ON sign_in_links (email, expires_at);
  CREATE INDEX sign_in_links_by_end ON sign_in_links (expires_at);

  -- Messages that a wallet was asked to sign, until they are used or expire.
  CREATE TABLE wallet_messages (
    hash TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    chain_id INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX wallet_messages_by_end ON wallet_messages (expires_at);

  -- What deleted ends came to, so that every sum can still be recomputed: see store/ledger/fold.
  CREATE TABLE folded (
    balance_id TEXT NOT NULL,
    -- its first instant
    month INTEGER NOT NULL,
    receipts INTEGER NOT NULL,
    charged INTEGER NOT NULL,
    written_off INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    PRIMARY KEY (balance_id, month)
  ) STRICT, WITHOUT ROWID;

  -- counters besides the balance, and allowances in requests
  CREATE TABLE folded_counters (counter TEXT PRIMARY KEY, spent INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- Kept by earlier versions only, which remembered here whose credit was low.
  CREATE TABLE low_credit (
    balance_id TEXT PRIMARY KEY REFERENCES balances (id),
    state TEXT NOT NULL,
    until INTEGER NOT NULL,
    credited INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- Parts of a JSON Web Key; d is the private one, null once a later key has taken its place.
  CREATE TABLE signing_keys (
    number INTEGER PRIMARY KEY,
    created_at INTEGER NOT NULL,
    x TEXT NOT NULL,
    d TEXT
  ) STRICT;

  -- Of several reasons for a suspension, each stands until it is lifted; the column suspended has the gravest.
  CREATE TABLE suspension_reasons (
    subject TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (subject, reason)
  ) STRICT, WITHOUT ROWID;
  -- See payments/payment. Rows are never deleted.
  CREATE TABLE payments (
    id TEXT PRIMARY KEY,
    rail TEXT NOT NULL,
    external TEXT NOT NULL,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    key_id TEXT,
    state TEXT NOT NULL,
    amount INTEGER NOT NULL,
    payer TEXT,
    "transaction" TEXT,
    reason TEXT,
    "order" TEXT NOT NULL,
    idempotency_key TEXT,
    is_inline INTEGER NOT NULL,
    credited INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    look_at INTEGER,
    UNIQUE (rail, external)
  ) STRICT;
  CREATE INDEX payments_by_balance ON payments (balance_id, created_at);
  CREATE INDEX payments_by_time ON payments (created_at, id);
  CREATE INDEX payments_due ON payments (look_at) WHERE look_at IS NOT NULL;
  -- What came to nothing gives the key free.
  CREATE UNIQUE INDEX payments_by_key ON payments (balance_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND state NOT IN ('expired', 'failed', 'unused', 'rejected');

  -- Those that a wallet has under way, and those of a balance that were not needed and are watched yet.
  CREATE INDEX payments_under_way ON payments (payer) WHERE state IN ('created', 'submitted');
  CREATE INDEX payments_unused ON payments (balance_id) WHERE state = 'unused' AND look_at IS NOT NULL;

  -- see customers/keys/run
  CREATE TABLE runs (
    balance_id TEXT NOT NULL,
    name TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    cap INTEGER,
    calls INTEGER,
    PRIMARY KEY (balance_id, name)
  ) STRICT, WITHOUT ROWID;

  -- How far each node's journal was booked, stored together with what it says.
  CREATE TABLE shipped (
    node TEXT NOT NULL,
    file INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (node, file)
  ) STRICT, WITHOUT ROWID;
`;

export const RUNS_OF_KEYS = `
  -- The lineage of the key that may lower its limits; null for a run from before that was known.
  ALTER TABLE runs ADD COLUMN started_by TEXT;
  ALTER TABLE runs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
`;

export const GAS_NONCES = `
  -- See payments/gas-line. Rows go once their nonce is in a final block.
  CREATE TABLE gas_nonces (
    chain_id INTEGER NOT NULL,
    account TEXT NOT NULL,
    nonce INTEGER NOT NULL,
    payment TEXT,
    -- with a space between two
    signed TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    signed_at INTEGER NOT NULL,
    PRIMARY KEY (chain_id, account, nonce)
  ) STRICT, WITHOUT ROWID;
`;

export const WASTED_GAS = `
  -- Gas that a payment's transfer may waste, or has wasted; see payments/payment.
  ALTER TABLE payments ADD COLUMN gas INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE payments ADD COLUMN wasted_at INTEGER;
  CREATE INDEX payments_wasted ON payments (wasted_at, payer) WHERE wasted_at IS NOT NULL;
`;

export const CLAIMS = `
  -- Of what was taken back, what requests held: it may yet be lost. Zero once that is decided.
  ALTER TABLE credits ADD COLUMN claimed INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX credits_claimed ON credits (idempotency_key) WHERE claimed > 0;
  -- What of its amount the payment should have credited, as its rail last saw it; null where that is not known.
  ALTER TABLE payments ADD COLUMN should_be INTEGER;
`;

export const ROOTS = `
  -- How many claims of a balance were withdrawn, undone or detached: claim number reclaims + 1 is in force, or none.
  ALTER TABLE balances ADD COLUMN reclaims INTEGER NOT NULL DEFAULT 0;
  -- The number of the claim that a key derives from, 0 for set-up: see customers/keys/root. It takes the place of made_by.
  ALTER TABLE keys ADD COLUMN root INTEGER NOT NULL DEFAULT 0;
  -- What was made since an account with a recovery secret of its own claimed the balance may be made with that one.
  UPDATE keys SET root = 1 WHERE balance_id IN (SELECT id FROM balances WHERE setup_key IS NOT NULL) AND (
    made_by IS NOT NULL OR created_at >= (
      SELECT coalesce(claimed_at, attached_at) FROM balances WHERE id = keys.balance_id AND undo_hash IS NOT NULL));
`;

export const FLEET = `
  -- see store/nodes/fleet
  CREATE TABLE fleet_secrets (name TEXT PRIMARY KEY, secret TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE node_settings (node TEXT PRIMARY KEY, settings TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

export const VERSIONS = `
  ALTER TABLE accounts ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE balances ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE payments ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE runs ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
`;

export const PRICE_LISTS = `
  -- The names of price lists of the configuration: see catalog/price-list.
  ALTER TABLE balances ADD COLUMN price_list TEXT;
  ALTER TABLE keys ADD COLUMN price_list TEXT;
`;

export const MODEL_VERSIONS = `
  -- see store/books/model-versions
  CREATE TABLE model_versions (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    source TEXT NOT NULL,
    previous INTEGER NOT NULL,
    models TEXT NOT NULL
  ) STRICT;
`;

export const EVENTS = `
  -- See customers/events. An event is there only if an endpoint takes its kind.
  CREATE TABLE events (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    balance_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- JSON
    data TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX events_by_time ON events (created_at, id);

  CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    -- each between two spaces; empty for all
    kinds TEXT NOT NULL,
    -- with a space between two
    secrets TEXT NOT NULL,
    low_credit INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    problem TEXT,
    paused_at INTEGER,
    due_at INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;

  -- Events that wait for an endpoint.
  CREATE TABLE webhook_deliveries (
    webhook_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    PRIMARY KEY (webhook_id, created_at, event_id)
  ) STRICT, WITHOUT ROWID;
`;

export const KEY_POLICIES = `
  -- JSON: see units/key-policy. Null: none.
  ALTER TABLE keys ADD COLUMN policy TEXT;
`;

export const OWNERS_EVENTS = `
  -- Endpoints of owners: see customers/events/own-webhook. Apart from those of the configuration, because gateways from
  -- before would remove them there.
  CREATE TABLE owner_webhooks (
    id TEXT PRIMARY KEY,
    balance_id TEXT NOT NULL,
    url TEXT NOT NULL,
    -- each between two spaces; empty for all
    kinds TEXT NOT NULL,
    format TEXT NOT NULL,
    -- sealed, the newest first, with a space between two
    secrets TEXT NOT NULL,
    -- The older secret signs until then.
    overlap_until INTEGER,
    created_at INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    problem TEXT,
    paused_at INTEGER,
    due_at INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX owner_webhooks_by_balance ON owner_webhooks (balance_id, created_at, id);

  -- As webhook_deliveries.
  CREATE TABLE owner_deliveries (
    webhook_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    PRIMARY KEY (webhook_id, created_at, event_id)
  ) STRICT, WITHOUT ROWID;

  -- What endpoints took, for as long as its events are kept.
  CREATE TABLE delivered_events (
    event_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    delivered_at INTEGER NOT NULL,
    PRIMARY KEY (event_id, webhook_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX events_by_balance ON events (balance_id, created_at, id);
`;

export const CHANGE_LOG = `
  -- See customers/changes. Rows are added in the transaction of what they tell, and never changed.
  CREATE TABLE change_log (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    by_kind TEXT NOT NULL,
    by_id TEXT NOT NULL,
    by_name TEXT,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    balance_id TEXT,
    -- JSON: the fields that differ
    was TEXT NOT NULL,
    became TEXT NOT NULL,
    network TEXT NOT NULL,
    request TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX change_log_by_time ON change_log (created_at, id);
  CREATE INDEX change_log_by_balance ON change_log (balance_id, created_at, id) WHERE balance_id IS NOT NULL;
  CREATE INDEX change_log_by_subject ON change_log (subject, created_at, id);
  CREATE INDEX change_log_by_author ON change_log (by_id, created_at, id);
  CREATE INDEX change_log_by_action ON change_log (action, created_at, id);
`;

export const TAG_BUDGETS = `
  -- The tag of which each value has the cap for itself; null: all requests share it.
  ALTER TABLE budgets ADD COLUMN per TEXT;
`;

export const EXPORTS = `
  -- See store/export. Where rows of the books are exported to; the configuration names the active one.
  CREATE TABLE export_targets (
    id TEXT PRIMARY KEY,
    is_active INTEGER NOT NULL,
    due_at INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    problem TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE export_cursors (
    target TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- the number of the last row that is there
    last INTEGER NOT NULL DEFAULT 0,
    -- the file that is being written: the number of its last row, and how many rows it has
    file_last INTEGER,
    file_rows INTEGER,
    -- what was booked before then is there
    caught_up_at INTEGER NOT NULL,
    PRIMARY KEY (target, kind)
  ) STRICT, WITHOUT ROWID;

  -- Numbers events in the order of their transactions; null until then.
  ALTER TABLE events ADD COLUMN seq INTEGER;
  CREATE INDEX events_by_number ON events (seq);
  UPDATE events SET seq = numbered.number
    FROM (SELECT id AS event, row_number() OVER (ORDER BY created_at, id) AS number FROM events) AS numbered
    WHERE id = numbered.event;
`;

export const OPERATORS = `
  -- See customers/operators: those of the configuration are not here.
  CREATE TABLE operators (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
  ) STRICT, WITHOUT ROWID;
`;

export const EXPORTED_CHANGES = `
  -- Numbers changes in the order of their transactions; null until then.
  ALTER TABLE change_log ADD COLUMN seq INTEGER;
  CREATE INDEX change_log_by_number ON change_log (seq);
  UPDATE change_log SET seq = numbered.number
    FROM (SELECT id AS change, row_number() OVER (ORDER BY created_at, id) AS number FROM change_log) AS numbered
    WHERE id = numbered.change;
`;

/** PostgreSQL's columns have their type anyway, and its whole numbers need saying how long they are. */
export const inPostgres = (tables: string): string =>
  tables.replaceAll("INTEGER", "BIGINT").replace(/\) STRICT(, WITHOUT ROWID)?;/g, ");");
