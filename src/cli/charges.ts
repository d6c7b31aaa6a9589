import type { OwnedReceiptAnswer } from "../api/receipts.ts";
import { type ByRetention, type Rates, RETENTIONS } from "../catalog/price.ts";
import type { Tokens } from "../catalog/tokens.ts";
import { costOf } from "../ledger/charge.ts";
import { NANO_PER_USD, type NanoPerMillion, type NanoUsd, pricePerMillion, ZERO_USD } from "../units/usd.ts";
import type { Client } from "./client.ts";
import type { Progress } from "./progress.ts";

/** What was charged for each receipt that is kept, derived again from its tokens and its rates. */
export interface RecomputedCharges {
  readonly receipts: number;
  readonly differing: readonly DifferingCharge[];
}

interface DifferingCharge {
  readonly receipt: string;
  readonly charged_nano: string;
  readonly recomputed_nano: string;
}

export async function recomputeCharges(client: Client, progress: Progress): Promise<RecomputedCharges> {
  let receipts = 0;
  const differing: DifferingCharge[] = [];
  for await (const page of client.pages<OwnedReceiptAnswer>("/admin/receipts")) {
    for (const receipt of page) {
      const charged = Math.round((receipt.cost_usd + receipt.write_off_usd) * NANO_PER_USD);
      const recomputed = chargeOf(receipt);
      if (charged !== recomputed)
        differing.push({
          receipt: receipt.id,
          charged_nano: String(charged),
          recomputed_nano: String(recomputed),
        });
    }
    receipts += page.length;
    progress(receipts, null, "receipts");
  }
  return { receipts, differing };
}

/** By the receipt alone: its tokens at its rates, or those of each model where its host went on with another. */
export function chargeOf({ tokens, price, charges }: ChargedReceipt): NanoUsd {
  if (charges !== undefined)
    return charges.reduce((sum, one) => sum + costAt(one.tokens, one.price), 0) as NanoUsd;
  return price === null ? ZERO_USD : costAt(tokens, price);
}

type ChargedReceipt = Pick<OwnedReceiptAnswer, "tokens" | "price" | "charges">;
type ModelCharge = NonNullable<OwnedReceiptAnswer["charges"]>[number];

const costAt = (tokens: ModelCharge["tokens"], price: ModelCharge["price"]): NanoUsd =>
  costOf(tokensOf(tokens), ratesOf(price));

const tokensOf = (tokens: ModelCharge["tokens"]): Tokens => ({
  input: tokens.input,
  cacheRead: tokens.cache_read,
  cacheWrite: tokens.cache_write,
  output: tokens.output,
  reasoning: tokens.reasoning,
  ...(tokens.audio_input === undefined ? {} : { audioInput: tokens.audio_input }),
  ...(tokens.audio_output === undefined ? {} : { audioOutput: tokens.audio_output }),
  cacheWrites: byRetention((name) => tokens[name]),
});

function ratesOf(price: ModelCharge["price"]): Rates {
  const { audio_input, audio_output } = price;
  const writes = byRetention((name) => perMillion(price[name]));
  return {
    input: perMillion(price.input)!,
    output: perMillion(price.output)!,
    cacheRead: perMillion(price.cache_read)!,
    cacheWrite: perMillion(price.cache_write)!,
    ...(Object.keys(writes).length === 0 ? {} : { cacheWrites: writes }),
    ...(audio_input === undefined ? {} : { audioInput: perMillion(audio_input)! }),
    ...(audio_output === undefined ? {} : { audioOutput: perMillion(audio_output)! }),
  };
}

const byRetention = <Value>(
  read: (name: `cache_write_${(typeof RETENTIONS)[number]}`) => Value | undefined,
): ByRetention<Value> =>
  Object.fromEntries(
    RETENTIONS.flatMap((retention) => {
      const value = read(`cache_write_${retention}`);
      return value === undefined ? [] : [[retention, value]];
    }),
  );

const perMillion = (usd: number | undefined): NanoPerMillion | undefined =>
  usd === undefined ? undefined : (pricePerMillion(usd) ?? undefined);
