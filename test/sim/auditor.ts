import type { SurfaceName } from "../../src/catalog/catalog.ts";
import type { Budget, Key } from "../../src/customers/keys/key.ts";
import { CHECK_EVERY_MS } from "../../src/generation/expected-output.ts";
import type { Debit } from "../../src/ledger/credit.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { NANO_PER_USD } from "../../src/units/usd.ts";
import { FREE_REFUSALS } from "./catalogue.ts";
import { alwaysReports, type Served, THOUGHTS_PER_SECOND, WORD } from "./hosts.ts";
import type { Seen } from "./languages.ts";
import { type Counted, DEFAULT_CEILING, type Death } from "./limits.ts";
import { check } from "./world.ts";

/**
 * Keeps books of its own, from what clients saw and hosts did, and from nothing that the gateway says of
 * itself. Whatever it finds wrong is thrown, with the request it concerns.
 */
export class Auditor {
  readonly credits = new Map<BalanceId, number>();
  /** Some may have been taken back since. */
  private readonly mostCredits = new Map<BalanceId, number>();
  readonly asks: SimulatedRequest[] = [];
  /** By idempotency key, what may have been taken back without an answer. */
  readonly inDoubt = new Map<string, Debit>();
  /** How each life of the gateway ended. */
  readonly deaths: Death[] = [];
  private turns = 0;

  /** The number of whatever happens next. */
  turn(): number {
    this.turns += 1;
    return this.turns;
  }

  credit(balance: BalanceId, nano: number): void {
    const credit = (this.credits.get(balance) ?? 0) + nano;
    this.credits.set(balance, credit);
    this.mostCredits.set(balance, Math.max(credit, this.mostCredits.get(balance) ?? 0));
  }

  /** What a balance may have been credited with, less what was taken back. */
  judgeCredited(balance: BalanceId, credited: number): void {
    const most = this.credits.get(balance) ?? 0;
    let least = most;
    for (const { balanceId, amount } of this.inDoubt.values()) {
      if (balanceId === balance) least = typeof amount === "number" ? Math.max(0, least - amount) : 0;
    }
    check(credited >= least && credited <= most, `${balance} has ${credited}, of ${least} to ${most}`);
  }

  /** What a relaxed journal answered since then may be lost. */
  powerCut(sinceMs: number): void {
    for (const request of this.asks) if (request.answeredMs >= sinceMs) request.mayBeLost = true;
  }

  /** Judges every receipt that the store holds once nothing is open any more. */
  judge(
    receipts: readonly BookedReceipt[],
    hostsOf: (name: string) => readonly Served[],
    areCapsFixed: boolean,
    wasTight: (request: SimulatedRequest) => boolean,
  ): void {
    const booked = new Map(receipts.map((receipt) => [receipt.id, receipt]));
    check(booked.size === receipts.length, "a receipt is booked twice");
    for (const request of this.asks) {
      const receipt = request.receipt === null ? undefined : booked.get(request.receipt);
      const hosts = hostsOf(request.name);
      this.judgeOne(request, receipt, hosts, wasTight(request));
      // Where limits change, one may have been raised while the request waited.
      if (areCapsFixed && hosts.length > 0 && request.draws === null) this.judgeWorst(request);
    }
    if (areCapsFixed) this.judgeCaps(receipts);
    this.judgeBalances(receipts);
  }

