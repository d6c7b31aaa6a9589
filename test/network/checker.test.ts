import { describe, expect, test } from "bun:test";
import { judge } from "./checker.ts";
import type { Audit, Credit, History, LimitSet, Outcome, Receipt, Request, Revoke } from "./history.ts";

/**
 * A history in which everything is as it was promised: two answers, a refusal, and a request that nobody
 * answered.
 */
const GOOD: History = {
  worstCaseNano: 100,
  keys: new Map([
    ["one", { balance: "purse", limits: ["day"] }],
    ["two", { balance: "purse", limits: [] }],
  ]),
  requests: [
    request({ receipt: "r1", sentMs: 10, endedMs: 20, costNano: 60 }),
    request({ receipt: "r2", key: "two", sentMs: 15, endedMs: 30, costNano: 80 }),
    request({
      receipt: "r3",
      sentMs: 40,
      endedMs: 41,
      status: 402,
      code: "insufficient_credit",
      costNano: null,
    }),
    request({ receipt: null, sentMs: 42, endedMs: 50, status: null, costNano: null }),
    request({
      receipt: null,
      key: "two",
      sentMs: 90,
      endedMs: 91,
      status: 401,
      code: "invalid_api_key",
      costNano: null,
    }),
  ],
  revokes: [revoke({ key: "two", sentMs: 60, answeredMs: 70 })],
  credits: [
    credit({ sentMs: 1, answeredMs: null }),
    credit({ sentMs: 3, answeredMs: 5 }),
    credit({ idempotencyKey: "more", nano: 50, sentMs: 35, answeredMs: 36 }),
  ],
  limits: [limit({ nano: 60, sentMs: 0, answeredMs: 1 }), limit({ nano: 150, sentMs: 40, answeredMs: 45 })],
  calmMs: 80,
  unexpectedEnds: [],
  end: {
    receipts: [
      receipt({ id: "r1", costNano: 60 }),
      receipt({ id: "r2", key: "two", costNano: 80 }),
      // For the request that nobody answered.
      receipt({ id: "r4", state: "recovered", costNano: 20 }),
    ],
    audits: [audit({}), audit({ gateway: "g2" })],
    balances: [{ balance: "purse", leftNano: 40 }],
    limits: [{ limit: "day", usedNano: 80 }],
  },
};

