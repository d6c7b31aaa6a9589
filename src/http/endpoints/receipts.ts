import { DEFAULT_RECEIPTS, LISTED_STATES, MAX_RECEIPTS, RECEIPTS } from "../../api/receipts.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { ReceiptFilter, StoredReceipt } from "../../store/receipts.ts";
import type { KeyId, ReceiptId } from "../../units/id.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { invalidField, readCount, repeated } from "../fields.ts";
import { type Identity, identify, ownBalances } from "../identity.ts";
import { ok, type Reply } from "../reply.ts";

/** Receipts: a key reads its own, an owner all of the balance. Contract §4, §5. */
export const receiptEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/v1/receipts", anyOrigin: true, about: RECEIPTS.list, handle: list },
  { method: "GET", path: "/v1/receipts/:id", anyOrigin: true, about: RECEIPTS.show, handle: show },
];

async function list(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  const query = queryOf(exchange.request);
  const limit = readCount(query, "limit", DEFAULT_RECEIPTS, MAX_RECEIPTS);
  if (refused(limit)) return limit;
  const before = query.get("before");
  if (before !== null && (await visible(before, who, deps)) === null) {
    return noSuchBefore("that this credential can read", deps);
  }
  const asked = readFilter(query);
  if (refused(asked)) return asked;
  const filter = who.kind === "key" ? { ...asked, keyId: who.key.id } : asked;
  const { receipts, nextBefore } = await deps.receipts.receipts(
    who.balance.id,
    filter,
    limit,
    before as ReceiptId | null,
  );
  return ok({
    object: "list",
    data: receipts.map(({ body }) => JSON.parse(body)),
    has_more: nextBefore !== null,
    next_before: nextBefore,
  });
}

async function show(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  const id = exchange.params.id ?? "";
  const receipt = await visible(id, who, deps);
  return receipt === null
    ? noReceipt(id, " that this credential can read", deps)
    : ok(JSON.parse(receipt.body));
}

/** What a list's query asks for beside its page. */
export function readFilter(query: URLSearchParams): ReceiptFilter | Refusal {
  const state = query.get("state");
  if (state !== null && !LISTED_STATES.some((known) => known === state)) {
    return invalidField("state", `\`state\` must be one of ${LISTED_STATES.join(", ")}.`);
  }
  return { keyId: query.get("key_id") as KeyId | null, model: query.get("model"), state };
}

export const noReceipt = (id: string, whose: string, deps: HttpDeps): Refusal =>
  invalidField("id", `There is no receipt \`${repeated(id)}\`${whose}.${kept(deps)}${FORGOTTEN}`);

/** See `src/generation/refused-receipts.ts`: a flood of refusals must not fill the disk. */
const FORGOTTEN = " Those of refused requests are forgotten when the gateway restarts.";

export const noSuchBefore = (whose: string, deps: HttpDeps): Refusal =>
  invalidField("before", `\`before\` must be the id of a receipt ${whose}.${kept(deps)}`);

function kept(deps: HttpDeps): string {
  const { receiptDays } = deps.settings();
  return receiptDays === null ? "" : ` Receipts are kept for ${receiptDays} days.`;
}

async function visible(id: string, who: Identity, deps: HttpDeps): Promise<StoredReceipt | null> {
  const receipt = await deps.receipts.receipt(id as ReceiptId);
  if (receipt === null) return null;
  const theirs =
    who.kind === "key" ? receipt.keyId === who.key.id : ownBalances(who).includes(receipt.balanceId);
  return theirs ? receipt : null;
}
