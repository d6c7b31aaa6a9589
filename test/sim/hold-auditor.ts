import type { Price, Rates } from "../../src/catalog/price.ts";
import { NO_TOKENS, type Tokens } from "../../src/catalog/tokens.ts";
import type { Key } from "../../src/customers/keys/key.ts";
import type { AgentRun } from "../../src/customers/keys/runs.ts";
import { CHECK_EVERY_MS } from "../../src/generation/expected-output.ts";
import type { Hold } from "../../src/generation/hold.ts";
import { costOf } from "../../src/ledger/charge.ts";
import type { Reservation } from "../../src/ledger/reservation.ts";
import type { GenerationRequest, Usage } from "../../src/surfaces/surface.ts";
import type { KeyId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { type Auditor, check } from "./world.ts";

/** Knows what each host has really done at each moment, and what limits have left for it. */
export class HoldAuditor implements Auditor {
  readonly open = new Set<Work>();
  private readonly spent = new Map<KeyId, number>();
  private readonly spentOf = new Map<AgentRun, number>();
  /** What it remembers of each key's answers. */
  private readonly answers = new Map<KeyId, number[]>();
  /** Tokens a second, twice those of the fastest host that wrote for seconds. */
  private fastest = PACE;

  constructor(
    private readonly credit: NanoUsd,
    private readonly openHolds: () => number,
  ) {}

  /** Its worst case is of the prompt as it was counted. */
  refused(key: Key, run: AgentRun | null, prompt: number, ceiling: number | null): void {
    const amount = costAtWorst(prompt, this.neededAtOnce(key, ceiling));
    const worst = costAtWorst(prompt, ceiling ?? DEFAULT_CEILING);
    const [room, left] = [this.roomNextTo(key, run), this.leftOf(key, run)];
    check(
      amount > room || worst > left,
      `refused although ${amount} of ${worst} fits: ${room} of ${left} is left`,
    );
  }

  /** Its worst case is what the host bills if the answer is as long as it may be. */
  admitted(key: Key, run: AgentRun | null, usage: Work["usage"], ceiling: number | null): void {
    const output = ceiling ?? DEFAULT_CEILING;
    const worst = costOf({ ...usage, output }, ratesUsed({ usage }));
    const [spent, spentByAll] = [this.spent.get(key.id) ?? 0, this.spentByAll];
    check(
      key.dailyLimit === null || spent + worst <= key.dailyLimit,
      `${worst} does not fit next to ${spent}`,
    );
    check(spentByAll + worst <= this.credit, `${worst} is not covered next to ${spentByAll}`);
    if (run === null) return;
    const spentOf = this.spentOf.get(run) ?? 0;
    check(spentOf + worst <= run.limits!.cap!, `${worst} does not fit into the run ${run.name}`);
  }

  /** As the decision has it, from the auditor's own memory. */
  neededAtOnce(key: Key, named: number | null): number {
    const ceiling = named ?? DEFAULT_CEILING;
    const least = Math.max((FIRST_TOKEN_MS / 1_000) * PACE + 512, (named ?? LONGEST) / 8);
    const lately = (this.answers.get(key.id) ?? []).slice(-16).sort((a, b) => a - b);
    const learnt = lately.length < 4 ? 0 : 1.5 * lately[Math.floor(lately.length * 0.875)]!;
    return Math.min(ceiling, Math.ceil(Math.max(least, learnt)));
  }

  /** A hold is never above the worst case of the longest answer, or what was written, nor above what its stream explains. */
  sized({ reservation, request, seen, overrated, longest, startedMs, atOnce }: Work, nowMs: number): void {
    const written = Math.ceil(seen * overrated);
    const silentlyS = (nowMs - startedMs + CHECK_EVERY_MS) / 1_000;
    const explained = Math.max(atOnce, written + silentlyS * Math.min(this.fastest, MAX_PACE) + 512 + STEP);
    const most = costAtWorst(request.promptBound, Math.ceil(Math.min(explained, Math.max(longest, written))));
    check(reservation.held <= most, `${reservation.held} is held, of ${most} at most`);
  }

  /** The hold covers what the host has done; where limits were full at the last look, it may be short by one. */
  covered(work: Work): void {
    const { reservation, hides } = work;
    const short = costOf(usedBy(work), ratesUsed(work)) - reservation.held;
    if (short <= 0 || hides > 1) return;
    check(
      work.wasFull,
      `${reservation.request.receipt} is owed ${short} beyond its hold, although there is room`,
    );
    check(short <= mostUncovered(work), `${reservation.request.receipt} is owed ${short} beyond its hold`);
  }

  stopped({ reservation }: Work): void {
    const room = this.roomFor(reservation);
    check(room < ONE_STEP, `${reservation.request.receipt} was stopped, with room for ${room}`);
  }

  /** `held` and `room` are those of the moment before. */
  ended(work: Work, { charged, lost, held, room }: WorkEnd): void {
    const { reservation, hides } = work;
    const { key, run, receipt } = reservation.request;
    const tokens = usedBy(work);
    const cost = costOf(tokens, ratesUsed(work));
    this.open.delete(work);
    this.answers.set(key.id, [...(this.answers.get(key.id) ?? []), tokens.output].slice(-16));
    check(charged + lost === cost, `${charged} and ${lost} are not ${cost}`);
    check(lost === 0 || cost - held > room, `${lost} was lost, although limits had room for ${room}`);
    check(lost <= MAX_LOST * held, `${lost} was lost of a hold of ${held}`);
    check(hides > 1 || lost <= mostUncovered(work), `${lost} was lost of ${receipt}`);
    const spent = (this.spent.get(key.id) ?? 0) + charged;
    this.spent.set(key.id, spent);
    check(
      key.dailyLimit === null || spent <= key.dailyLimit,
      `${key.id} spent ${spent} of ${key.dailyLimit}`,
    );
    check(this.spentByAll <= this.credit, `${this.spentByAll} is spent of ${this.credit}`);
    if (!run) return;
    const spentOf = (this.spentOf.get(run) ?? 0) + charged;
    this.spentOf.set(run, spentOf);
    check(spentOf <= run.limits!.cap!, `the run ${run.name} spent ${spentOf} of ${run.limits!.cap}`);
  }

  /** A host wrote so fast. */
  measured(tokens: number, ms: number): void {
    if (ms >= LONG_MS) this.fastest = Math.max(this.fastest, (2_000 * tokens) / ms);
  }

  judge(): void {
    check(this.openHolds() === 0, "holds are open although nothing is");
  }

  /** What the limits of its key and its run have left next to what is spent and held. */
  roomFor({ request: { key, run } }: Reservation): number {
    return this.roomNextTo(key, run ?? null);
  }

  private leftOf(key: Key, run: AgentRun | null): number {
    const ofKey = (key.dailyLimit ?? Infinity) - (this.spent.get(key.id) ?? 0);
    const ofRun = run ? run.limits!.cap! - (this.spentOf.get(run) ?? 0) : Infinity;
    return Math.min(this.credit - this.spentByAll, ofKey, ofRun);
  }

  private roomNextTo(key: Key, run: AgentRun | null): number {
    let [heldByAll, held, heldOfRun] = [0, 0, 0];
    for (const { reservation } of this.open) {
      const { request } = reservation;
      heldByAll += reservation.held;
      if (request.key.id === key.id) held += reservation.held;
      if (run !== null && request.run === run) heldOfRun += reservation.held;
    }
    const ofKey = (key.dailyLimit ?? Infinity) - (this.spent.get(key.id) ?? 0) - held;
    const ofRun = run ? run.limits!.cap! - (this.spentOf.get(run) ?? 0) - heldOfRun : Infinity;
    return Math.min(this.credit - this.spentByAll - heldByAll, ofKey, ofRun);
  }

  private get spentByAll(): number {
    let sum = 0;
    for (const spent of this.spent.values()) sum += spent;
    return sum;
  }
}

/** One host at work. */
export interface Work {
  readonly hold: Hold;
  readonly reservation: Reservation;
  readonly request: GenerationRequest;
  /** Longest answer of the model, in the host's tokens. */
  readonly longest: number;
  readonly usage: Usage & { readonly output: number };
  /** Tokens that it counts for each that can be seen, or thought at the pace that holds reckon with. */
  readonly hides: number;
  /** The estimate of its words is as many times too high; a count, which it gets a step later, says so. */
  readonly overrated: number;
  /** Says what it has used so far, with its words and while it thinks; or now and then, with some words. */
  readonly reportsUsage: boolean;
  readonly reportsRarely: boolean;
  /** Words that it had written when it last said so. */
  reported: number;
  readonly writes: Writing;
  /** Words of the first piece, and when it came. */
  first: { readonly tokens: number; readonly atMs: number } | null;
  /** The most that this stream accounts for, of its answer, at once and as it goes on. */
  readonly atOnce: number;
  readonly judge: { usage: Usage | null; readonly text: { readonly estimateSinceReport: number } };
  readonly startedMs: number;
  /** No limit had room for a step when the hold was looked at. */
  wasFull: boolean;
  doing: "first" | "writing" | "thinking";
  untilMs: number;
  seen: number;
  unseen: number;
}

/** How a host writes: in small pieces, in a burst now and then, or all in one packet; `packet` and `burst` have so many tokens. */
interface Writing {
  readonly how: "pieces" | "fast" | "bursts" | "packet";
  readonly burst: number;
}

interface WorkEnd {
  readonly charged: number;
  readonly lost: number;
  readonly held: number;
  readonly room: number;
}

/** An answer longer than its model's longest is billed for its visible text, without reasoning. */
export const usedBy = ({ usage, hides, seen, unseen, longest }: Work): Tokens => ({
  ...usage,
  output: Math.min(Math.floor((seen + unseen) * hides), Math.max(longest, seen)),
});

export const ratesUsed = ({ usage }: Pick<Work, "usage">): Rates => ratesOf(usage.input + usage.cacheRead);

/** A prompt that is longer than the step makes its whole request more expensive. */
const STEP_TOKENS = 30_000;
const BASE = { input: 3e9, output: 15e9, cacheRead: 0.3e9, cacheWrite: 3.75e9 } as Rates;
const RAISED = { input: 6e9, output: 22.5e9, cacheRead: 0.6e9, cacheWrite: 7.5e9 } as Rates;
export const PRICE: Price = { ...BASE, above: [{ ...RAISED, prompt: STEP_TOKENS }] };
const ratesOf = (prompt: number): Rates => (prompt > STEP_TOKENS ? RAISED : BASE);
/** What hosts put around a prompt may take it over the step. */
const FRAMING = 1_024;
export const FIRST_TOKEN_MS = 30_000;
export const PACE = 250;
export const LONGEST = 128_000;
/** Where the client names no ceiling. */
export const DEFAULT_CEILING = 16_384;
/** Holds reckon with no host that works faster unseen. */
const MAX_PACE = 2_000;
const STEP = 4_096;
const LONG_MS = 2_000;

/** At the most expensive that a prompt can be. */
const costAtWorst = (cacheWrite: number, output: number): number =>
  costOf({ ...NO_TOKENS, cacheWrite, output }, ratesOf(cacheWrite + FRAMING));
const tokensNano = (tokens: number): NanoUsd => costOf({ ...NO_TOKENS, output: tokens }, RAISED);
/** A limit that has room for no step is full. */
export const ONE_STEP = tokensNano(64);
/** An eighth of what an answer can come to is always held. */
const MAX_LOST = 7;
/** A full limit has no room for a burst that nobody could prefetch. */
const mostUncovered = ({ writes: { how, burst } }: Work): number =>
  ONE_CHECK + (how === "packet" || how === "bursts" ? tokensNano(burst) : 0);
/** What a host does between two looks, and the words of one piece. */
const ONE_CHECK = tokensNano((PACE * (CHECK_EVERY_MS + 250)) / 1_000 + 80);
