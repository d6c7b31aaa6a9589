import type { Key } from "../../src/customers/keys/key.ts";
import { DAY_MS, MINUTE_MS } from "../../src/units/clock.ts";
import type { SimulatedRequest } from "./auditor.ts";
import type { Served } from "./hosts.ts";
import { check } from "./world.ts";

/**
 * The auditor's books of what is counted without being paid: a key's requests and tokens of a minute, and its
 * owner's free requests of a day. Nobody outside knows what a request took that is on its way, that its client left
 * or that was open at a crash. Each counts as a range: from what it surely took to what it may have taken. An admitted
 * request must fit under the lower ends, and a refused one must not fit under the upper ends.
 */
export function judgeLimits(
  asks: readonly SimulatedRequest[],
  hostsOf: (name: string) => readonly Served[],
  deaths: readonly Death[],
): LimitCounts {
  const books = new LimitBooks();
  for (const { facts, isAnswer } of inOrder(asks, hostsOf, deaths)) {
    if (isAnswer) books.answered(facts);
    else books.started(facts);
  }
  return books.counts;
}

/** What the auditor notes of a request for that. */
export interface Counted {
  /** The first key of a chain of rotations, which all share their rates. */
  readonly chain: string;
  /** What a free request draws on; null on the paid tier. */
  readonly draws: readonly Draw[] | null;
  /** Requests a minute and key, of the Open Tier only. */
  readonly freeRpm: number | null;
  readonly size: {
    readonly body: number;
    readonly prompt: number;
    readonly maxTokens: number | null;
    /** Output tokens that are surely held, and counted, when it is admitted; null for all of the ceiling. */
    readonly atOnce: number | null;
  };
  /** The wall clock, and the monotonic one. */
  readonly at: number;
  readonly atMs: number;
  /** How many crashes were before it: rates end with the process. */
  readonly life: number;
  /** Its place among all that was asked and that ended. */
  readonly turn: number;
  endTurn: number | null;
  /** When the client was first given a word of the answer. */
  firstWordMs: number | null;
  /** The first answer, with the wall clock at its arrival. */
  answer: Answered | null;
  /** The error's message. */
  message: string;
  retryAfterS: number | null;
}

interface Answered {
  readonly turn: number;
  readonly at: number;
  readonly atMs: number;
  /** Free requests that are left, as it says. */
  readonly remaining: number | null;
}

export interface Draw {
  readonly owner: string;
  readonly limit: number;
}

/** The Open Tier as the operator sets it. */
export interface Tier {
  readonly perDay: number;
  readonly accountlessPerDay: number;
  readonly rpm: number | null;
}

/**
 * An account's keys share one allowance. Without an account, a request draws on that of the balance and on
 * those of its network; the second, wider block has sixteen times as much.
 */
export function drawsOf(
  balance: string,
  account: string | null,
  blocks: readonly string[],
  tier: Tier,
): Draw[] {
  if (account !== null) return [{ owner: account, limit: tier.perDay }];
  const limit = tier.accountlessPerDay;
  const network = blocks.map((owner, width) => ({ owner, limit: width === 0 ? limit : 16 * limit }));
  return [{ owner: balance, limit }, ...network];
}

/** The end of a process. What clients had been given by `keptMs` survives it. */
export interface Death {
  readonly keptMs: number;
}

export interface LimitCounts {
  /** Free requests that were sent to a host. */
  free: number;
  /** Refusals by the limit that was reached. */
  overAllowance: number;
  overRpm: number;
  overFreeRpm: number;
  overTpm: number;
}

interface Span {
  readonly least: number;
  readonly most: number;
}

const NOTHING: Span = { least: 0, most: 0 };
const ONE: Span = { least: 1, most: 1 };
const AT_MOST_ONE: Span = { least: 0, most: 1 };

/** A request, once all of them are over. */
interface Facts {
  readonly request: SimulatedRequest;
  readonly wasSent: boolean;
  /** Whether it was admitted: then it counts as a request of the minute. */
  readonly taken: Span;
  /** Its tokens as they are estimated, and as they were in the end. */
  readonly estimate: Span;
  readonly actual: Span;
  /** When the host that served it had sent all; until then it counts as estimated. */
  readonly servedMs: number;
  /** Something of an answer was given, so it uses up an allowance; also after a crash. */
  readonly wasAnswered: boolean;
  readonly staysAnswered: boolean;
  /** Once it is over, it may have used up an allowance. */
  readonly mayCount: boolean;
}

