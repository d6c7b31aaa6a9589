import { ADMIN } from "../../api/admin.ts";
import { RECEIPTS, type ReceiptAnswer } from "../../api/receipts.ts";
import type { Key } from "../../customers/keys/key.ts";
import type { ReceiptFilter, StoredReceipt } from "../../store/ledger/receipts.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../units/id.ts";
import { balanceNamed } from "../admin/balances.ts";
import { type Identity, ownBalances } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import { accepts, readSpan, readUsd, repeated } from "../fields.ts";
import { operation, type QueryOf } from "../operation.ts";
import { pageBefore, replyAs } from "../reply.ts";

/**
 * Receipts: a key reads its own, and by id or `key_id` those of the keys that it replaced; an owner reads all of the balance,
 * and the operator everybody's.
 */
export const receiptEndpoints = () => [
  operation("GET /v1/receipts", RECEIPTS.list, async ({ who, query }, deps) => {
    const { limit, before } = query;
    if (before !== null && (await visible(before, who, deps)) === null) {
      return noSuchBefore("that this credential can read", deps);
    }
    const named = query.key_id as KeyId | null;
    if (who.kind === "key" && named !== null && !(await isOfRotation(named, who.key, deps)))
      return invalidField(
        "key_id",
        "An API key lists its own receipts, and those of the keys that it replaced.",
      );
    const keyId = named ?? (who.kind === "key" ? who.key.id : null);
    const filter = receiptFilter({ ...query, key_id: keyId });
    if (refused(filter)) return filter;
    const found = await deps.receipts.receipts(who.balance.id, filter, limit, before as ReceiptId | null);
    return pageBefore(found.receipts.map(receiptView), found.nextBefore);
  }),
  operation("GET /v1/receipts/:id", RECEIPTS.show, async ({ who, params: { id }, exchange }, deps) => {
    const receipt = await visible(id, who, deps);
    if (receipt === null) return noReceipt(id, " that this credential can read", deps);
    return deps.config.settings.features.has("receipts.sign") && accepts(exchange.request, JOSE)
      ? replyAs(JOSE, await deps.receiptSigner.sign(receipt), exchange.receipt)
      : receiptView(receipt);
  }),
  operation("GET /.well-known/jwks.json", RECEIPTS.keys, (_, deps) => deps.receiptSigner.jwks()),
  operation("GET /admin/receipts/:id", ADMIN.receipt, async ({ params: { id } }, deps) => {
    const receipt = await deps.receipts.receipt(id as ReceiptId);
    return receipt === null ? noReceipt(id, "", deps) : owned(receipt);
  }),
  operation("GET /admin/balances/:id/receipts", ADMIN.receipts, async ({ params, query }, deps) => {
    const balance = await balanceNamed(params.id, deps);
    if (refused(balance)) return balance;
    return listed(balance.id, query, deps);
  }),
  operation("GET /admin/receipts", ADMIN.everybodysReceipts, ({ query }, deps) =>
    listed(query.balance_id as BalanceId | null, query, deps),
  ),
  operation("POST /admin/signing-keys", ADMIN.rotateSigningKey, async (_, { receiptSigner }) => {
    const key = await receiptSigner.rotate();
    return key === null
      ? refuse(
          "invalid_request",
          "There are as many signing keys as are kept; the newest one goes on signing.",
        )
      : { kid: key.kid };
  }),
];

/** What a query of receipts filters by. */
function receiptFilter(query: QueryOf<typeof RECEIPTS.list>): ReceiptFilter | Refusal {
  const { key_id, model, state, host, error, min_cost_usd } = query;
  const span = readSpan(query);
  if (refused(span)) return span;
  const leastCost = min_cost_usd === null ? null : readUsd("min_cost_usd", min_cost_usd);
  if (refused(leastCost)) return leastCost;
  return { keyId: key_id as KeyId | null, model, state, host, error, leastCost, ...span };
}

const JOSE = "application/jose";

/** As `ledger/receipt` wrote it. */
export const receiptView = ({ body }: StoredReceipt): ReceiptAnswer => JSON.parse(body);

export const noReceipt = (id: string, whose: string, deps: HttpDeps): Refusal =>
  invalidField("id", `There is no receipt \`${repeated(id)}\`${whose}.${kept(deps)}${FORGOTTEN}`);

/** See `src/generation/refused-receipts.ts`: a flood of refusals must not fill the disk. */
const FORGOTTEN = " Receipts of refused requests are lost when the gateway restarts.";

const noSuchBefore = (whose: string, deps: HttpDeps): Refusal =>
  invalidField("before", `\`before\` must be the id of a receipt ${whose}.${kept(deps)}`);

function kept(deps: HttpDeps): string {
  const { receiptDays } = deps.config.settings;
  return receiptDays === null ? "" : ` Receipts are kept for ${receiptDays} days.`;
}

export async function visible(id: string, who: Identity, deps: HttpDeps): Promise<StoredReceipt | null> {
  const receipt = await deps.receipts.receipt(id as ReceiptId);
  if (receipt === null) return null;
  if (who.kind === "owner") return ownBalances(who).includes(receipt.balanceId) ? receipt : null;
  return (await isOfRotation(receipt.keyId, who.key, deps)) ? receipt : null;
}

/** A customer who rotates a key still has to show what it paid for before. */
async function isOfRotation(keyId: KeyId, key: Key, { keyDeps }: HttpDeps): Promise<boolean> {
  return keyId === key.id || (await keyDeps.store.keyById(keyId))?.rotationId === key.rotationId;
}

async function listed(balance: BalanceId | null, query: QueryOf<typeof RECEIPTS.list>, deps: HttpDeps) {
  const before = query.before as ReceiptId | null;
  const from = before === null ? null : await deps.receipts.receipt(before);
  if (before !== null && (from === null || (balance !== null && from.balanceId !== balance))) {
    return noSuchBefore(balance === null ? "" : "of this balance", deps);
  }
  const filter = receiptFilter(query);
  if (refused(filter)) return filter;
  const { receipts, nextBefore } = await deps.receipts.receipts(balance, filter, query.limit, before);
  return pageBefore(receipts.map(owned), nextBefore);
}

const owned = (receipt: StoredReceipt) => ({ ...receiptView(receipt), balance_id: receipt.balanceId });
