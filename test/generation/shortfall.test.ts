import { describe, expect, test } from "bun:test";
import type { Price } from "../../src/catalog/price.ts";
import type { AdmissionRequest } from "../../src/generation/admission-request.ts";
import type { SizedRequest } from "../../src/generation/reservation-size.ts";
import { rateRefusal, shortfallRefusal } from "../../src/generation/shortfall.ts";
import type { RateShortfall, Shortfall } from "../../src/ledger/shortfall.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { keyOf } from "../fakes/key.ts";
import { catalogOf, model, route } from "../routing/world.ts";

const NOW = epochMs(Date.UTC(2026, 0, 1, 23, 59, 0));
const MIDNIGHT = epochMs(Date.UTC(2026, 0, 2));
const usd = (amount: number) => Math.round(amount * 1e9) as NanoUsd;
/** A dollar a token, so that sums can be read. */
const PRICE = { input: 0, cacheRead: 0, cacheWrite: 0, output: 1e15 } as Price;
const PAID = model("x/paid", [route("a")]);
const GIFT = model("x/gift", [route("g", { free: true })]);

interface Case {
  readonly surface?: string;
  readonly json?: object;
  readonly maxOutputTokens?: number;
  readonly choices?: number;
  readonly isSpent?: boolean;
  readonly sellsCredit?: boolean;
  readonly allowedModels?: readonly string[] | null;
  readonly isFree?: boolean;
}

function refusalOf(short: Exclude<Shortfall, { what: "key" | "books" }>, some: Case = {}) {
  const { surface = "chat.completions", json = {}, choices = 1, isSpent = false, sellsCredit = false } = some;
  const request = {
    key: { ...keyOf(), allowedModels: some.allowedModels ?? null, balanceId: "bal_1" },
    request: { surface, json, choices, promptEstimate: 100, maxOutputTokens: some.maxOutputTokens ?? null },
    plan: { candidates: [{ model: PAID }] },
    prompt: { isSpent },
    settings: { dashboardUrl: "https://d", contact: "ops@x", sellsCredit },
  } as unknown as AdmissionRequest;
  const sized = {
    prompt: { bound: 0, retentions: {}, hasAudio: false },
    price: PRICE,
    rates: PRICE,
  } as SizedRequest;
  const health = { verifiedFree: () => some.isFree ?? false };
  const { code, message, details } = shortfallRefusal(short, request, sized, NOW, {
    catalog: () => catalogOf([PAID, GIFT]),
    health,
  });
  return { code, message, details };
}

const state = (limit: number, spent: number, held: number, worst: number, amount = worst) => ({
  limit: usd(limit),
  spent: usd(spent),
  held: usd(held),
  worst: usd(worst),
  amount: usd(amount),
});

describe("a cap", () => {
  const day = (limit: number, spent: number, held: number, worst: number) =>
    ({ what: "daily_limit_usd", resetsAt: MIDNIGHT, ...state(limit, spent, held, worst) }) as const;

  test("that open requests alone are in the way of: wait five seconds, or shorten the answer", () => {
    const { code, message, details } = refusalOf(day(10, 2, 4, 8));
    expect([code, details]).toEqual(["budget_exhausted", { retryAfterS: 5 }]);
    expect(message).toContain("key's `daily_limit_usd` caps spending at $10");
    expect(message).toContain("give back what they do not use: retry in 5 s.");
    expect(message).toContain(
      "Set `max_tokens` to at most 4, or raise the cap in the dashboard: https://d.".replaceAll("`", ""),
    );
    expect(message).not.toContain("alone is above");
  });

  test("that is spent: at the end of its window, and clients do not repeat by themselves", () => {
    const { message, details } = refusalOf(day(10, 9, 0, 8));
    expect(details).toEqual({ retryAfterS: 60, shouldRetry: false });
    expect(message).not.toContain("retry in 5 s");
    expect(message).toContain("to at most 1, or raise");
  });

  test.each([
    [10, false],
    [10.01, true],
  ])("of $10, for a request of $%p: that it is above the cap by itself is said: %p", (worst, isAbove) => {
    const { message } = refusalOf(day(10, 5, 0, worst));
    expect(message.includes("This request alone is above the cap")).toBe(isAbove);
  });

  test.each([
    [9, "at most 1,"],
    [9.5, "Raise the cap"],
  ])("with $%p used of $10 advises: %s", (spent, advice) => {
    expect(refusalOf(day(10, spent, 0, 8)).message).toContain(advice);
  });

  test("without an end: only a higher cap makes room", () => {
    const total = { what: "budget", name: "team", resetsAt: null, ...state(10, 9, 0, 8) } as const;
    const { message, details } = refusalOf(total);
    expect(message).toContain("The budget `team` caps spending at $10");
    expect(details).toEqual({ retryAfterS: 60, shouldRetry: false });
  });

  test("of a run: no time helps, another run does", () => {
    const run = { what: "run", name: "nightly", resetsAt: null, ...state(10, 9, 0, 8) } as const;
    const { message, details } = refusalOf(run);
    expect(details).toEqual({ retryAfterS: null, shouldRetry: false });
    expect(message).toContain("or start a new run");
    expect(refusalOf({ ...run, ...state(10, 2, 4, 8) }).details).toEqual({ retryAfterS: 5 });
  });
});