function factsOf(request: SimulatedRequest, hosts: readonly Served[], deaths: readonly Death[]): Facts {
  const { outcome, error, size } = request;
  const wasSent = hosts.length > 0;
  const server = hosts.findLast(({ endedMs }) => endedMs !== null);
  const ceiling = size.maxTokens ?? DEFAULT_CEILING;
  const longest = size.body + (size.maxTokens ?? MODELS_CEILING);
  const isHonest = outcome === "complete" && server?.script.usage.kind === "honest";
  const used = isHonest ? server.script.usage.prompt + server.script.words + server.script.thoughts : 0;
  const wasRefused = outcome === "refused" && error !== "internal_error";
  const wasAnswered = outcome === "complete" || request.firstWordMs !== null;
  const isEnd = outcome === "complete" || (outcome === "broken" && error !== "internal_error");
  return {
    request,
    wasSent,
    taken: wasSent ? ONE : wasRefused && LIMITS.has(error!) ? NOTHING : AT_MOST_ONE,
    // A token is about four letters; the request's own JSON may count, too.
    estimate: {
      least: size.prompt / 4 + Math.min(ceiling, size.atOnce ?? ceiling),
      most: size.body / 4 + 1 + ceiling,
    },
    actual: isHonest ? { least: used, most: used } : { least: 0, most: wasRefused ? 0 : longest },
    servedMs: outcome === "complete" ? (server?.endedMs ?? 0) : 0,
    wasAnswered,
    staysAnswered:
      wasAnswered &&
      ((isEnd && !request.mayBeLost) ||
        (request.firstWordMs ?? Infinity) <= (deaths[request.life]?.keptMs ?? Infinity)),
    mayCount:
      outcome === "complete" ||
      // Its host worked for it, unless it failed first.
      (outcome === "left" && wasSent) ||
      // A host that declines sends a whole answer without a word.
      (!wasRefused && hosts.some(({ wordsSent, endedMs }) => wordsSent > 0 || endedMs !== null)),
  };
}

/** Errors of a request that took nothing from anything. */
const LIMITS: ReadonlySet<string> = new Set([
  "rate_limited",
  "free_quota_exceeded",
  "insufficient_credit",
  "budget_exhausted",
]);

/** Events of all requests and answers. A request that was never answered has no second event. */
function inOrder(
  asks: readonly SimulatedRequest[],
  hostsOf: (name: string) => readonly Served[],
  deaths: readonly Death[],
): { readonly turn: number; readonly facts: Facts; readonly isAnswer: boolean }[] {
  const events = asks.flatMap((request) => {
    const facts = factsOf(request, hostsOf(request.name), deaths);
    const sentEvent = { turn: request.turn, facts, isAnswer: false };
    return request.answer === null
      ? [sentEvent]
      : [sentEvent, { turn: request.answer.turn, facts, isAnswer: true }];
  });
  return events.sort((one, other) => one.turn - other.turn);
}

class LimitBooks {
  readonly counts: LimitCounts = { free: 0, overAllowance: 0, overRpm: 0, overFreeRpm: 0, overTpm: 0 };
  /** By chain of keys, what it asked in the last minute of this life. */
  private readonly minutes = new Map<string, Facts[]>();
  /** By owner and day. */
  private readonly days = new Map<string, Facts[]>();

  started(facts: Facts): void {
    const { request, wasSent, taken } = facts;
    if (wasSent) this.judgeAdmitted(facts);
    if (taken.most === 0) return;
    this.minute(request).push(facts);
    for (const { owner } of request.draws ?? []) this.day(owner, request.at).push(facts);
  }

  answered(facts: Facts): void {
    const { request } = facts;
    if (request.outcome === "refused") this.judgeRefused(facts);
    // An ended key is refused for nothing else.
    const isKnown = request.error !== "invalid_api_key" && request.error !== "account_suspended";
    if (request.draws !== null && isKnown) this.judgeRemaining(request, request.draws, request.answer!);
  }

