/**
 * Who may do what, in one place: every credential held against every operation. `access.test.ts` runs each cell
 * against a gateway, and holds the table of docs/decisions/0008-accounts.md against this one. To write that again:
 * `bun test/access/credentials.ts`.
 */

/** All but the last six are of one balance. */
const CREDENTIALS = {
  none: "no credential",
  setUpKey: "set-up key",
  rotatedKey: "rotated set-up key",
  ownerMadeKey: "owner-made key",
  rotatedOutKey: "rotated-out key",
  revokedKey: "revoked key",
  recovery: "recovery secret",
  oldRecovery: "old recovery secret",
  session: "session of its account",
  otherSession: "session of another",
  reader: "operator, read",
  operating: "operator, operate",
  fellow: "operator, admin",
  admin: "admin token",
} as const;
export type Credential = keyof typeof CREDENTIALS;
export const ALL = Object.keys(CREDENTIALS) as Credential[];

/** What the balance is, where it matters: accounts/ownership. `replaced`: claimed, with a secret from its account. */
export type State = "nobody's" | "reclaimed" | "offered" | "claimed" | "replaced" | "kept";

export interface Operation {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /**
   * `{itself}` is the key that asks, or for others the owner-made one; `{another}` another key of the balance. A
   * key's receipt is its own, and an owner's id the account's or the balance's.
   */
  readonly path: string;
  /** `{signed}` is a message that a wallet has signed. */
  readonly body?: object | string;
  /** What this row is about, next to method and path. */
  readonly note?: string;
  /** `claimed` where none is named. */
  readonly state?: State;
  /** The status for those who may. */
  readonly ok?: 200 | 201 | 202 | 204;
  readonly who: readonly Credential[];
  /** For others that are live, where it is not 400 invalid_request. */
  readonly others?: string;
}

const KEYS = ["setUpKey", "rotatedKey", "ownerMadeKey", "rotatedOutKey"] as const;
const OWNERS = ["recovery", "session"] as const;
const ANY_OWNER = [...OWNERS, "otherSession"] as const;
const SESSIONS = ["session", "otherSession"] as const;
const SET_UP = ["setUpKey", "rotatedKey", "rotatedOutKey"] as const;
const ADMIN = ["fellow", "admin"] as const;
const OPERATING = ["operating", ...ADMIN] as const;
const READING = ["reader", ...OPERATING] as const;
const REQUEST = { model: "sim/echo:free", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] };

