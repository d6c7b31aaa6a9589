import type { ChangeId } from "../customers/changes/change.ts";
import { type ChangeStamp, withOrigin } from "../customers/changes/origin.ts";
import { newReceiptId } from "../units/id.ts";
import type { HttpExchange } from "./exchange.ts";

/** Runs an endpoint so that what it changes is logged as its caller's; what only reads runs as it is. */
export function loggingChanges<Answer>(
  { method, isBusy }: { readonly method: string; readonly isBusy?: boolean },
  exchange: HttpExchange,
  handle: () => Answer | Promise<Answer>,
): Answer | Promise<Answer> {
  if (method === "GET" || isBusy === true) return handle();
  let hasEnded = false;
  const stamp = (): ChangeStamp | null => {
    if (hasEnded) return null;
    const { clock, random } = exchange.deps;
    const at = clock.now();
    return {
      id: `chg_${newReceiptId(at, random).slice(RECEIPT_PREFIX)}` as ChangeId,
      at,
      by: exchange.author,
      network: exchange.blocks().at(-1)!,
      request: exchange.receipt,
    };
  };
  return withOrigin({ stamp }, async () => handle()).finally(() => {
    hasEnded = true;
  });
}

const RECEIPT_PREFIX = "rcpt_".length;