  private judgeAdmitted({ request, estimate }: Facts): void {
    const { rpmLimit, tpmLimit } = request.key;
    const about = (what: string, { least }: Span) =>
      `${request.name} was admitted over ${what}, with ${least} taken`;
    const requests = this.requests(request, request.atMs - MINUTE_MS);
    check(rpmLimit === null || requests.least + 1 <= rpmLimit, about("rpm_limit", requests));
    const tokens = this.tokens(request, request.atMs - MINUTE_MS);
    check(tpmLimit === null || tokens.least + estimate.least <= tpmLimit, about("tpm_limit", tokens));
    if (request.draws === null) return;
    this.counts.free += 1;
    const free = this.freeRequests(request, request.atMs - MINUTE_MS);
    check(request.freeRpm === null || free.least + 1 <= request.freeRpm, about("open_tier.rpm", free));
    for (const { owner, limit } of request.draws) {
      const drawn = this.drawn(owner, request.at, request);
      check(drawn.least + 1 <= limit, about(`the allowance of ${owner}`, drawn));
    }
  }

  private judgeRefused(facts: Facts): void {
    const { request, wasSent } = facts;
    const { draws, error } = request;
    const about = `${request.name} was refused with ${error}: ${request.message}`;
    switch (error) {
      case "free_quota_exceeded": {
        const spent = draws?.some(({ owner, limit }) => this.drawn(owner, request.at, request).most >= limit);
        check(!wasSent && spent === true, `although there is some left: ${about}`);
        const leftS = Math.ceil((DAY_MS - (request.at % DAY_MS)) / 1_000);
        check(
          request.retryAfterS === leftS,
          `midnight is in ${leftS} s, not ${request.retryAfterS}: ${about}`,
        );
        this.counts.overAllowance += 1;
        return;
      }
      case "rate_limited":
        check(!wasSent, `after it was sent to a host: ${about}`);
        return this.judgeRate(facts, about);
      case "insufficient_credit":
      case "budget_exhausted":
      case "model_unavailable":
      case "auto_unresolvable":
        return check(draws === null, `although it is free: ${about}`);
      case "no_free_route":
        return check(draws !== null, `although it is paid: ${about}`);
      case "account_suspended":
      case "invalid_api_key":
        return check(!wasSent, `after it was sent to a host: ${about}`);
      case "request_timeout":
      case "invalid_request":
      case "internal_error":
        return;
      default:
        check(false, `which says nothing: ${about}`);
    }
  }

  private judgeRate({ request, estimate }: Facts, about: string): void {
    const { key, retryAfterS } = request;
    const [, what] = /`(rpm_limit|open_tier\.rpm|tpm_limit)`/.exec(request.message) ?? [];
    const rates: Record<string, Rate> = {
      rpm_limit: { limit: key.rpmLimit, needed: ONE, taken: (...span) => this.requests(request, ...span) },
      "open_tier.rpm": {
        limit: request.freeRpm,
        needed: ONE,
        taken: (...span) => this.freeRequests(request, ...span),
      },
      tpm_limit: { limit: key.tpmLimit, needed: estimate, taken: (...span) => this.tokens(request, ...span) },
    };
    check(what !== undefined, `no limit is named: ${about}`);
    const { limit, needed, taken } = rates[what]!;
    check(limit !== null && request.message.includes(` ${limit} `), `there is no such limit: ${about}`);
    check(what !== "open_tier.rpm" || request.draws !== null, `it is not free: ${about}`);
    const { most } = taken(request.atMs - SPAN_MS);
    check(most + needed.most > limit, `although only ${most} of ${limit} are taken: ${about}`);
    if (what === "rpm_limit") this.counts.overRpm += 1;
    else if (what === "tpm_limit") this.counts.overTpm += 1;
    else this.counts.overFreeRpm += 1;
    // One that is above the limit by itself gets an error that waiting does not help.
    if (needed.most > limit) return;
    check(retryAfterS !== null && retryAfterS >= 1 && retryAfterS <= 60, `the wait is no minute: ${about}`);
    const thenMs = request.atMs + retryAfterS * 1_000;
    const left = taken(thenMs - MINUTE_MS, request.atMs);
    check(left.least + needed.least <= limit, `the wait is not enough, ${left.least} stay: ${about}`);
    const before = taken(thenMs - 1_000 - SPAN_MS);
    check(retryAfterS === 1 || before.most + needed.most > limit, `the wait is too long: ${about}`);
  }