export const OPERATIONS: readonly Operation[] = [
  operation("POST /v1/keys", ["none", ...ANY_OWNER], { ok: 201 }),
  operation("GET /v1/keys", [...KEYS, ...ANY_OWNER]),
  operation("GET /v1/keys/{itself}", [...KEYS, ...OWNERS]),
  operation("GET /v1/keys/{another}", OWNERS),
  operation("POST /v1/keys/find", OWNERS, { body: { key: "{theirs}" } }),
  operation("PATCH /v1/keys/{itself}", [...KEYS, ...OWNERS], { note: "tighter", body: { rpm_limit: 5 } }),
  operation("PATCH /v1/keys/{itself}", OWNERS, { note: "looser", body: { rpm_limit: 5_000 } }),
  operation("PATCH /v1/keys/{another}", OWNERS, { body: { rpm_limit: 5 } }),
  operation("POST /v1/keys/{itself}/rotate", ["setUpKey", "rotatedKey", "ownerMadeKey", ...OWNERS]),
  operation("POST /v1/keys/{another}/rotate", OWNERS),
  operation("POST /v1/keys/{itself}/revoke", [...KEYS, ...OWNERS]),
  operation("DELETE /v1/keys/{itself}", [...KEYS, ...OWNERS]),
  operation("DELETE /v1/keys/{another}", OWNERS),

  operation("GET /v1/me", [...KEYS, ...ANY_OWNER]),
  operation("PATCH /v1/me", ANY_OWNER, { body: { low_credit_usd: 1 } }),
  operation("POST /v1/me/claim", SET_UP, {
    note: "email",
    state: "nobody's",
    body: { email: "new@example.com" },
  }),
  operation("POST /v1/me/claim", SET_UP, { note: "wallet", state: "nobody's", body: { wallet: "{signed}" } }),
  operation("POST /v1/me/claim", [], { state: "offered", body: { email: "new@example.com" } }),
  operation("POST /v1/me/claim", [], { state: "claimed", body: { wallet: "{signed}" } }),
  operation("POST /v1/me/claim", [], { state: "reclaimed", body: { wallet: "{signed}" } }),
  operation("POST /v1/me/claim", KEYS, {
    note: "with the recovery secret",
    state: "reclaimed",
    body: { wallet: "{signed}", recovery_secret: "{recovery}" },
  }),
  operation("DELETE /v1/me/claim", [], { state: "nobody's" }),
  operation("DELETE /v1/me/claim", [], { state: "reclaimed" }),
  operation("DELETE /v1/me/claim", ["recovery"], { state: "offered" }),
  operation("DELETE /v1/me/claim", ["recovery"], { state: "claimed" }),
  operation("DELETE /v1/me/claim", ["oldRecovery"], { state: "replaced" }),
  operation("DELETE /v1/me/claim", [], { state: "kept" }),
  operation("GET /v1/me/claims", SESSIONS),
  operation("POST /v1/me/claims/{offered}", ["session"]),
  operation("DELETE /v1/me/claims/{offered}", ["session"]),
  operation("POST /v1/me/recovery", ANY_OWNER),
  operation("DELETE /v1/me", ANY_OWNER, { state: "nobody's", body: { confirm: "{own}" } }),
  operation("DELETE /v1/me", ANY_OWNER, { state: "reclaimed", body: { confirm: "{own}" } }),
  operation("DELETE /v1/me", SESSIONS, { state: "claimed", body: { confirm: "{own}" } }),
  operation("DELETE /v1/me", SESSIONS, { state: "kept", body: { confirm: "{own}" } }),

  operation("POST /v1/auth/email", ALL, { body: { email: "any@example.com" }, ok: 202 }),
  operation("POST /v1/auth/email/preview", ALL, { body: { token: "{token}" } }),
  operation("POST /v1/auth/email/verify", ALL, { body: { token: "{token}" } }),
  operation("POST /v1/auth/wallet", ALL, { body: { address: `0x${"ab".repeat(20)}`, chain_id: 1 } }),
  operation("POST /v1/auth/wallet/verify", ALL, { body: "{signed}" }),
  operation("POST /v1/auth/logout", SESSIONS, { ok: 204 }),
  operation("GET /v1/auth/sessions", SESSIONS),
  operation("DELETE /v1/auth/sessions", SESSIONS),
  operation("DELETE /v1/auth/sessions/{session}", ["session"]),

  operation("GET /v1/budgets", ANY_OWNER),
  operation("POST /v1/budgets", ANY_OWNER, { body: { name: "b", cap_usd: 1, window: "day" }, ok: 201 }),
  operation("GET /v1/budgets/team", OWNERS),
  operation("PATCH /v1/budgets/team", OWNERS, { body: { cap_usd: 2 } }),
  operation("DELETE /v1/budgets/team", OWNERS),
  operation("PATCH /v1/runs/job", OWNERS, { body: { calls: 5 } }),
  operation("DELETE /v1/runs/job", OWNERS),
  operation("GET /v1/events", ANY_OWNER),
  operation("GET /v1/webhooks", ANY_OWNER),
  operation("POST /v1/webhooks", ANY_OWNER, { body: { url: "http://127.0.0.1:1/" }, ok: 201 }),
  operation("GET /v1/webhooks/{webhook}", OWNERS),
  operation("PATCH /v1/webhooks/{webhook}", OWNERS, { body: { paused: true } }),
  operation("POST /v1/webhooks/{webhook}/test", OWNERS),
  operation("POST /v1/webhooks/{webhook}/rotate", OWNERS),
  operation("DELETE /v1/webhooks/{webhook}", OWNERS),
  operation("GET /v1/receipts", [...KEYS, ...ANY_OWNER]),
  operation("GET /v1/receipts/{receipt}", [...KEYS, ...OWNERS], { note: "its own" }),
  operation("GET /v1/receipts/{others}", OWNERS, { note: "another key's" }),
  operation("GET /v1/credits", [...KEYS, ...ANY_OWNER]),
  operation("GET /v1/changes", ANY_OWNER),
  operation("POST /v1/me/saved", ["recovery"], { body: { key: "{theirs}" } }),
  operation("GET /v1/payments/options", [...KEYS, ...ANY_OWNER]),
  operation("POST /v1/credits", ANY_OWNER, {
    note: "by card",
    body: { amount_usd: 5, rail: "card" },
    ok: 201,
  }),
  operation("GET /v1/payments", [...KEYS, ...ANY_OWNER]),
  operation("GET /v1/payments/{payment}", OWNERS),
  operation("GET /v1/key", KEYS),
  operation("GET /v1/auth/key", KEYS),
  operation("GET /v1/generation?id={receipt}", [...KEYS, ...OWNERS]),
  operation("GET /key/info", KEYS),
  operation("GET /v1/usage", [...KEYS, ...ANY_OWNER]),
  operation("GET /v1/catalog", [...KEYS, ...ANY_OWNER]),
  operation("GET /v1/models", [...KEYS, ...ANY_OWNER]),
  operation("GET /v1/models/sim%2Fecho", [...KEYS, ...ANY_OWNER]),
  operation("GET /v1/models/sim/echo", [...KEYS, ...ANY_OWNER]),

  operation("POST /v1/chat/completions", KEYS, { body: REQUEST, others: "401 invalid_api_key" }),
  operation("POST /v1/responses", KEYS, {
    body: { model: "sim/echo:free", input: "Hello", max_output_tokens: 16, store: false },
    others: "401 invalid_api_key",
  }),
  operation("POST /v1/responses/compact", KEYS, {
    body: { model: "sim/echo", input: "Hi" },
    others: "401 invalid_api_key",
  }),
  operation("POST /v1/messages", KEYS, { body: REQUEST, others: "401 invalid_api_key" }),
  operation("POST /v1/messages/count_tokens", KEYS, {
    body: { model: "sim/echo", messages: REQUEST.messages },
  }),

  operation("POST /admin/credits", OPERATING, {
    body: { balance_id: "{balance}", amount_usd: 1, idempotency_key: "{balance} more" },
  }),
  operation("POST /admin/debits", OPERATING, {
    body: { balance_id: "{balance}", amount_usd: "all", idempotency_key: "{balance} back" },
  }),
  operation("POST /admin/accounts/{account}/suspend", OPERATING, { body: { reason: "sanctions" } }),
  operation("POST /admin/accounts/{account}/unsuspend", OPERATING),
  operation("POST /admin/accounts/{account}/detach", OPERATING, {
    state: "offered",
    body: { balance_id: "{balance}" },
  }),
  operation("POST /admin/accounts/{account}/detach", OPERATING, {
    state: "claimed",
    body: { balance_id: "{balance}" },
  }),
  operation("POST /admin/accounts/{account}/detach", OPERATING, {
    state: "kept",
    body: { balance_id: "{balance}" },
  }),
  operation("GET /admin/accounts?email=any@example.com", READING),
  operation("GET /admin/accounts/{account}", READING),
  operation("GET /admin/accounts/{account}/suspensions", READING),
  operation("GET /admin/ledger/audit", READING),
  operation("POST /admin/reload", ADMIN),
  operation("GET /admin/balances", READING),
  operation("GET /admin/balances/{balance}", READING),
  operation("GET /admin/balances/{balance}/keys", READING),
  operation("GET /admin/balances/{balance}/receipts", READING),
  operation("PATCH /admin/balances/{balance}", OPERATING, { body: { price_list: null } }),
  operation("GET /admin/balances/{balance}/credits", READING),
  operation("GET /admin/balances/{balance}/budgets", READING),
  operation("PATCH /admin/balances/{balance}/budgets/team", OPERATING, { body: { cap_usd: 3 } }),
  operation("GET /admin/events", READING),
  operation("GET /admin/webhooks", READING),
  operation("POST /admin/webhooks/{operators}/test", OPERATING),
  operation("GET /admin/receipts", READING),
  operation("GET /admin/receipts/{others}", READING),
  operation("GET /admin/payments", READING),
  operation("POST /admin/signing-keys", ADMIN, { ok: 201 }),
  operation("POST /admin/keys", OPERATING, { body: { name: "theirs" }, ok: 201 }),
  operation("POST /admin/balances/{balance}/keys", OPERATING, { body: { name: "another" }, ok: 201 }),
  operation("POST /admin/keys/find", READING, { body: { key: "{theirs}" } }),
  operation("GET /admin/keys/{another}", READING),
  operation("PATCH /admin/keys/{another}", OPERATING, { body: { rpm_limit: 500 } }),
  operation("POST /admin/keys/{another}/revoke", OPERATING),
  operation("GET /admin/usage", READING),
  operation("GET /admin/overview", READING),
  operation("GET /admin/changes", READING),
  operation("GET /admin/hosts", READING),
  operation("GET /admin/nodes", READING),
  operation("GET /admin/exports", READING),
  operation("GET /admin/config", READING),
  operation("POST /admin/models", ADMIN, { body: { source: "a list", models: "[]" } }),
  operation("GET /metrics", READING),
  operation("GET /admin/me", READING),
  operation("GET /admin/operators", ADMIN),
  operation("POST /admin/operators", ADMIN, { body: { name: "{operator}", role: "read" }, ok: 201 }),
  operation("POST /admin/operators/{colleague}/rotate", ADMIN),
  operation("DELETE /admin/operators/{colleague}", ADMIN),
  ...[
    "/docs/errors",
    "/docs/api",
    "/openapi.json",
    "/models",
    "/models/sim/echo",
    "/status",
    "/status.json",
    "/dashboard",
    "/admin",
    "/favicon.ico",
    "/.well-known/jwks.json",
    "/healthz",
    "/readyz",
    "/llms.txt",
    "/",
  ].map((path) => operation(`GET ${path}`, ALL)),
];

