import { ADMIN } from "../../api/admin.ts";
import type { StoredReceipt } from "../../store/ledger/receipts.ts";
import { refuse, refused } from "../../units/errors/refusal.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { noReceipt, noSuchBefore, receiptFilter, receiptsReply, receiptView } from "../endpoints/receipts.ts";
import { operation } from "../operation.ts";
import { created, ok } from "../reply.ts";
import { balanceNamed } from "./balances.ts";

/** Receipts for the operator: the one that a user reports, and all of a balance, to write a bill from. */
export const adminReceiptEndpoints = (): Endpoint[] => [
  operation("GET /admin/receipts/:id", ADMIN.receipt, async ({ params: { id } }, deps) => {
    const receipt = await deps.receipts.receipt(id as ReceiptId);
    return receipt === null ? noReceipt(id, "", deps) : ok(owned(receipt));
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
      : created({ kid: key.kid });
  }),
];

type ReceiptsQuery = Parameters<typeof receiptFilter>[0] & {
  readonly limit: number;
  readonly before: string | null;
};

async function listed(balance: BalanceId | null, query: ReceiptsQuery, deps: HttpDeps) {
  const before = query.before as ReceiptId | null;
  const from = before === null ? null : await deps.receipts.receipt(before);
  if (before !== null && (from === null || (balance !== null && from.balanceId !== balance))) {
    return noSuchBefore(balance === null ? "" : "of this balance", deps);
  }
  const filter = receiptFilter(query);
  if (refused(filter)) return filter;
  return receiptsReply(await deps.receipts.receipts(balance, filter, query.limit, before), owned);
}

const owned = (receipt: StoredReceipt) => ({ ...receiptView(receipt), balance_id: receipt.balanceId });