  private judgeOne(
    request: SimulatedRequest,
    receipt: BookedReceipt | undefined,
    hosts: readonly Served[],
    wasTight: boolean,
  ): void {
    const about = `${request.name} (${request.outcome}): ${JSON.stringify({ request, receipt, hosts })}`;
    for (const { host } of hosts)
      check(request.prices.has(host), `${host} was asked, which is not on the plan: ${about}`);
    if (request.draws !== null)
      check(!receipt?.charged && !receipt?.held, `a free request was held or charged for: ${about}`);
    // If two were asked at the same time, the slower is left before its end.
    const server = serverOf(hosts);
    judgeRefusals(hosts, about);
    this.judgeSeen(request, hosts, about);
    if (request.mayBeLost && receipt === undefined) return;
    switch (request.outcome) {
      case "complete": {
        check(receipt !== undefined, `an acknowledged answer has no receipt: ${about}`);
        if (request.mayBeLost && receipt.state === "recovered") {
          check(
            receipt.charged <= this.most(request, hosts, receipt),
            `more was charged than was sent: ${about}`,
          );
          return;
        }
        check(receipt.state === "settled", `an acknowledged answer is not settled: ${about}`);
        check(receipt.host === server?.host, `another host is named than the one that served: ${about}`);
        const { kind, prompt } = server.script.usage;
        const { cost: reportedCost, outputTokens } = request.seen!;
        check(
          reportedCost !== null && Math.round(reportedCost * NANO_PER_USD) === receipt.charged,
          `reported a cost of ${reportedCost}: ${about}`,
        );
        const { words, thoughts } = server.script;
        check(receipt.charged <= receipt.held, `more was charged than was held: ${about}`);
        if (server.script.start === "declines" && FREE_REFUSALS.has(server.host)) {
          check(receipt.charged === 0, `a refusal was charged that costs its host nothing: ${about}`);
        } else if (kind === "honest") {
          const whole = cost(request.prices, receipt.host, prompt, words + thoughts);
          // What its limits did not cover at its end is not charged.
          const isShort = wasTight && receipt.charged < whole && receipt.charged === receipt.held;
          check(isShort || receipt.charged === whole, `a wrong charge: ${about}`);
          check(
            isShort || outputTokens === words + thoughts,
            `reported ${outputTokens} output tokens: ${about}`,
          );
        } else if (kind !== "beyond") {
          this.judgeCounted(request, receipt, words, about);
        }
        return;
      }
      case "refused":
        check(receipt === undefined || receipt.charged === 0, `an error was charged: ${about}`);
        return;
      case "broken": {
        check(receipt !== undefined, `a broken stream has no receipt: ${about}`);
        // Thoughts count where their host has reported them.
        const thoughts = Math.max(0, ...hosts.map((one) => (alwaysReports(one) ? one.script.thoughts : 0)));
        if (request.words + thoughts < SURELY_WRITTEN_OFF && request.error === "upstream_error") {
          check(receipt.charged === 0, `fewer than 50 tokens were charged: ${about}`);
        }
        check(
          receipt.charged <= this.most(request, hosts, receipt),
          `more was charged than was delivered: ${about}`,
        );
        return;
      }
      case "left":
      case "unknown":
        // A stream is only answered once its hold is on the disk, so whatever happens then, it ends in a
        // receipt.
        check(
          receipt !== undefined ||
            request.receipt === null ||
            (request.outcome === "left" && request.words === 0),
          `a stream that had started has no receipt: ${about}`,
        );
        check(
          receipt === undefined || receipt.charged <= this.most(request, hosts, receipt),
          `more was charged than was sent: ${about}`,
        );
        return;
      case "open":
        return check(false, `a request never ended: ${about}`);
    }
  }

  /** Clients receive what a host has sent, all of it or its beginning, and nothing else. */
  private judgeSeen({ seen, outcome }: SimulatedRequest, hosts: readonly Served[], about: string): void {
    if (seen === null) return;
    check(seen.illegal === undefined, `no legal stream: ${seen.illegal}: ${about}`);
    const words = seen.text.length / WORD.length;
    check(seen.text === WORD.repeat(words), `a client read what no host wrote: ${about}`);
    const most = Math.max(0, ...hosts.map(({ wordsSent }) => wordsSent));
    check(words <= most, `a client read ${words} words, of ${most}: ${about}`);
    if (outcome !== "complete") return;
    const server = serverOf(hosts);
    check(server !== undefined, `complete, although no host was: ${about}`);
    check(words === server.script.words, `a client read ${words} of ${server.script.words} words: ${about}`);
  }

