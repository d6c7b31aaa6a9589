import { ADMIN, DEFAULT_ROWS, MAX_ROWS } from "../../api/admin.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { StoredReceipt } from "../../store/receipts.ts";
import type { ReceiptId } from "../../units/id.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { noReceipt, noSuchBefore, readFilter } from "../endpoints/receipts.ts";
import { readCount } from "../fields.ts";
import { ok, type Reply } from "../reply.ts";
import { balanceNamed } from "./balances.ts";
import { guarded } from "./token.ts";

/** Receipts for the operator: the one that a user reports, and all of a balance, to write a bill from. */
export const adminReceiptEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/admin/receipts/:id", about: ADMIN.receipt, handle: guarded(show) },
  { method: "GET", path: "/admin/balances/:id/receipts", about: ADMIN.receipts, handle: guarded(list) },
];

async function show({ params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const id = params.id ?? "";
  const receipt = await deps.receipts.receipt(id as ReceiptId);
  return receipt === null ? noReceipt(id, "", deps) : ok(owned(receipt));
}

async function list({ request, params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const balance = await balanceNamed(params.id, deps);
  if (refused(balance)) return balance;
  const query = queryOf(request);
  const limit = readCount(query, "limit", DEFAULT_ROWS, MAX_ROWS);
  if (refused(limit)) return limit;
  const before = query.get("before") as ReceiptId | null;
  if (before !== null && (await deps.receipts.receipt(before))?.balanceId !== balance.id) {
    return noSuchBefore("of this balance", deps);
  }
  const filter = readFilter(query);
  if (refused(filter)) return filter;
  const { receipts, nextBefore } = await deps.receipts.receipts(balance.id, filter, limit, before);
  return ok({
    object: "list",
    data: receipts.map(owned),
    has_more: nextBefore !== null,
    next_before: nextBefore,
  });
}

const owned = ({ body, balanceId }: StoredReceipt) => ({ ...JSON.parse(body), balance_id: balanceId });
