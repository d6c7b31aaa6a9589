import type { Credit, History, KeyFacts, LimitSet, Receipt, Request } from "./history.ts";

/**
 * Judges a history by what every client is promised, whatever failed meanwhile. Returns what was not kept, a
 * sentence each. It believes the clients: of the gateways it takes receipts and books at the end, and holds
 * them against what was seen.
 */
export function judge(history: History): string[] {
  return [
    ...answersHaveReceipts(history),
    ...receiptsHaveRequests(history),
    ...capsHeld(history),
    ...revokesHeld(history),
    ...refusalsWereTrue(history),
    ...booksAgree(history),
    ...creditCouldBeSpent(history),
    ...history.unexpectedEnds.map((message) => `a gateway ended by itself: ${message}`),
  ];
}

function* answersHaveReceipts({ requests, end }: History): Generator<string> {
  const receipts = Map.groupBy(end.receipts, ({ id }) => id);
  const answered = requests.filter(isAnswered);
  for (const request of answered) {
    const found = request.receipt === null ? [] : (receipts.get(request.receipt) ?? []);
    const about = shown(request);
    if (found.length !== 1) yield `an answered request has ${found.length} receipts: ${about}`;
    for (const { state, costNano, key } of found) {
      if (state !== "settled") yield `an answered request is ${state}: ${about}`;
      if (costNano !== request.costNano) yield `an answered request was charged ${costNano}: ${about}`;
      if (key !== request.key) yield `an answered request was charged to ${key}: ${about}`;
    }
  }
  for (const [receipt, sharing] of Map.groupBy(answered, ({ receipt }) => receipt)) {
    if (sharing.length > 1) yield `${sharing.length} answers share the receipt ${receipt}`;
  }
}

/**
 * What was charged beyond the answers must have been asked for, by a request whose fate its client does not
 * know.
 */
function* receiptsHaveRequests({ requests, end, worstCaseNano }: History): Generator<string> {
  const byReceipt = new Map(requests.map((request) => [request.receipt, request]));
  const unknown = Map.groupBy(requests.filter(isUnknown), ({ key }) => key);
  const charged = end.receipts.filter(({ costNano }) => costNano > 0);
  for (const [key, receipts] of Map.groupBy(charged, ({ key }) => key)) {
    const unanswered = receipts.filter(({ id }) => !byReceipt.has(id)).length;
    const open = (unknown.get(key) ?? []).filter(({ receipt }) => receipt === null).length;
    if (unanswered > open)
      yield `${key} was charged ${unanswered} times for ${open} requests that nobody answered`;
  }
  for (const receipt of charged) {
    const request = byReceipt.get(receipt.id);
    if (receipt.costNano > worstCaseNano) yield `more was charged than was held: ${shown(receipt)}`;
    if (request !== undefined && isRefused(request)) yield `a refusal was charged: ${shown(request)}`;
  }
}

/** At no moment was more accepted than the balance was credited, or a limit allowed. */
function* capsHeld(history: History): Generator<string> {
  const { requests, keys, credits, limits, end } = history;
  const counters = Map.groupBy(
    requests
      .filter(isAnswered)
      .flatMap((request) => countersOf(keys, request.key).map((on) => [on, request] as const)),
    ([on]) => on,
  );
  for (const [counter, uses] of counters) {
    const answered = uses.map(([, request]) => request).sort((a, b) => a.sentMs - b.sentMs);
    const byEnd = answered.toSorted((a, b) => a.endedMs - b.endedMs);
    let ended = 0;
    let usedNano = 0;
    for (const request of answered) {
      // What was answered before this one was asked has been counted by then, wherever it was.
      for (; byEnd[ended]!.endedMs < request.sentMs; ended++) usedNano += byEnd[ended]!.costNano!;
      const cap = capBy(counter, request, credits, limits);
      if (usedNano + request.costNano! > cap) {
        yield `${counter} allows ${cap}, and ${usedNano} was used before ${shown(request)}`;
      }
    }
  }
  const spent = new Map<string, number>();
  for (const { key, costNano } of end.receipts)
    for (const counter of countersOf(keys, key)) spent.set(counter, (spent.get(counter) ?? 0) + costNano);
  const always = { sentMs: 0, endedMs: Number.POSITIVE_INFINITY };
  for (const [counter, nano] of spent) {
    const cap = capBy(counter, always, credits, limits, "ever");
    if (nano > cap) yield `${counter} allows ${cap}, and its receipts come to ${nano}`;
  }
}

/** The most that may have been allowed at any moment of the request. */
function capBy(
  counter: string,
  { sentMs, endedMs }: Pick<Request, "sentMs" | "endedMs">,
  credits: readonly Credit[],
  limits: readonly LimitSet[],
  over: "request" | "ever" = "request",
): number {
  // What is taken back counts once that was answered.
  const active = ({ nano, sentMs: sinceMs, answeredMs }: Credit) =>
    nano > 0 ? sinceMs <= endedMs : over === "ever" || (answeredMs !== null && answeredMs <= sentMs);
  const credited = once(credits.filter((one) => one.balance === counter && active(one)));
  if (credited.length > 0) return credited.reduce((sum, { nano }) => sum + nano, 0);
  const set = limits.filter((one) => one.limit === counter && one.sentMs <= endedMs);
  if (over === "ever") return Math.max(0, ...set.map(({ nano }) => nano));
  // Limits are set one after the other, so the last that was answered has taken the place of all that were
  // answered before. What nobody answered may come into force at any time.
  const before = set.filter(({ answeredMs }) => answeredMs !== null && answeredMs <= sentMs);
  const last = before.reduce<LimitSet | null>((a, b) => (a !== null && a.sentMs > b.sentMs ? a : b), null);
  const possible = set.filter((one) => one === last || !before.includes(one));
  return Math.max(0, ...possible.map(({ nano }) => nano));
}

