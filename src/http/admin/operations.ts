import { ADMIN, type CreditFields, type SuspensionAnswer, type UnsuspendFields } from "../../api/admin.ts";
import { BY_GATEWAY, type SuspensionRecord } from "../../customers/keys/key-store.ts";
import type { Credit } from "../../ledger/credit.ts";
import { PAYMENT_KEYS } from "../../payments/payment.ts";
import type { LedgerAudit } from "../../store/ledger/ledger-operations.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import { decimalUsd, MAX_NANO_USD, type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import type { HttpExchange } from "../exchange.ts";
import { readUsd } from "../fields.ts";
import { metricsResponse } from "../metrics-listener.ts";
import { operation } from "../operation.ts";
import { page } from "../reply.ts";
import { balanceNamed } from "./balances.ts";

/** The operator's operations: the admin token and nothing else opens them. Contract §4. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of endpoints.
export const adminEndpoints = () => [
  operation("POST /admin/credits", ADMIN.credit, async ({ fields }, deps) => {
    const amount = readUsd("amount_usd", fields.amount_usd);
    if (refused(amount)) return amount;
    if (amount === 0) return invalidField("amount_usd", "`amount_usd` must be more than 0.");
    const entry = await readEntry(fields, deps);
    if (refused(entry)) return entry;
    const { balanceId } = entry;
    const done = await deps.ledger.credit({ ...entry, amount }).catch(async (error: unknown) => {
      // One that nobody ever used may have been removed since it was looked up.
      const gone = await balanceNamed(balanceId, deps, "balance_id");
      if (refused(gone)) return gone;
      throw error;
    });
    if (refused(done)) return done;
    if (done === null) {
      return invalidField(
        "amount_usd",
        `A balance can be credited with at most ${usdFromNano(MAX_NANO_USD).toLocaleString("en-US")} USD in all, and this would take ${balanceId} above it. Nothing was credited. Credit another balance of the account.`,
      );
    }
    if (done.balanceId !== balanceId || done.amount !== amount) return usedKey(done, "credited");
    return { ...entryView(done), credited_at: isoTime(done.at) };
  }),
  // For what was credited by mistake, and for refunds.
  operation("POST /admin/debits", ADMIN.debit, async ({ fields }, deps) => {
    const amount = fields.amount_usd === "all" ? "all" : readUsd("amount_usd", fields.amount_usd);
    if (refused(amount)) return amount;
    if (amount === 0) return invalidField("amount_usd", '`amount_usd` must be more than 0, or "all".');
    const entry = await readEntry(fields, deps);
    if (refused(entry)) return entry;
    const { balanceId } = entry;
    const done = await deps.ledger.debit({ ...entry, amount });
    if ("available" in done) return tooMuch(amount, balanceId, done.available);
    const isSame = amount === "all" ? done.tookAll : !done.tookAll && done.amount === -amount;
    if (done.balanceId !== balanceId || !isSame) return usedKey(done, "taken back");
    return { ...entryView(done), debited_at: isoTime(done.at) };
  }),
  operation("POST /admin/accounts/:id/suspend", ADMIN.suspend, ({ params, fields, exchange }, deps) =>
    setSuspension(params.id, { reason: fields.reason, lifted: null }, named(fields, exchange), deps),
  ),
  operation("POST /admin/accounts/:id/unsuspend", ADMIN.unsuspend, ({ params, fields, exchange }, deps) => {
    const lifted = { reason: null, lifted: fields.reason ?? null };
    return setSuspension(params.id, lifted, named(fields, exchange), deps);
  }),
  // Everything that was ever decided about an account or a balance.
  operation(
    "GET /admin/accounts/:id/suspensions",
    ADMIN.suspensions,
    async ({ params, query }, { keyDeps }) => {
      const records = await keyDeps.store.suspensions(params.id, query.limit + 1);
      return page(records, query.limit, ({ at, reason, lifted, by, note }) => ({
        at: isoTime(at),
        reason,
        ...(lifted === null ? {} : { lifted }),
        by,
        note,
      }));
    },
  ),
  operation("GET /admin/ledger/audit", ADMIN.audit, async (_, { ledger }) => {
    const books = await ledger.audit();
    const invariant = books.creditsNano - books.chargesNano - books.heldNano - books.availableNano;
    const drift = books.drifts.reduce(
      (sum, { driftNano }) => sum + magnitude(driftNano),
      magnitude(invariant),
    );
    return { ok: drift === 0n, drift_nano: String(drift), ...booksView(books) };
  }),
  operation("POST /admin/reload", ADMIN.reload, async (_, deps) => {
    const { problem, needsRestart } = await deps.config.reload();
    return problem === null
      ? { reloaded: true as const, needs_restart: needsRestart }
      : refuse("invalid_request", `The configuration was refused and the old one stays in force: ${problem}`);
  }),
  operation("GET /metrics", ADMIN.metrics, (_, deps) => metricsResponse(deps)),
];

/** What a credit and a debit have in common. */
async function readEntry(
  fields: Omit<CreditFields, "amount_usd">,
  deps: HttpDeps,
): Promise<Pick<Credit, "balanceId" | "idempotencyKey" | "note" | "at"> | Refusal> {
  const { balance_id, key_id, idempotency_key: idempotencyKey, note = null } = fields;
  if (idempotencyKey.startsWith(PAYMENT_KEYS))
    return invalidField(
      "idempotency_key",
      `Keys that begin with \`${PAYMENT_KEYS}\` are those of payments. Send another \`idempotency_key\`.`,
    );
  const balanceId = await namedBalance(balance_id, key_id, deps);
  return refused(balanceId) ? balanceId : { balanceId, idempotencyKey, note, at: deps.clock.now() };
}