describe("the history checker", () => {
  test("finds nothing in a history in which everything is as it was promised", () => {
    expect(judge(GOOD)).toEqual([]);
  });

  test("finds nothing in credit that was spent before it is said to be taken back", () => {
    expect(judge(takingBack(40))).toEqual([]);
  });

  const bad: [string, History, RegExp][] = [
    [
      "credit that was spent after it had been taken back",
      takingBack(22),
      /^purse allows 130, and 60 was used before/,
    ],
    [
      "an answer without a receipt",
      ending({ receipts: GOOD.end.receipts.slice(1) }),
      /an answered request has 0 receipts/,
    ],
    [
      "an answer with two receipts",
      ending({ receipts: [...GOOD.end.receipts, receipt({ id: "r1", costNano: 60 })] }),
      /an answered request has 2 receipts/,
    ],
    [
      "two answers with one receipt",
      asking({ receipt: "r1", costNano: 60 }),
      /2 answers share the receipt r1/,
    ],
    ["an answer that names no receipt", asking({ receipt: null, costNano: 1 }), /has 0 receipts/],
    ["another cost than the answer reported", replacing("r1", { costNano: 61 }), /was charged 61/],
    [
      "an answer that is not settled",
      replacing("r1", { state: "recovered" }),
      /an answered request is recovered/,
    ],
    ["a charge to another key", replacing("r1", { key: "two" }), /was charged to two/],
    [
      "a charge that nobody asked for",
      ending({ receipts: [...GOOD.end.receipts, receipt({ id: "r5", costNano: 1 })] }),
      /one was charged 2 times for 1 requests/,
    ],
    ["a charge beyond what was held", replacing("r4", { costNano: 101 }), /more was charged than was held/],
    [
      "a refusal that was charged",
      ending({ receipts: [...GOOD.end.receipts, receipt({ id: "r3", costNano: 1 })] }),
      /a refusal was charged/,
    ],
    [
      "more accepted than the credit of that moment",
      asking({ receipt: "r5", key: "two", sentMs: 31, endedMs: 32, costNano: 20 }),
      /purse allows 150, and 140 was used before/,
    ],
    [
      "more accepted than the limit of that moment",
      asking({ receipt: "r5", sentMs: 31, endedMs: 32, costNano: 5 }),
      /day allows 60, and 60 was used before/,
    ],
    [
      "a limit that was lowered and not kept",
      {
        ...asking({ receipt: "r5", sentMs: 72, endedMs: 73, costNano: 5 }),
        limits: [...GOOD.limits, limit({ nano: 50, sentMs: 60, answeredMs: 71 })],
      },
      /day allows 50, and 60 was used before/,
    ],
    [
      "receipts beyond all credit, though each answer fitted",
      ending({ receipts: [...GOOD.end.receipts, receipt({ id: "r6", key: "two", costNano: 100 })] }),
      /purse allows 200, and its receipts come to 260/,
    ],
    [
      "an answer after the revoke was answered",
      asking({ receipt: "r5", key: "two", sentMs: 71, endedMs: 72, costNano: 5 }),
      /accepted after the revoke was answered at 70/,
    ],
    [
      "a stream that began after the revoke was answered, and broke",
      asking({ receipt: null, key: "two", sentMs: 71, endedMs: 72 }),
      /accepted after the revoke was answered at 70/,
    ],
    [
      "a 401 for a key that nobody revoked",
      asking({ receipt: null, status: 401, code: "invalid_api_key" }),
      /a key that nobody revoked is not known/,
    ],
    [
      "a 401 before anybody asked to revoke",
      asking({ receipt: null, key: "two", sentMs: 50, endedMs: 51, status: 401, code: "invalid_api_key" }),
      /a key that nobody revoked is not known/,
    ],
    [
      "a refusal that no storm explains",
      asking({ receipt: null, status: 404, code: "unknown_model" }),
      /no such refusal is expected/,
    ],
    [
      "a fault that the gateway did not prefetch",
      asking({ receipt: null, status: 500, code: "unforeseen" }),
      /no such refusal is expected/,
    ],
    [
      "a retryable error when all is well",
      asking({ receipt: null, sentMs: 81, endedMs: 82, status: 500, code: "internal_error" }),
      /refused although all is well/,
    ],
    [
      "a revoked key that gets an error about its credit, when all is well",
      asking({
        receipt: null,
        key: "two",
        sentMs: 81,
        endedMs: 82,
        status: 402,
        code: "insufficient_credit",
      }),
      /a revoked key is not refused as one/,
    ],
    ["books that are off", auditing({ ok: false, driftNano: 7 }), /by g1, the books are off by 7/],
    ["a credit that was booked twice", auditing({ creditsNano: 350 }), /350 was credited, not 200/],
    [
      "a charge that no receipt shows",
      auditing({ chargesNano: 161 }),
      /161 was charged; the receipts say 160/,
    ],
    ["books that nobody looked at", ending({ audits: [] }), /nobody looked at the books/],
    [
      "a balance that is not what was spent of it",
      ending({ balances: [{ balance: "purse", leftNano: 41 }] }),
      /said to have 41/,
    ],
    [
      "credit that cannot be spent",
      {
        ...GOOD,
        credits: [...GOOD.credits, credit({ idempotencyKey: "last", nano: 60, sentMs: 60, answeredMs: 61 })],
        end: {
          ...GOOD.end,
          audits: [audit({ creditsNano: 260 })],
          balances: [{ balance: "purse", leftNano: 100 }],
        },
      },
      /^100 of purse could not be spent$/,
    ],
    [
      "a limit that cannot be spent",
      { ...GOOD, limits: [...GOOD.limits, limit({ nano: 180, sentMs: 50, answeredMs: 51 })] },
      /^100 of day could not be spent$/,
    ],
    [
      "a limit that is not what was used of it",
      ending({ limits: [{ limit: "day", usedNano: 79 }] }),
      /said to be used to 79/,
    ],
    [
      "a gateway that ended by itself",
      { ...GOOD, unexpectedEnds: ["out of memory"] },
      /a gateway ended by itself: out of memory/,
    ],
  ];
  for (const [what, history, finding] of bad) {
    test(`finds ${what}`, () => {
      expect(judge(history).filter((found) => finding.test(found))).toHaveLength(1);
    });
  }
});

function request(one: Partial<Request>): Request {
  return {
    key: "one",
    gateway: "g1",
    sentMs: 55,
    endedMs: 56,
    status: 200,
    code: null,
    receipt: "r1",
    costNano: null,
    ...one,
  };
}

function revoke(one: Partial<Revoke>): Revoke {
  return { key: "one", sentMs: 0, answeredMs: null, ...one };
}

function credit(one: Partial<Credit>): Credit {
  return { balance: "purse", idempotencyKey: "first", nano: 150, sentMs: 0, answeredMs: null, ...one };
}

function limit(one: Partial<LimitSet>): LimitSet {
  return { limit: "day", nano: 60, sentMs: 0, answeredMs: null, ...one };
}

function receipt(one: Partial<Receipt>): Receipt {
  return { id: "r1", key: "one", state: "settled", costNano: 0, ...one };
}

function audit(one: Partial<Audit>): Audit {
  return { gateway: "g1", ok: true, driftNano: 0, creditsNano: 200, chargesNano: 160, ...one };
}

function asking(one: Partial<Request>): History {
  return { ...GOOD, requests: [...GOOD.requests, request(one)] };
}

/** 20 were taken back, between two answers or later. */
function takingBack(answeredMs: number): History {
  const second = request({ receipt: "r2", key: "two", sentMs: 25, endedMs: 30, costNano: 80 });
  return {
    ...GOOD,
    requests: GOOD.requests.map((one) => (one.receipt === "r2" ? second : one)),
    credits: [...GOOD.credits, credit({ idempotencyKey: "back", nano: -20, sentMs: 21, answeredMs })],
    end: {
      ...GOOD.end,
      audits: [audit({ creditsNano: 180 })],
      balances: [{ balance: "purse", leftNano: 20 }],
    },
  };
}

function ending(one: Partial<Outcome>): History {
  return { ...GOOD, end: { ...GOOD.end, ...one } };
}

function auditing(one: Partial<Audit>): History {
  return ending({ audits: [audit(one), audit({ gateway: "g2" })] });
}

function replacing(id: string, one: Partial<Receipt>): History {
  return ending({
    receipts: GOOD.end.receipts.map((known) => (known.id === id ? { ...known, ...one } : known)),
  });
}
