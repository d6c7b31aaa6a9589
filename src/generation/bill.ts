import { costOf, NO_TOKENS, type Tokens, within } from "../ledger/charge.ts";
import {
  type AttemptRecord,
  type FinishedRequest,
  formatReceipt,
  type Receipt,
  type RequestTrace,
} from "../ledger/receipt.ts";
import type { Reservation, ReservationEnd, Settled, Settlement } from "../ledger/reservation.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { Billed } from "../surfaces/surface.ts";
import type { Refusal } from "../units/errors/refusal.ts";
import { type NanoUsd, usdFromNano, ZERO_USD } from "../units/usd.ts";
import type { GenerationDeps } from "./deps.ts";

/**
 * Ends a request that holds money: once, with one receipt. The caller waits until the end is durable, then
 * reports it with `tell` or `takeBack`, and only then answers the client.
 */
export class Bill {
  /** The hosts that were asked; set once they have been. */
  tries: readonly AttemptRecord[] = [];

  constructor(
    private readonly deps: Pick<GenerationDeps, "clock" | "expected" | "ledger" | "journal" | "reporting">,
    readonly reservation: Reservation,
    /** Monotonic time of the request's arrival. */
    readonly startedMs: number,
    private readonly trace: RequestTrace | null,
  ) {}

  settle(end: RequestEnd): EndedRequest {
    const { deps, reservation } = this;
    const ending: ReservationEnd = {
      state: end.state,
      cost: costOfEnd(end),
      within: (most) => costOfEnd(end, most),
      writeOff: end.writeOff ?? false,
      rateTokens: end.tokens.input + end.tokens.cacheRead + end.tokens.cacheWrite + end.tokens.output,
      // A host that was asked has worked, also where the client left before it heard anything.
      allowanceUsed:
        end.tokens.output > 0 ||
        end.state === "settled" ||
        (end.state === "cancelled" && end.candidate !== undefined),
    };
    const { key } = reservation.want;
    if (end.state === "settled" && end.candidate !== undefined)
      deps.expected.note(key.rotationId, end.candidate.model.id, end.tokens.output);
    let receipt: FinishedReceipt;
    const settlement = deps.ledger.settle(reservation, ending, (settled) => {
      receipt = this.receipt(end, settled);
      return formatReceipt(receipt);
    });
    return { settlement, durable: deps.journal.durable(settlement.sequence), receipt: receipt! };
  }

  /** Reports the end as the client sees it: as an error, if it could not be recorded. */
  tell({ receipt }: EndedRequest, isDurable: boolean): void {
    this.deps.reporting.finished(isDurable ? receipt : { ...receipt, errorCode: "internal_error" });
  }

  /**
   * For an answer that is not given because its end could not be recorded: then it must not cost anything
   * either.
   */
  takeBack(ended: EndedRequest): void {
    const { held } = ended.settlement;
    const receipt = this.receipt(FAULT, { charged: ZERO_USD, writtenOff: ZERO_USD, lost: ZERO_USD, held });
    const { deps, reservation } = this;
    if (deps.ledger.takeBack(reservation, ended.settlement, formatReceipt(receipt)))
      deps.reporting.finished(receipt);
    else this.tell(ended, false);
  }

  /** After a bug of ours: releases what is still held. */
  abandon(): void {
    if (this.reservation.isOpen) this.tell(this.settle(FAULT), true);
  }

  /** Milliseconds since the request arrived. */
  elapsedMs(): number {
    return this.deps.clock.elapsedMs() - this.startedMs;
  }

  private receipt(end: RequestEnd, settled: Settled): FinishedReceipt {
    const { tries, trace } = this;
    const { want } = this.reservation;
    // A receipt's cost is always its tokens at its price, also where the hold did not cover all of them.
    const limited = settled.lost > 0 && end.candidate !== undefined;
    const tokens = limited ? within(end.tokens, end.candidate.price, settled.held) : end.tokens;
    return {
      id: want.receipt,
      createdAt: want.at,
      state: end.state,
      surface: want.about.surface,
      keyId: want.key.id,
      run: want.about.run,
      modelRequested: want.about.model,
      model: end.candidate?.model.id ?? null,
      host: end.candidate?.route.host.id ?? null,
      attempts: tries,
      stream: want.about.stream,
      tokens,
      tokensFrom: end.from ?? "counted",
      price: end.candidate?.price ?? want.price,
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

/** How a request that held something ended. */
export interface RequestEnd {
  readonly state: Exclude<Receipt["state"], "refused" | "recovered">;
  readonly tokens: Tokens;
  readonly from?: Receipt["tokensFrom"];
  readonly writeOff?: boolean;
  /** Who served, at whose price the tokens cost; absent where nobody did. */
  readonly candidate?: Candidate;
  readonly firstTokenMs?: number;
  readonly errorCode?: Refusal["code"];
}

/** An end, on its way to the disk. */
export interface EndedRequest {
  readonly settlement: Settlement;
  readonly durable: true | Promise<boolean>;
  readonly receipt: FinishedReceipt;
}

/** What the client is told of it. */
export const billedBy = ({ settlement, receipt }: EndedRequest): Billed => ({
  tokens: receipt.tokens,
  costUsd: usdFromNano(settlement.charged),
});

/** Both what is stored and what is reported. */
type FinishedReceipt = Receipt & FinishedRequest;

const FAULT: RequestEnd = { state: "failed", tokens: NO_TOKENS, errorCode: "internal_error" };

/** What the tokens cost, or as many of them as cost no more than `most`. */
export function costOfEnd({ tokens, candidate }: RequestEnd, most?: NanoUsd): NanoUsd {
  if (candidate === undefined) return ZERO_USD;
  return costOf(most === undefined ? tokens : within(tokens, candidate.price, most), candidate.price);
}