  /** What the answer says is left of the day's allowance. */
  private judgeRemaining(request: SimulatedRequest, draws: readonly Draw[], answer: Answered): void {
    const { turn, at, atMs, remaining } = answer;
    if (remaining === null) {
      // The key's own rate is looked at before the request is read; and of a new day nothing may be known yet.
      const mayBeSilent = request.message.includes("`rpm_limit`") || dayOf(at) !== dayOf(request.at);
      return check(mayBeSilent, `${request.name}: nobody says how many free requests remain`);
    }
    const now = { turn, life: request.life, admittedBeforeMs: atMs };
    const left = draws.map(({ owner, limit }) => {
      const { least, most } = this.drawn(owner, at, now);
      return { least: limit - most, most: limit - least };
    });
    const least = Math.max(0, Math.min(...left.map((one) => one.least)));
    const most = Math.min(...left.map((one) => one.most));
    check(
      remaining >= least && remaining <= most,
      `${request.name}: ${remaining} remain, of ${least} to ${most}`,
    );
  }

  private requests(request: SimulatedRequest, sinceMs: number, untilMs?: number): Span {
    return this.within(request, sinceMs, untilMs, ({ taken }) => taken);
  }

  private freeRequests(request: SimulatedRequest, sinceMs: number, untilMs?: number): Span {
    return this.within(request, sinceMs, untilMs, (facts) =>
      facts.request.draws === null ? NOTHING : facts.taken,
    );
  }

  private tokens(request: SimulatedRequest, sinceMs: number, untilMs?: number): Span {
    return this.within(request, sinceMs, untilMs, (facts) => tokensAt(facts, request));
  }

  private drawn(owner: string, at: number, when: When): Span {
    return sum(this.day(owner, at), (facts) => drawnAt(facts, when));
  }

  private within(
    request: SimulatedRequest,
    sinceMs: number,
    untilMs = Infinity,
    span: (facts: Facts) => Span,
  ): Span {
    return sum(this.minute(request), (facts) =>
      facts.request.atMs > sinceMs && facts.request.atMs < untilMs ? span(facts) : NOTHING,
    );
  }

  private minute({ chain, life, atMs }: SimulatedRequest): Facts[] {
    const earlier = this.minutes.get(chain) ?? [];
    this.minutes.set(chain, earlier);
    while (
      earlier[0] !== undefined &&
      (earlier[0].request.life < life || earlier[0].request.atMs <= atMs - SPAN_MS)
    )
      earlier.shift();
    return earlier;
  }

  private day(owner: string, at: number): Facts[] {
    const name = `${owner} ${dayOf(at)}`;
    const earlier = this.days.get(name) ?? [];
    this.days.set(name, earlier);
    return earlier;
  }
}

interface Rate {
  readonly limit: Key["rpmLimit"];
  readonly needed: Span;
  /** After the one moment and before the other. */
  taken(sinceMs: number, untilMs?: number): Span;
}

interface When extends Pick<SimulatedRequest, "turn" | "life"> {
  /** Requests sent at this very moment may be admitted later. */
  readonly admittedBeforeMs?: number;
}

const isOver = ({ endTurn }: SimulatedRequest, { turn }: When): boolean => endTurn !== null && endTurn < turn;

/** What a request counts against its key's tokens when another is asked, in the same life. */
function tokensAt({ request, estimate, actual, servedMs, taken }: Facts, when: SimulatedRequest): Span {
  const isKnown = isOver(request, when) && request.outcome !== "left";
  const isRunning = !isKnown && servedMs > when.atMs;
  const { least, most } = isKnown
    ? actual
    : isRunning
      ? estimate
      : { least: Math.min(estimate.least, actual.least), most: Math.max(estimate.most, actual.most) };
  return { least: taken.least * least, most: taken.most * most };
}

/** The same of a free request and its allowances, in any life. */
function drawnAt({ request, taken, wasAnswered, staysAnswered, mayCount }: Facts, when: When): Span {
  const isGone = request.life < when.life;
  const { admittedBeforeMs = Infinity } = when;
  const isSure = isGone ? staysAnswered : wasAnswered && request.atMs < admittedBeforeMs;
  const isPossible = isGone || isOver(request, when) ? mayCount : taken.most === 1;
  return { least: Number(isSure), most: Number(isPossible) };
}

function sum(all: readonly Facts[], span: (facts: Facts) => Span): Span {
  let [least, most] = [0, 0];
  for (const facts of all) {
    const one = span(facts);
    least += one.least;
    most += one.most;
  }
  return { least, most };
}

const dayOf = (at: number): number => Math.floor(at / DAY_MS);

/** Limits hold in every minute; a refusal may be up to a second late to see one end. */
const SPAN_MS = MINUTE_MS + 1_000;

/** Output tokens held for a request that names no maximum, and the most that the models give. */
export const DEFAULT_CEILING = 300;
export const MODELS_CEILING = 2_000;
