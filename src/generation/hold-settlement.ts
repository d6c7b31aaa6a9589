import type { Rates } from "../catalog/price.ts";
import { NO_TOKENS, promptOf, type Tokens } from "../catalog/tokens.ts";
import { costOf, ratesFor, within } from "../ledger/charge.ts";
import {
  type AttemptRecord,
  type FinishedRequest,
  formatReceipt,
  type Receipt,
  type ReceiptCharge,
  type RequestTrace,
} from "../ledger/receipt.ts";
import type { Reservation, ReservationEnd, Settled, Settlement } from "../ledger/reservation.ts";
import type { Candidate } from "../routing/candidate.ts";
import { iterationsOf } from "../surfaces/messages/iterations.ts";
import type { Billed } from "../surfaces/surface.ts";
import type { Refusal } from "../units/errors/refusal.ts";
import { type NanoUsd, usdFromNano, ZERO_USD } from "../units/usd.ts";
import type { GenerationDeps } from "./deps.ts";
import { type Charge, tokensOf } from "./native-fallback-bill.ts";

/**
 * Settles the hold of a request, once, with one receipt: the charge is spent, and the rest released. `serving` calls it for
 * whole answers, for errors and when the client leaves before the first token; `stream/delivery` when a stream ends, also
 * because its client leaves. They wait until the end is durable, then report it with `report` or `takeBack`, and only then
 * answer the client.
 */
export class HoldSettlement {
  /** The hosts that were asked; set once they have been. */
  tries: readonly AttemptRecord[] = [];

  constructor(
    private readonly deps: Pick<
      GenerationDeps,
      "clock" | "expected" | "ledger" | "journal" | "reporting" | "hostCosts"
    >,
    readonly reservation: Reservation,
    /** Monotonic time of the request's arrival. */
    readonly startedMs: number,
    private readonly trace: RequestTrace | null,
    private readonly priceVersion: string,
  ) {}

  /** `hostCost` is what its host charges the operator, where that is known. */
  settle(end: RequestEnd, hostCost?: NanoUsd): EndedRequest {
    const { deps, reservation } = this;
    const ending: ReservationEnd = {
      state: end.state,
      cost: costOfEnd(end),
      within: (most) => costOfEnd(end, most),
      rateTokens: promptOf(end.tokens) + end.tokens.output,
      // A host that got the request has worked, also where the client left before its answer.
      allowanceUsed:
        end.tokens.output > 0 ||
        end.state === "settled" ||
        (end.state === "cancelled" && end.candidate !== undefined),
      hostCost,
    };
    const { key } = reservation.request;
    if (end.state === "settled" && end.candidate !== undefined)
      deps.expected.note(key.rotationId, end.candidate.model.id, end.tokens.output);
    let receipt: FinishedReceipt;
    const settlement = deps.ledger.settle(reservation, ending, (settled) => {
      receipt = this.receipt(end, settled);
      return formatReceipt(receipt);
    });
    if (hostCost !== undefined && end.candidate !== undefined)
      deps.hostCosts.settled(end.candidate, settlement.charged, hostCost);
    const durable = deps.journal.durable(settlement.sequence);
    return { settled: settlement, durable, receipt: receipt! };
  }

  /** Reports the end as the client sees it: as an error, if it could not be recorded. */
  report({ receipt }: EndedRequest, isDurable: boolean): void {
    this.deps.reporting.finished(isDurable ? receipt : { ...receipt, errorCode: "internal_error" });
  }

  /**
   * For an answer that is not given because its end could not be recorded: then it must not cost anything
   * either.
   */
  takeBack(ended: EndedRequest): void {
    const { held } = ended.settled;
    const receipt = this.receipt(FAULT, { charged: ZERO_USD, writtenOff: ZERO_USD, lost: ZERO_USD, held });
    const { deps, reservation } = this;
    if (deps.ledger.takeBack(reservation, ended.settled, formatReceipt(receipt)))
      deps.reporting.finished(receipt);
    else this.report(ended, false);
  }

  /** After a bug of ours: releases what is still held. */
  abandon(): void {
    if (this.reservation.isOpen) this.report(this.settle(FAULT), true);
  }

  /** Milliseconds since the request arrived. */
  elapsedMs(): number {
    return this.deps.clock.elapsedMs() - this.startedMs;
  }

