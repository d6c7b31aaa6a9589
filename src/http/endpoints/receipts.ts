import { RECEIPTS, type ReceiptAnswer, type receiptQuery } from "../../api/receipts.ts";
import type { Key } from "../../customers/keys/key.ts";
import type { ReceiptFilter, StoredReceipt, StoredReceiptPage } from "../../store/ledger/receipts.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import type { KeyId, ReceiptId } from "../../units/id.ts";
import { type Identity, ownBalances } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { accepts, readTime, readUsd, repeated } from "../fields.ts";
import { operation } from "../operation.ts";
import { ok, replyAs } from "../reply.ts";

/** Receipts: a key reads its own, and by id or `key_id` those of the keys that it replaced; an owner all of the balance. */
export const receiptEndpoints = (): Endpoint[] => [
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
    return receiptsReply(
      await deps.receipts.receipts(who.balance.id, filter, limit, before as ReceiptId | null),
      receiptView,
    );
  }),
  operation("GET /v1/receipts/:id", RECEIPTS.show, async ({ who, params: { id }, exchange }, deps) => {
    const receipt = await visible(id, who, deps);
    if (receipt === null) return noReceipt(id, " that this credential can read", deps);
    return deps.config.settings.features.has("receipts.sign") && accepts(exchange.request, JOSE)
      ? replyAs(JOSE, await deps.receiptSigner.sign(receipt), exchange.receipt)
      : ok(receiptView(receipt));
  }),
  operation("GET /.well-known/jwks.json", RECEIPTS.keys, async (_, deps) =>
    ok(await deps.receiptSigner.jwks()),
  ),
];

/** What a query of receipts filters by. */
export function receiptFilter(query: ReceiptQuery): ReceiptFilter | Refusal {
  const { key_id, model, state, host, error, min_cost_usd, since: from, until: to } = query;
  const since = from === null ? null : readTime("since", from);
  if (refused(since)) return since;
  const until = to === null ? null : readTime("until", to);
  if (refused(until)) return until;
  const leastCost = min_cost_usd === null ? null : readUsd("min_cost_usd", min_cost_usd);
  if (refused(leastCost)) return leastCost;
  return { keyId: key_id as KeyId | null, model, state, host, error, leastCost, since, until };
}

type ReceiptQuery = {
  readonly [Name in keyof typeof receiptQuery]: (Name extends "min_cost_usd" ? number : string) | null;
};

const JOSE = "application/jose";

/** As `ledger/receipt` wrote it. */
export const receiptView = ({ body }: StoredReceipt): ReceiptAnswer => JSON.parse(body);

export const receiptsReply = <View>(
  { receipts, nextBefore }: StoredReceiptPage,
  view: (receipt: StoredReceipt) => View,
) =>
  ok({
    object: "list" as const,
    data: receipts.map(view),
    has_more: nextBefore !== null,
    next_before: nextBefore,
  });

export const noReceipt = (id: string, whose: string, deps: HttpDeps): Refusal =>
  invalidField("id", `There is no receipt \`${repeated(id)}\`${whose}.${kept(deps)}${FORGOTTEN}`);

/** See `src/generation/refused-receipts.ts`: a flood of refusals must not fill the disk. */
const FORGOTTEN = " Receipts of refused requests are lost when the gateway restarts.";

export const noSuchBefore = (whose: string, deps: HttpDeps): Refusal =>
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