  /** However little is held of it: no limit is smaller than all that the request could come to. */
  private judgeWorst({ name, key, budgets, prices, size }: SimulatedRequest): void {
    const cheapest = Math.min(...[...prices.values()].map(({ output }) => output));
    const worst = (size.maxTokens ?? DEFAULT_CEILING) * cheapest;
    const limits = [
      this.mostCredits.get(key.balanceId) ?? 0,
      key.dailyLimit,
      key.monthlyLimit,
      ...budgets.map(({ cap }) => cap),
    ];
    for (const limit of limits)
      check(
        limit === null || limit >= worst,
        `a limit of ${limit} covers no worst case of ${worst}: ${name}`,
      );
  }

  /**
   * What hosts may have billed beyond what was held, in a life of the gateway: nothing, but where they report more
   * than was asked for; and, of a stream that was stopped because nothing more could be held, what came after the
   * last look at it and what its host had thought unseen, faster than holds expect.
   */
  judgeLost(life: number, lost: number, hostsOf: (name: string) => readonly Served[]): void {
    let most = 0;
    for (const request of this.asks) {
      if (request.life !== life) continue;
      const hosts = hostsOf(request.name);
      if (hosts.some(({ script }) => script.usage.kind === "beyond")) return;
      const highestPrice = Math.max(0, ...[...request.prices.values()].map(({ output }) => output));
      const thoughts = Math.max(0, ...hosts.map(({ script }) => script.thoughts));
      if (isStopped(request) && request.words > 0) most += (LAST_CHECK_TOKENS + thoughts) * highestPrice;
    }
    check(lost <= most, `${lost} was lost in life ${life}, of at most ${most}`);
  }

  /** The gateway counted by itself: near the truth, for words that are one token each. */
  private judgeCounted(
    request: SimulatedRequest,
    receipt: BookedReceipt,
    words: number,
    about: string,
  ): void {
    const least = cost(request.prices, receipt.host, 0, Math.floor(words / COUNT_FACTOR));
    check(receipt.charged >= least, `counted far too few: ${about}`);
    check(
      receipt.charged <= cost(request.prices, receipt.host, PROMPT_BYTES, words * COUNT_FACTOR),
      `counted far too many: ${about}`,
    );
  }

  /** The host's own usage may be billed for an answer that its host ended, as far as the hold goes. */
  private most(request: SimulatedRequest, hosts: readonly Served[], { held, host }: BookedReceipt): number {
    if (hosts.some(({ endedMs, script }) => endedMs !== null && script.usage.kind === "beyond")) return held;
    // Nothing can be charged before the books say who sent it.
    if (host === null) return 0;
    const tokens = Math.max(
      0,
      ...hosts.map(({ wordsSent, script }) => wordsSent * COUNT_FACTOR + script.thoughts),
    );
    return cost(request.prices, host, PROMPT_BYTES, tokens);
  }

  /** No cap is crossed in any window, with what was charged counted on the day of admission. */
  private judgeCaps(receipts: readonly BookedReceipt[]): void {
    const spent = new Map<string, number>();
    const requests = new Map(this.asks.map((request) => [request.key.id as string, request]));
    for (const { keyId, at, charged } of receipts) {
      const { chain, key, budgets } = requests.get(keyId)!;
      const caps: [name: string, window: Budget["window"], cap: number | null][] = [
        [chain, "day", key.dailyLimit],
        [chain, "month", key.monthlyLimit],
        ...budgets.map(({ id, window, cap }): [string, Budget["window"], number] => [id, window, cap]),
      ];
      for (const [name, window, cap] of caps) {
        const counted = `${name} ${beginning(window, at)}`;
        const nano = (spent.get(counted) ?? 0) + charged;
        spent.set(counted, nano);
        check(cap === null || nano <= cap, `the cap of ${counted} is ${cap}, spent ${nano}`);
      }
    }
  }

  private judgeBalances(receipts: readonly BookedReceipt[]): void {
    const spent = new Map<string, number>();
    for (const { balanceId, charged } of receipts)
      spent.set(balanceId, (spent.get(balanceId) ?? 0) + charged);
    for (const [balance, nano] of spent) {
      check(
        nano <= (this.credits.get(balance as BalanceId) ?? 0),
        `${balance} spent ${nano}, more than its credit`,
      );
    }
  }
}

