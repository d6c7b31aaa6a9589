import { ADMIN } from "../../api/admin.ts";
import type { StoredReceipt } from "../../store/receipts.ts";
import { refuse, refused } from "../../units/errors/refusal.ts";
import type { KeyId, ReceiptId } from "../../units/id.ts";
import type { Endpoint } from "../endpoint.ts";
import { noReceipt, noSuchBefore, receiptsReply, receiptView } from "../endpoints/receipts.ts";
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
    const { limit, key_id, model, state } = query;
    const before = query.before as ReceiptId | null;
    if (before !== null && (await deps.receipts.receipt(before))?.balanceId !== balance.id) {
      return noSuchBefore("of this balance", deps);
    }
    const filter = { keyId: key_id as KeyId | null, model, state };
    return receiptsReply(await deps.receipts.receipts(balance.id, filter, limit, before), owned);
  }),
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

const owned = (receipt: StoredReceipt) => ({ ...receiptView(receipt), balance_id: receipt.balanceId });
