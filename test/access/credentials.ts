/**
 * Who may do what, in one place: every credential held against every operation. `access.test.ts` runs each cell
 * against a gateway, and holds the table of docs/decisions/0008-accounts.md against this one. To write that anew:
 * `bun test/access/credentials.ts`.
 */

/** All but the last two are of one balance. */
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
  admin: "admin token",
} as const;
export type Credential = keyof typeof CREDENTIALS;
export const ALL = Object.keys(CREDENTIALS) as Credential[];

/** What the balance is, where it matters: accounts/belonging. `replaced`: claimed, with a secret from its account. */
export type State = "nobody's" | "offered" | "claimed" | "replaced" | "kept";

export interface Operation {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /**
   * `{itself}` is the key that asks, or for others the owner-made one; `{another}` another key of the balance. A
   * key's receipt is its own, and an owner's id the account's or the balance's.
   */
  readonly path: string;
  /** `{signed}` is a message that a wallet has signed. */
  readonly body?: object | string;
  /** What this row is about, beside method and path. */
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
const ADMIN = ["admin"] as const;
const ASK = { model: "sim/echo:free", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] };

export const OPERATIONS: readonly Operation[] = [
  { method: "POST", path: "/v1/keys", ok: 201, who: ["none", ...ANY_OWNER] },
  { method: "GET", path: "/v1/keys", who: [...KEYS, ...ANY_OWNER] },
  { method: "GET", path: "/v1/keys/{itself}", who: [...KEYS, ...OWNERS] },
  { method: "GET", path: "/v1/keys/{another}", who: OWNERS },
  {
    method: "PATCH",
    path: "/v1/keys/{itself}",
    note: "tighter",
    body: { rpm_limit: 5 },
    who: [...KEYS, ...OWNERS],
  },
  { method: "PATCH", path: "/v1/keys/{itself}", note: "looser", body: { rpm_limit: 5_000 }, who: OWNERS },
  { method: "PATCH", path: "/v1/keys/{another}", body: { rpm_limit: 5 }, who: OWNERS },
  {
    method: "POST",
    path: "/v1/keys/{itself}/rotate",
    who: ["setUpKey", "rotatedKey", "ownerMadeKey", ...OWNERS],
  },
  { method: "POST", path: "/v1/keys/{another}/rotate", who: OWNERS },
  { method: "POST", path: "/v1/keys/{itself}/revoke", who: [...KEYS, ...OWNERS] },
  { method: "DELETE", path: "/v1/keys/{itself}", who: [...KEYS, ...OWNERS] },
  { method: "DELETE", path: "/v1/keys/{another}", who: OWNERS },

  { method: "GET", path: "/v1/me", who: [...KEYS, ...ANY_OWNER] },
  {
    method: "POST",
    path: "/v1/me/claim",
    note: "email",
    state: "nobody's",
    body: { email: "new@example.com" },
    who: SET_UP,
  },
  {
    method: "POST",
    path: "/v1/me/claim",
    note: "wallet",
    state: "nobody's",
    body: { wallet: "{signed}" },
    who: SET_UP,
  },
  {
    method: "POST",
    path: "/v1/me/claim",
    state: "offered",
    body: { email: "new@example.com" },
    who: [],
  },
  { method: "POST", path: "/v1/me/claim", state: "claimed", body: { wallet: "{signed}" }, who: [] },
  { method: "DELETE", path: "/v1/me/claim", state: "nobody's", who: [] },
  { method: "DELETE", path: "/v1/me/claim", state: "offered", who: ["recovery"] },
  { method: "DELETE", path: "/v1/me/claim", state: "claimed", who: ["recovery"] },
  { method: "DELETE", path: "/v1/me/claim", state: "replaced", who: ["oldRecovery"] },
  { method: "DELETE", path: "/v1/me/claim", state: "kept", who: [] },
  { method: "GET", path: "/v1/me/claims", who: SESSIONS },
  { method: "POST", path: "/v1/me/claims/{offered}", who: ["session"] },
  { method: "DELETE", path: "/v1/me/claims/{offered}", who: ["session"] },
  { method: "POST", path: "/v1/me/recovery", who: ANY_OWNER },
  { method: "DELETE", path: "/v1/me", state: "nobody's", body: { confirm: "{own}" }, who: ANY_OWNER },
  { method: "DELETE", path: "/v1/me", state: "claimed", body: { confirm: "{own}" }, who: SESSIONS },
  { method: "DELETE", path: "/v1/me", state: "kept", body: { confirm: "{own}" }, who: SESSIONS },

  { method: "POST", path: "/v1/auth/email", body: { email: "any@example.com" }, ok: 202, who: ALL },
  { method: "POST", path: "/v1/auth/email/preview", body: { token: "{token}" }, who: ALL },
  { method: "POST", path: "/v1/auth/email/verify", body: { token: "{token}" }, who: ALL },
  {
    method: "POST",
    path: "/v1/auth/wallet",
    body: { address: `0x${"ab".repeat(20)}`, chain_id: 1 },
    who: ALL,
  },
  { method: "POST", path: "/v1/auth/wallet/verify", body: "{signed}", who: ALL },
  { method: "POST", path: "/v1/auth/logout", ok: 204, who: SESSIONS },
  { method: "GET", path: "/v1/auth/sessions", who: SESSIONS },
  { method: "DELETE", path: "/v1/auth/sessions", who: SESSIONS },
  { method: "DELETE", path: "/v1/auth/sessions/{session}", who: ["session"] },

  { method: "GET", path: "/v1/budgets", who: ANY_OWNER },
  {
    method: "POST",
    path: "/v1/budgets",
    body: { name: "b", cap_usd: 1, window: "day" },
    ok: 201,
    who: ANY_OWNER,
  },
  { method: "GET", path: "/v1/budgets/team", who: OWNERS },
  { method: "PATCH", path: "/v1/budgets/team", body: { cap_usd: 2 }, who: OWNERS },
  { method: "DELETE", path: "/v1/budgets/team", who: OWNERS },
  { method: "GET", path: "/v1/receipts", who: [...KEYS, ...ANY_OWNER] },
  { method: "GET", path: "/v1/receipts/{receipt}", note: "its own", who: [...KEYS, ...OWNERS] },
  { method: "GET", path: "/v1/receipts/{others}", note: "another key's", who: OWNERS },
  { method: "GET", path: "/v1/credits", who: ANY_OWNER },
  { method: "GET", path: "/v1/usage", who: [...KEYS, ...ANY_OWNER] },
  { method: "GET", path: "/v1/catalog", who: [...KEYS, ...ANY_OWNER] },
  { method: "GET", path: "/v1/models", who: [...KEYS, ...ANY_OWNER] },
  { method: "GET", path: "/v1/models/sim%2Fecho", who: [...KEYS, ...ANY_OWNER] },
  { method: "GET", path: "/v1/models/sim/echo", who: [...KEYS, ...ANY_OWNER] },

  { method: "POST", path: "/v1/chat/completions", body: ASK, who: KEYS, others: "401 invalid_api_key" },
  {
    method: "POST",
    path: "/v1/responses",
    body: { model: "sim/echo:free", input: "Hello", max_output_tokens: 16, store: false },
    who: KEYS,
    others: "401 invalid_api_key",
  },
  {
    method: "POST",
    path: "/v1/responses/compact",
    body: { model: "sim/echo", input: "Hi" },
    who: KEYS,
    others: "401 invalid_api_key",
  },
  { method: "POST", path: "/v1/messages", body: ASK, who: KEYS, others: "401 invalid_api_key" },
  {
    method: "POST",
    path: "/v1/messages/count_tokens",
    body: { model: "sim/echo", messages: ASK.messages },
    who: KEYS,
  },

  {
    method: "POST",
    path: "/admin/credits",
    body: { balance_id: "{balance}", amount_usd: 1, idempotency_key: "{balance} more" },
    who: ADMIN,
  },
  {
    method: "POST",
    path: "/admin/debits",
    body: { balance_id: "{balance}", amount_usd: "all", idempotency_key: "{balance} back" },
    who: ADMIN,
  },
  {
    method: "POST",
    path: "/admin/accounts/{account}/suspend",
    body: { reason: "sanctions" },
    who: ADMIN,
  },
  { method: "POST", path: "/admin/accounts/{account}/unsuspend", who: ADMIN },
  {
    method: "POST",
    path: "/admin/accounts/{account}/detach",
    state: "offered",
    body: { balance_id: "{balance}" },
    who: ADMIN,
  },
  {
    method: "POST",
    path: "/admin/accounts/{account}/detach",
    state: "claimed",
    body: { balance_id: "{balance}" },
    who: ADMIN,
  },
  {
    method: "POST",
    path: "/admin/accounts/{account}/detach",
    state: "kept",
    body: { balance_id: "{balance}" },
    who: ADMIN,
  },
  { method: "GET", path: "/admin/accounts?email=any@example.com", who: ADMIN },
  { method: "GET", path: "/admin/accounts/{account}", who: ADMIN },
  { method: "GET", path: "/admin/accounts/{account}/suspensions", who: ADMIN },
  { method: "GET", path: "/admin/ledger/audit", who: ADMIN },
  { method: "POST", path: "/admin/reload", who: ADMIN },
  { method: "GET", path: "/admin/balances", who: ADMIN },
  { method: "GET", path: "/admin/balances/{balance}", who: ADMIN },
  { method: "GET", path: "/admin/balances/{balance}/keys", who: ADMIN },
  { method: "GET", path: "/admin/balances/{balance}/receipts", who: ADMIN },
  { method: "GET", path: "/admin/balances/{balance}/credits", who: ADMIN },
  { method: "GET", path: "/admin/balances/{balance}/budgets", who: ADMIN },
  { method: "PATCH", path: "/admin/balances/{balance}/budgets/team", body: { cap_usd: 3 }, who: ADMIN },
  { method: "GET", path: "/admin/receipts/{others}", who: ADMIN },
  { method: "POST", path: "/admin/keys", body: { name: "theirs" }, ok: 201, who: ADMIN },
  { method: "GET", path: "/admin/keys/{another}", who: ADMIN },
  { method: "PATCH", path: "/admin/keys/{another}", body: { rpm_limit: 500 }, who: ADMIN },
  { method: "POST", path: "/admin/keys/{another}/revoke", who: ADMIN },
  { method: "GET", path: "/admin/usage", who: ADMIN },
  { method: "GET", path: "/admin/hosts", who: ADMIN },
  { method: "GET", path: "/admin/nodes", who: ADMIN },
  { method: "GET", path: "/admin/config", who: ADMIN },
  { method: "GET", path: "/metrics", who: ADMIN },
  ...[
    "/docs/errors",
    "/docs/api",
    "/openapi.json",
    "/status",
    "/dashboard",
    "/admin",
    "/favicon.ico",
    "/healthz",
    "/readyz",
    "/",
  ].map((path) => ({ method: "GET" as const, path, who: ALL })),
];

/** What a cell is answered with: a status, and for refusals the code. */
export function expected(
  { path, who, ok = 200, others = "400 invalid_request" }: Operation,
  by: Credential,
): string {
  if (who.includes(by)) return String(ok);
  if (by === "none") return "401 missing_api_key";
  const operators = path.startsWith("/admin/") || path === "/metrics";
  return operators || DEAD.includes(by) ? "401 invalid_api_key" : others;
}

const DEAD: readonly Credential[] = ["revokedKey", "oldRecovery", "admin"];

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