describe("the calls of a run", () => {
  const calls = (limit: number) =>
    ({ what: "calls", run: "nightly", ...state(0, 0, 0, 0), limit, spent: 1, held: 0 }) as unknown as Extract<
      Shortfall,
      { what: "calls" }
    >;
  test("are counted in words, and no time brings them back", () => {
    expect(refusalOf(calls(1)).message).toStartWith("The run `nightly` may have 1 call: 1 used, 0 open.");
    expect(refusalOf(calls(2)).message).toStartWith("The run `nightly` may have 2 calls:");
    expect(refusalOf(calls(2)).details).toEqual({ retryAfterS: null, shouldRetry: false });
    expect(refusalOf({ ...calls(2), undecided: true }).details).toEqual({ retryAfterS: 2 });
  });
});

describe("a balance", () => {
  const balance = (available: number, limit: number, spent: number, held: number, worst: number) =>
    ({ what: "balance", available: usd(available), ...state(limit, spent, held, worst) }) as const;

  test("that open requests hold: wait or add credit, or shorten the answer", () => {
    const { code, message, details } = refusalOf(balance(4, 10, 2, 4, 8));
    expect(code).toBe("insufficient_credit");
    expect(message).toContain("The balance of $4.00, with $4.00 more held by open requests, cannot cover");
    expect(message).toContain(
      "Wait until open requests end, which give back what they do not use; or add credit, or set",
    );
    expect(details).toEqual({ balance: usd(4), lacking: usd(4) });
  });

  test("that is spent: add credit, as much as is lacking", () => {
    const { message, details } = refusalOf(balance(1, 10, 9, 0, 8));
    expect(message).toContain("The balance of $1.00 cannot cover");
    expect(message).toContain("Add credit, or set");
    expect(details.lacking).toBe(usd(7));
  });

  test.each([
    [0.5, 10, 9.5, 0, "Add credit: the balance does not even cover the prompt."],
    [0.5, 10, 2, 7.5, "or add credit."],
    [0.5, 10, 5, 4.5, "Add credit: the balance does not even cover the prompt."],
  ])(
    "of $%p that no answer fits, of %p with %p spent and %p held: %s",
    (available, limit, spent, held, advice) => {
      expect(refusalOf(balance(available, limit, spent, held, 8)).message).toContain(advice);
    },
  );

  test("may be more than this node knows: it is tried again", () => {
    expect(refusalOf({ ...balance(1, 10, 9, 0, 8), undecided: true }).details).toMatchObject({
      retryAfterS: 2,
    });
  });

  test.each<[string, Case, string, boolean]>([
    ["by the operator", {}, "Credit is added to balance `bal_1` by", true],
    ["where it is sold", { sellsCredit: true }, "is paid for at https://d", true],
    ["a free model, where one is verified", { isFree: true }, "`x/gift:free` needs no credit.", true],
    ["none that is not verified", {}, "needs no credit", false],
    ["none that its key may not use", { isFree: true, allowedModels: ["x/paid"] }, "needs no credit", false],
    [
      "one that its key may use free",
      { isFree: true, allowedModels: ["x/gift:free"] },
      "needs no credit",
      true,
    ],
    ["that the prompt was not counted", { isSpent: true }, "estimated at one token per byte", true],
    ["nothing of that where it was", {}, "estimated at one token per byte", false],
  ])("names who adds credit, and what needs none: %s", (_, some, text, isThere) => {
    expect(refusalOf(balance(1, 10, 9, 0, 8), some).message.includes(text)).toBe(isThere);
  });

  test.each<[string, Case, string]>([
    ["chat", {}, "set max_tokens to at most 6"],
    ["responses", { surface: "responses" }, "set max_output_tokens to at most 6"],
    ["several choices", { choices: 3 }, "to at most 2"],
    [
      "thoughts that fill it",
      { surface: "messages", json: { thinking: { budget_tokens: 6 } }, maxOutputTokens: 20 },
      " and leave thinking out",
    ],
    [
      "thoughts that fit",
      { surface: "messages", json: { thinking: { budget_tokens: 5 } }, maxOutputTokens: 20 },
      "to at most 6.",
    ],
    [
      "thoughts above the client's own ceiling",
      { surface: "messages", json: { thinking: { budget_tokens: 20 } }, maxOutputTokens: 20 },
      "to at most 6.",
    ],
  ])("an answer that fits, in the request's own words: %s", (_, some, text) => {
    expect(refusalOf(balance(6, 10, 4, 0, 8), some).message.replaceAll("`", "")).toContain(text);
  });
});

