import type { Debits } from "../../ledger/debits.ts";
import type { Clock } from "../../units/clock.ts";
import type { Figure } from "../../units/figure.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import { type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import type { SqlCreditStore } from "./credits.ts";

/** Ends claims on what nodes were granted. Every node does; each claim is ended once. */
export class NodeClaims {
  /** Lost to claims that this node has ended, since start. */
  lost: NanoUsd = ZERO_USD;
  private readonly rounds: Rounds;
  /** Where the next round begins. */
  private after = "";

  constructor(
    private readonly ledger: Pick<SqlCreditStore, "claims" | "decideClaim">,
    private readonly clock: Clock,
    log: Log,
  ) {
    this.rounds = claimRounds(clock, log, () => this.round());
  }

  stop(): Promise<void> {
    return this.rounds.stop();
  }

  private async round(): Promise<void> {
    const claims = await this.ledger.claims(this.after, CLAIMS_A_ROUND);
    this.after = claims.length < CLAIMS_A_ROUND ? "" : claims.at(-1)!.idempotencyKey;
    for (const claim of claims) {
      if (this.rounds.stopped) return;
      const lost = await this.ledger.decideClaim(claim, this.clock.now());
      this.lost = (this.lost + (lost ?? 0)) as NanoUsd;
    }
  }
}

/** The same of one process that has all of the ledger. */
export const soleClaims = (debits: Debits, clock: Clock, log: Log): Rounds =>
  claimRounds(clock, log, () => debits.endClaims(clock.now()));

const claimRounds = (clock: Clock, log: Log, round: () => Promise<void>): Rounds =>
  new Rounds(clock, 0, async () => {
    // The next round tries again.
    await round().catch((error) => log("claims", { error: String(error) }));
    return ROUND_MS;
  });

export const lostToClaims = (lost: NanoUsd): Figure => ({
  name: "gateway_claims_lost_usd",
  help: "USD that were taken back while requests held them, and that these requests spent, since start.",
  value: lost / 1e9,
  type: "counter",
});

const ROUND_MS = 2_000;
const CLAIMS_A_ROUND = 64;