  private receipt(end: RequestEnd, settled: Settled): FinishedReceipt {
    const { tries, trace, priceVersion } = this;
    const { request } = this.reservation;
    // A receipt's cost is always its tokens at its price, also where the hold did not cover all of them.
    const all = pricedCharges(end);
    const charges = settled.lost > 0 ? chargesWithin(all, settled.held) : all;
    const tokens = end.candidate === undefined ? end.tokens : tokensOf(charges);
    // Where there are several models, that of the one which ended the answer.
    const own = charges.find(({ candidate }) => candidate === end.candidate);
    const price = own?.rates ?? ratesFor(end.candidate?.price ?? request.price, end.tokens);
    return {
      id: request.receipt,
      createdAt: request.at,
      state: end.state,
      surface: request.about.surface,
      keyId: request.key.id,
      run: request.about.run,
      modelRequested: request.about.model,
      model: end.candidate?.model.id ?? null,
      host: end.candidate?.route.host.id ?? null,
      attempts: tries,
      stream: request.about.stream,
      tokens,
      tokensFrom: end.from ?? "counted",
      price,
      priceVersion,
      tags: request.about.tags,
      priceList: request.about.priceList,
      charges: charges.some((one) => one !== own) ? charges.map(shownCharge) : undefined,
      cost: settled.charged,
      held: settled.held,
      writeOff: settled.writtenOff,
      firstTokenMs: end.firstTokenMs ?? null,
      totalMs: this.elapsedMs(),
      errorCode: end.errorCode ?? null,
      trace,
    };
  }
}

export interface RequestEnd {
  readonly state: Exclude<Receipt["state"], "refused" | "recovered">;
  readonly tokens: Tokens;
  readonly from?: Receipt["tokensFrom"];
  /** Who served, at whose price the tokens cost; absent where nobody did. */
  readonly candidate?: Candidate;
  /** What several models are charged for, each at its own price; absent or empty: all tokens are the candidate's. */
  readonly charges?: readonly Charge[];
  readonly firstTokenMs?: number;
  readonly errorCode?: Refusal["code"];
}

/** An end, on its way to the disk. */
export interface EndedRequest {
  readonly settled: Settlement;
  readonly durable: true | Promise<boolean>;
  readonly receipt: FinishedReceipt;
}

/** What the client gets of it. `hostReports`: its host went on by itself where models declined, and lists them. */
export function billedBy({ settled, receipt }: EndedRequest, hostReports: boolean): Billed {
  const { tokens, surface, model, attempts } = receipt;
  const costUsd = usdFromNano(settled.charged);
  const declined = attempts.filter(({ outcome }) => outcome === "declined");
  if (declined.length === 0 || surface !== "messages" || hostReports) return { tokens, costUsd };
  const isServed = declined.every((one) => one.model !== model);
  const served = isServed && model !== null ? { model, usage: tokens } : null;
  const tried = declined.map(({ model: declining, tokens: usage = null }) => ({ model: declining, usage }));
  return { tokens, costUsd, more: { iterations: iterationsOf(tried, served) } };
}

export const declinedModels = (tries: readonly AttemptRecord[]): readonly string[] =>
  tries.filter(({ outcome }) => outcome === "declined").map(({ model }) => model);

/** Both what is stored and what is reported. */
type FinishedReceipt = Receipt & FinishedRequest;

const FAULT: RequestEnd = { state: "failed", tokens: NO_TOKENS, errorCode: "internal_error" };

/** What the tokens cost, or as many of them as cost no more than `most`. */
export function costOfEnd(end: RequestEnd, most?: NanoUsd): NanoUsd {
  const charges = pricedCharges(end);
  return costOfAll(most === undefined ? charges : chargesWithin(charges, most));
}

/** At the rates of all of its tokens, also where fewer are charged. */
interface PricedCharge extends Charge {
  readonly rates: Rates;
}

function pricedCharges({ tokens, candidate, charges = [] }: RequestEnd): readonly PricedCharge[] {
  if (candidate === undefined) return [];
  const all = charges.length === 0 ? [{ candidate, tokens }] : charges;
  return all.map((charge) => ({ ...charge, rates: ratesFor(charge.candidate.price, charge.tokens) }));
}

const costOfAll = (charges: readonly PricedCharge[]): NanoUsd =>
  charges.reduce((sum, { tokens, rates }) => sum + costOf(tokens, rates), 0) as NanoUsd;

/** Less of what the last model wrote first, because that was made last. */
function chargesWithin(charges: readonly PricedCharge[], most: NanoUsd): readonly PricedCharge[] {
  const kept = [...charges];
  for (let at = kept.length - 1; at >= 0; at--) {
    const all = costOfAll(kept);
    if (all <= most) break;
    const { tokens, rates } = kept[at]!;
    const left = Math.max(0, most - (all - costOf(tokens, rates))) as NanoUsd;
    kept[at] = { ...kept[at]!, tokens: within(tokens, rates, left) };
  }
  return kept;
}

const shownCharge = ({ candidate, tokens, rates }: PricedCharge): ReceiptCharge => ({
  model: candidate.model.id,
  tokens,
  price: rates,
  cost: costOf(tokens, rates),
});