describe("a rate", () => {
  const rate = (
    what: RateShortfall["what"],
    limit: number,
    requested: number,
    retryAfterS: number | null,
  ): RateShortfall => ({ what, limit, requested, retryAfterS });

  test("that is reached: how long to wait", () => {
    const { code, message, details } = refusalOf(rate("rpm_limit", 60, 1, 7));
    expect([code, details]).toEqual(["rate_limited", { retryAfterS: 7 }]);
    expect(message).toContain("of 60 requests per minute is reached. Retry in 7 s. Raise the limit");
    expect(refusalOf(rate("tpm_limit", 60, 1, 7)).message).toContain("estimated input plus output tokens");
  });

  test.each([
    [101, 1, "Set max_tokens to at most 1, or raise the limit"],
    [100, 1, "Raise the limit"],
    [400, 3, "to at most 100, or"],
  ])("of %p tokens that %p answers do not fit at all: %s", (limit, choices, advice) => {
    const { message, details } = refusalOf(rate("tpm_limit", limit, 5_000, null), { choices });
    expect(details).toEqual({ retryAfterS: 60, shouldRetry: false });
    expect(message).toContain("so waiting will not help.");
    expect(message.replaceAll("`", "")).toContain(advice);
  });

  test("of the Open Tier is the operator's", () => {
    const { message, details } = refusalOf(rate("open_tier.rpm", 5, 1, 7));
    expect(message).toContain("Retry in 7 s. Only the gateway's operator can raise this limit");
    expect(details).toEqual({ retryAfterS: 7 });
    const never = refusalOf(rate("open_tier.rpm", 0, 1, null));
    expect(never.message).not.toContain("Retry in");
    expect(never.details).toEqual({ retryAfterS: 60, shouldRetry: false });
  });

  test("that time brings back names no shorter answer", () => {
    expect(rateRefusal(rate("tpm_limit", 60, 1, 7), "https://d", "shorten it").message).not.toContain(
      "horten",
    );
  });
});

describe("an allowance", () => {
  const allowance = (owner: string) => ({ what: "allowance", owner, limit: 50, resetsAt: MIDNIGHT }) as const;

  test.each([
    ["acct_1", "all keys of the account"],
    ["block_1", "all keys without an account that are used from this network"],
    ["bal_1", "all keys of the balance"],
  ])("of %s is shared by %s", (owner, sharers) => {
    const { code, message, details } = refusalOf(allowance(owner));
    expect(code).toBe("free_quota_exceeded");
    expect(message).toContain(`It resets at 00:00 UTC, in 60 s. It is shared by ${sharers},`);
    expect(details).toEqual({ retryAfterS: 60, shouldRetry: false });
  });

  test("that open requests hold may come back in a moment", () => {
    const { message, details } = refusalOf({ ...allowance("bal_1"), undecided: true });
    expect(message).toContain("retry in 2 s.");
    expect(details).toEqual({ retryAfterS: 2 });
  });
});