const entryView = ({ balanceId, amount, idempotencyKey, note }: Credit) => ({
  balance_id: balanceId,
  amount_usd: usdFromNano(Math.abs(amount) as NanoUsd),
  idempotency_key: idempotencyKey,
  note,
});

const tooMuch = (amount: NanoUsd | "all", balance: BalanceId, available: NanoUsd): Refusal =>
  invalidField(
    "amount_usd",
    `${amount === "all" ? "" : `${decimalUsd(amount)} USD cannot be taken back: `}${decimalUsd(available)} USD of ${balance} is available now, and the rest of its credit is spent or held. Nothing was taken back.`,
  );

const usedKey = ({ amount, balanceId }: Credit, now: "credited" | "taken back"): Refusal =>
  invalidField(
    "idempotency_key",
    `\`idempotency_key\` was already used, ${amount > 0 ? `for a credit of ${decimalUsd(amount)} USD to ${balanceId}` : `to take ${decimalUsd(-amount as NanoUsd)} USD back from ${balanceId}`}. Nothing was ${now} now.`,
  );

async function namedBalance(
  balance: string | undefined,
  key: string | undefined,
  { keyDeps }: Pick<HttpDeps, "keyDeps">,
): Promise<BalanceId | Refusal> {
  if ((balance === undefined) === (key === undefined)) {
    return invalidField("balance_id", "Name either `balance_id` or `key_id`.");
  }
  if (balance !== undefined) {
    const named = await balanceNamed(balance, { keyDeps }, "balance_id");
    return refused(named) ? named : named.id;
  }
  const found = await keyDeps.store.keyById(key as KeyId);
  return found?.balanceId ?? invalidField("key_id", `There is no key \`${key}\`.`);
}

async function setSuspension(
  subject: string,
  decided: Pick<SuspensionRecord, "reason" | "lifted">,
  { by, note }: UnsuspendFields & { readonly by: string },
  { keyDeps, clock }: HttpDeps,
): Promise<SuspensionAnswer | Refusal> {
  if (by === BY_GATEWAY)
    return invalidField("by", `\`${BY_GATEWAY}\` is what the gateway does by itself: send another \`by\`.`);
  const done = await keyDeps.store.suspend({
    subject,
    ...decided,
    at: clock.now(),
    by,
    note: note ?? null,
  });
  if (done === null) return noSubject();
  for (const balance of done.balances) keyDeps.keyring.forgetBalance(balance);
  return { id: subject, suspended: done.suspended, balance_ids: done.balances };
}

/** By the operator whose token it is, where nobody else is named. */
const named = (fields: UnsuspendFields, { operator }: HttpExchange) => ({ by: operator!.name, ...fields });

const noSubject = (): Refusal =>
  invalidField("id", "There is no account or balance with this id. GET /admin/balances lists both.");

/** Sums may exceed what a JSON number holds exactly, so nano-dollars are written as text. */
const booksView = (books: LedgerAudit) => ({
  credits_nano: String(books.creditsNano),
  charges_nano: String(books.chargesNano),
  held_nano: String(books.heldNano),
  available_nano: String(books.availableNano),
  held_at: books.heldAt,
  write_offs_nano: String(books.writeOffsNano),
  losses_nano: String(books.lossesNano),
  drifts: books.drifts.map(({ account, driftNano }) => ({ account, drift_nano: String(driftNano) })),
});

const magnitude = (amount: bigint): bigint => (amount < 0n ? -amount : amount);