/** `name` is method and path, `who` those who may. */
function operation(name: string, who: readonly Credential[], more: Partial<Operation> = {}): Operation {
  const [method, path] = name.split(" ") as [Operation["method"], string];
  return { method, path, who, ...more };
}

/** What a cell is answered with: a status, and for refusals the code. */
export function expected(
  { path, who, ok = 200, others = "400 invalid_request" }: Operation,
  by: Credential,
): string {
  if (who.includes(by)) return String(ok);
  if (by === "none") return "401 missing_api_key";
  const operators = path.startsWith("/admin/") || path === "/metrics";
  // Their tokens are right, and their role is not.
  if (operators && READING.includes(by as never)) return "403 invalid_request";
  return operators || DEAD.includes(by) ? "401 invalid_api_key" : others;
}

const DEAD: readonly Credential[] = ["revokedKey", "oldRecovery", ...READING];

export function credentialTable(): string {
  const rows = OPERATIONS.filter(({ who }) => who !== ALL).map((operation) => [
    nameOf(operation),
    ...ALL.map((by) => (operation.who.includes(by) ? "yes" : expected(operation, by).slice(0, 3))),
  ]);
  const head = ["operation", ...Object.values(CREDENTIALS)];
  // As the formatter lays tables out.
  const widths = head.map((_, at) => Math.max(...[head, ...rows].map((cells) => cells[at]!.length)));
  const padded = (cells: readonly string[]) => cells.map((cell, at) => cell.padEnd(widths[at]!));
  return [padded(head), widths.map((width) => "-".repeat(width)), ...rows.map(padded)]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}

export function nameOf({ method, path, note, state }: Operation): string {
  const about = [note, state === undefined ? undefined : STATES[state]].filter((part) => part !== undefined);
  return `\`${method} ${path}\`${about.length === 0 ? "" : `, ${about.join(", ")}`}`;
}

const STATES: Record<State, string> = {
  "nobody's": "nobody's balance",
  reclaimed: "claim taken back",
  offered: "claim waits",
  claimed: "claimed",
  replaced: "claimed, secret replaced by the account",
  kept: "claimed over 7 days ago",
};

const DOCUMENT = new URL("../../docs/decisions/0008-accounts.md", import.meta.url);
const TABLE = /(?<=<!-- test\/access\/credentials.ts -->\n\n)[\s\S]*?(?=\n<!-- end -->)/;

export const readDocument = (): Promise<string> => Bun.file(DOCUMENT).text();
export const tableIn = (document: string): string | undefined => TABLE.exec(document)?.[0];

if (import.meta.main) {
  await Bun.write(DOCUMENT, (await readDocument()).replace(TABLE, credentialTable));
}