/** Who answered: the last that ended; if all of these declined, the first. */
function serverOf(hosts: readonly Served[]): Served | undefined {
  const ended = hosts.filter((one) => one.endedMs !== null && !wasEmpty(one, hosts));
  const declined = ended.toSorted((a, b) => a.endedMs! - b.endedMs!).at(0);
  return ended.findLast(({ script }) => script.start !== "declines") ?? declined;
}

/** Whether another host was asked because this one ended without a word. */
const wasEmpty = ({ script, endedMs }: Served, hosts: readonly Served[]): boolean =>
  script.start !== "declines" &&
  script.words + script.thoughts === 0 &&
  hosts.some(({ receivedMs }) => receivedMs >= endedMs!);

/** A refusal is that of all hosts of its model: none of them is asked after it. */
function judgeRefusals(hosts: readonly Served[], about: string): void {
  for (const { host, model, script, endedMs } of hosts) {
    if (script.start !== "declines" || endedMs === null) continue;
    const again = hosts.find((other) => other.receivedMs > endedMs && other.model === model);
    check(again === undefined, `${again?.host} was asked for ${model} after ${host} had declined: ${about}`);
  }
}

/** How the window that a moment lies in is called: by its first day, or its month. */
function beginning(window: Budget["window"], at: number): string {
  const date = new Date(at);
  if (window === "total") return "all time";
  if (window === "month") return date.toISOString().slice(0, 7);
  // Sunday is 0, and a week begins on Monday.
  if (window === "week") date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  return date.toISOString().slice(0, 10);
}

/** Whether nothing more could be held for its stream, whatever the reason. */
export const isStopped = ({ outcome, error }: SimulatedRequest): boolean =>
  outcome === "broken" && error !== null && STOPS.has(error);

const STOPS = new Set(["insufficient_credit", "budget_exhausted", "invalid_api_key", "account_suspended"]);

/** A request as its client knows it. */
export interface SimulatedRequest extends Counted {
  readonly name: string;
  readonly key: Key;
  readonly budgets: readonly Budget[];
  /** Nano-dollars a token, by the hosts that may be asked. */
  readonly prices: ReadonlyMap<string, { input: number; output: number }>;
  readonly surface: SurfaceName;
  /** What the client read of the answer; null: nothing. */
  seen: Seen | null;
  receipt: string | null;
  /** `unknown`: the gateway died. `broken`: the stream ended with an error. */
  outcome: "open" | "complete" | "refused" | "broken" | "left" | "unknown";
  error: string | null;
  /** Words that arrived. */
  words: number;
  /** When it last received something from the gateway: the start, or the end. Monotonic. */
  answeredMs: number;
  /** The power was cut soon after that, under a relaxed journal. */
  mayBeLost: boolean;
}

export interface BookedReceipt {
  readonly id: string;
  readonly at: number;
  readonly balanceId: string;
  readonly keyId: string;
  readonly state: string;
  readonly host: string | null;
  readonly charged: number;
  readonly held: number;
}

/** A count by the text may be off, but not by more than this. */
const COUNT_FACTOR = 3;
/** With that factor, a count of fewer than 50 is certain below this. */
const SURELY_WRITTEN_OFF = 16;
/** What a host does between two looks at its hold, and a word as the gateway counts it while it streams. */
const LAST_CHECK_TOKENS = (THOUGHTS_PER_SECOND * (CHECK_EVERY_MS + 250)) / 1_000 + 3;
/** No prompt of the simulation is longer. */
export const PROMPT_BYTES = 400;

function cost(
  prices: SimulatedRequest["prices"],
  host: string | null,
  prompt: number,
  output: number,
): number {
  const price = prices.get(host ?? "");
  check(price !== undefined, `served by a host that is not on the plan: ${host}`);
  return prompt * price.input + output * price.output;
}
