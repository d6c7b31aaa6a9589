import { type Clock, type EpochMs, pause } from "../../units/clock.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import {
  type LowCreditMark,
  type LowCreditStore,
  type MarkChange,
  nextMark,
  type WatchedBalance,
} from "../accounts/low-credit.ts";
import { lowCreditMail, type Mail } from "../accounts/mail.ts";
import type { MailOutcome } from "./mailer.ts";

/**
 * Looks at the balances of all accounts every few minutes, a page at a time with pauses between, and tells
 * the owners of those whose credit fell below what the operator named. A mark is made before the mail is
 * sent, so that of several processes one sends it; it is made final once the mail server has the mail, so
 * that a crash delays a mail and loses none.
 */
export class LowCreditWatch {
  private readonly rounds: Rounds;

  constructor(private readonly deps: LowCreditDeps) {
    this.rounds = new Rounds(deps.clock, FIRST_MS, () => this.look());
  }

  /** Resolves when nobody is being told any more. */
  stop(): Promise<void> {
    return this.rounds.stop();
  }

  private async look(): Promise<number> {
    try {
      await this.lookAtAll();
    } catch (error) {
      if (!this.rounds.stopped) this.deps.log("low credit", { problem: String(error) });
    }
    return EVERY_MS;
  }

  private async lookAtAll(): Promise<void> {
    const { store, clock, below } = this.deps;
    let last: WatchedBalance | null = null;
    while (!this.rounds.stopped) {
      const limit = below();
      if (limit === null) return;
      const balances: readonly WatchedBalance[] = await store.watched(last);
      if (balances.length === 0 || !(await this.lookAt(balances, limit))) return;
      last = balances.at(-1)!;
      await pause(clock, PAUSE_MS);
    }
  }

  /** False when mails cannot be sent now: the others are told in a later round. */
  private async lookAt(balances: readonly WatchedBalance[], below: NanoUsd): Promise<boolean> {
    const { store, clock } = this.deps;
    const changes = balances.flatMap((balance) => {
      const mark = nextMark(balance, below, clock.now());
      return mark === null ? [] : [{ balance, mark }];
    });
    await store.mark(changes.filter(({ mark }) => mark.state !== "due"));
    for (const { balance } of changes.filter(({ mark }) => mark.state === "due")) {
      if (this.rounds.stopped || !(await this.tell(balance, below))) return false;
    }
    return true;
  }

  private async tell(balance: WatchedBalance, below: NanoUsd): Promise<boolean> {
    const { store, clock, log, deliver, links } = this.deps;
    // Anew, because the mails before this one took their time.
    const due = nextMark(balance, below, clock.now())!;
    const [mine] = await store.mark<MarkChange>([{ balance, mark: due }]);
    if (mine === undefined) return true;
    const { id, accountId, email, left } = balance;
    if (balance.mark?.state !== "due") {
      log("low credit", {
        balance: id,
        account: accountId,
        left_usd: usdFromNano(left),
        below_usd: usdFromNano(below),
        has_email: email !== null,
      });
    }
    if (email !== null) {
      const mail = lowCreditMail({ to: email, balance: id, left, below, ...links() });
      if ((await deliver(mail)) === "failed") return false;
    }
    const told: LowCreditMark = { ...due, state: "low", until: 0 as EpochMs };
    await store.mark([{ balance: { ...balance, mark: due }, mark: told }]);
    return true;
  }
}

interface LowCreditDeps {
  readonly store: LowCreditStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Null: nobody is told. Asked anew for each page. */
  readonly below: () => NanoUsd | null;
  readonly deliver: (mail: Mail) => Promise<MailOutcome>;
  readonly links: () => { readonly dashboardUrl: string; readonly contact: string | null };
}

const FIRST_MS = 60_000;
const EVERY_MS = 300_000;
const PAUSE_MS = 50;