function* revokesHeld({ requests, revokes }: History): Generator<string> {
  const revokedMs = firstOf(revokes, ({ answeredMs }) => answeredMs);
  for (const request of requests) {
    const sinceMs = revokedMs.get(request.key);
    if (request.status === 200 && sinceMs !== undefined && request.sentMs > sinceMs) {
      yield `accepted after the revoke was answered at ${sinceMs}: ${shown(request)}`;
    }
  }
}

/** Clients act upon a refusal: a key is given up for a 401, a request repeated for a 5xx. */
function* refusalsWereTrue({ requests, revokes, calmMs }: History): Generator<string> {
  const firstMs = firstOf(revokes, ({ sentMs }) => sentMs);
  const revokedMs = firstOf(revokes, ({ answeredMs }) => answeredMs);
  for (const request of requests) {
    const { key, status, code, sentMs, endedMs } = request;
    if (status === null || status === 200) continue;
    if (!REFUSALS.get(status)?.has(code ?? "")) yield `no such refusal is expected: ${shown(request)}`;
    if (status === 401 && !((firstMs.get(key) ?? Number.POSITIVE_INFINITY) <= endedMs)) {
      yield `a key that nobody revoked is not known: ${shown(request)}`;
    }
    if (sentMs <= calmMs) continue;
    if (status >= 500) yield `refused although all is well: ${shown(request)}`;
    if (status !== 401 && (revokedMs.get(key) ?? Number.POSITIVE_INFINITY) < sentMs) {
      yield `a revoked key is not refused as one: ${shown(request)}`;
    }
  }
}

/** By status: what a storm may lead to. */
const REFUSALS: ReadonlyMap<number, ReadonlySet<string>> = new Map([
  [401, new Set(["invalid_api_key"])],
  [402, new Set(["insufficient_credit"])],
  [429, new Set(["budget_exhausted"])],
  [500, new Set(["internal_error"])],
  [502, new Set(["upstream_error"])],
  [503, new Set(["model_unavailable"])],
  [504, new Set(["request_timeout"])],
]);

function* booksAgree({ credits, end }: History): Generator<string> {
  const credited = sum(once(credits), ({ nano }) => nano);
  const charged = sum(end.receipts, ({ costNano }) => costNano);
  if (end.audits.length === 0) yield "nobody looked at the books";
  for (const { gateway, ok, driftNano, creditsNano, chargesNano } of end.audits) {
    if (!ok || driftNano !== 0) yield `by ${gateway}, the books are off by ${driftNano}`;
    if (creditsNano !== credited) yield `by ${gateway}, ${creditsNano} was credited, not ${credited}`;
    if (chargesNano !== charged)
      yield `by ${gateway}, ${chargesNano} was charged; the receipts say ${charged}`;
  }
}

/** What is left of a balance or limit is less than any request could have held. */
function* creditCouldBeSpent({ keys, credits, limits, worstCaseNano, end }: History): Generator<string> {
  const spent = new Map<string, number>();
  for (const { key, costNano } of end.receipts)
    for (const counter of countersOf(keys, key)) spent.set(counter, (spent.get(counter) ?? 0) + costNano);
  for (const { balance, leftNano } of end.balances) {
    const left =
      sum(once(credits.filter((one) => one.balance === balance)), ({ nano }) => nano) -
      (spent.get(balance) ?? 0);
    if (leftNano !== left) yield `${balance} is said to have ${leftNano} left; by its receipts it is ${left}`;
    if (left >= worstCaseNano) yield `${left} of ${balance} could not be spent`;
  }
  for (const { limit, usedNano } of end.limits) {
    const last = limits.filter((one) => one.limit === limit && one.answeredMs !== null).at(-1);
    if (usedNano !== (spent.get(limit) ?? 0))
      yield `${limit} is said to be used to ${usedNano}; by its receipts it is ${spent.get(limit) ?? 0}`;
    if (last !== undefined && last.nano - usedNano >= worstCaseNano)
      yield `${last.nano - usedNano} of ${limit} could not be spent`;
  }
}

const isAnswered = ({ costNano }: Request): boolean => costNano !== null;
const isRefused = ({ status }: Request): boolean => status !== null && status !== 200;
const isUnknown = (request: Request): boolean => !isAnswered(request) && !isRefused(request);

const countersOf = (keys: ReadonlyMap<string, KeyFacts>, key: string): readonly string[] => {
  const facts = keys.get(key);
  return facts === undefined ? [] : [facts.balance, ...facts.limits];
};

/** One for each idempotency key. */
const once = (credits: readonly Credit[]): Credit[] => [
  ...new Map(credits.map((credit) => [credit.idempotencyKey, credit])).values(),
];

function firstOf<One extends { readonly key: string }>(
  all: readonly One[],
  momentOf: (one: One) => number | null,
): Map<string, number> {
  const first = new Map<string, number>();
  for (const one of all) {
    const moment = momentOf(one);
    if (moment !== null) first.set(one.key, Math.min(moment, first.get(one.key) ?? moment));
  }
  return first;
}

const sum = <One>(all: readonly One[], amountOf: (one: One) => number): number =>
  all.reduce((total, one) => total + amountOf(one), 0);

const shown = (one: Request | Receipt): string => JSON.stringify(one);
