import type { ChangeId } from "../customers/changes/change.ts";
import { type ChangeOrigin, type ChangeStamp, withOrigin } from "../customers/changes/origin.ts";
import { newReceiptId } from "../units/id.ts";
import type { HttpExchange } from "./exchange.ts";

/** Runs an endpoint so that what it changes is logged as its caller's; what only reads runs as it is. */
export function loggingChanges<Answer>(
  { method, isBusy }: { readonly method: string; readonly isBusy?: boolean },
  exchange: HttpExchange,
  handle: () => Answer | Promise<Answer>,
): Answer | Promise<Answer> {
  if (method === "GET" || isBusy === true) return handle();
  const origin = new RequestOrigin(exchange);
  return withOrigin(origin, async () => handle()).finally(() => origin.end());
}

class RequestOrigin implements ChangeOrigin {
  private hasEnded = false;

  constructor(private readonly exchange: HttpExchange) {}

  stamp(): ChangeStamp | null {
    if (this.hasEnded) return null;
    const { clock, random } = this.exchange.deps.keyDeps;
    const at = clock.now();
    return {
      id: `chg_${newReceiptId(at, random).slice(RECEIPT_PREFIX)}` as ChangeId,
      at,
      by: this.exchange.author,
      network: this.exchange.blocks().at(-1)!,
      request: this.exchange.receipt,
    };
  }

  end(): void {
    this.hasEnded = true;
  }
}

const RECEIPT_PREFIX = "rcpt_".length;
