import { Destinations } from "../../src/hosts/destination.ts";
import {
  type FailoverCall,
  type FailoverDeps,
  type FailoverOutcome,
  tryHosts,
} from "../../src/hosts/failover.ts";
import { HostSlots } from "../../src/hosts/slots/host-slots.ts";
import { Health } from "../../src/routing/health.ts";
import { makePlan, type Plan } from "../../src/routing/plan.ts";
import type { GenerationRequest } from "../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../src/surfaces/surfaces.ts";
import { type Clock, MINUTE_MS } from "../../src/units/clock.ts";
import { Deadlines } from "../../src/units/deadlines.ts";
import type { BalanceId, ReceiptId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";
import { BlindHealth } from "../fakes/blind-health.ts";
import { rethrow } from "../fakes/rethrow.ts";
import { type Deed, ScriptedHosts } from "../fakes/scripted-hosts.ts";
import { catalogOf, model, queryFor, route } from "../routing/world.ts";
import { Random } from "./random.ts";
import { settled, World } from "./world.ts";

/**
 * Half of a model's hosts go up and down, each in its own way of failing, while requests come at random.
 * Plan, health and attempt are the production ones; clock, chance and hosts are simulated. The hosts that
 * flap are the ones that the operator prefers, so that every request would go to them first. `blind` is the
 * same without any knowledge of health.
 */
export async function flap({ seed, minutes, blind = false }: Run): Promise<Flapping> {
  const world = new World(seed, [], settled);
  const { random } = world;
  const { clock } = world.time.life();
  const hosts = HOSTS.map(
    ({ id, failing }, at) =>
      new FlappingHost(id, failing, random, new Random(seed * HOSTS.length + at), clock),
  );
  const health = blind ? new BlindHealth(clock) : new Health(clock);
  const minutesSeen = Array.from({ length: minutes }, () => newMinute());
  const asks: Promise<void>[] = [];
  const deps = depsOn(
    new ScriptedHosts(clock, (id) => hosts.find((host) => host.id === id)!.deed()),
    clock,
    health,
  );

  const send = async (): Promise<void> => {
    const startedMs = clock.elapsedMs();
    const plan = makePlan({ ...queryFor(MODEL.id), catalog: CATALOG, routeState: health }, () => "") as Plan;
    const by = `bal_${asks.length % CUSTOMERS}` as BalanceId;
    const outcome = await tryHosts(REQUEST, plan, { ...CALL, balanceId: by }, deps);
    note(minutesSeen[Math.floor(startedMs / MINUTE_MS)]!, outcome, clock.elapsedMs() - startedMs);
    if (outcome.kind !== "opened") return;
    clock.after(STREAM_MS, () => {
      health.streamEnded(outcome.candidate.route, { kind: "complete", tokens: 100, ms: STREAM_MS, by });
      outcome.cancel();
    });
  };

  const arrive = (): void => {
    if (clock.elapsedMs() >= minutes * MINUTE_MS) return;
    asks.push(send());
    clock.after(random.exponential(1_000 / REQUESTS_A_SECOND), arrive);
  };
  world.joins({
    begin: arrive,
    act: () => world.pass(MINUTE_MS),
    end: async () => {
      await world.pass(AFTER_MS);
      await Promise.all(asks);
    },
  });
  await world.run(minutes);
  return {
    minutes: minutesSeen,
    downs: hosts.map(({ id, downs }) => ({ id, downs })),
    whole: total(minutesSeen),
  };
}

export interface Run {
  readonly seed: number;
  readonly minutes: number;
  readonly blind?: boolean;
}

export interface Flapping {
  readonly minutes: readonly Minute[];
  /** When each host was down, from and to, in milliseconds. */
  readonly downs: readonly { readonly id: string; readonly downs: readonly (readonly [number, number])[] }[];
  readonly whole: Minute;
}

export interface Minute {
  requests: number;
  served: number;
  attempts: number;
  readonly firstTokensMs: number[];
}

/** The value below which this share of them lies. */
export function below(share: number, values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Everything that began ends within it. */
const AFTER_MS = 5 * MINUTE_MS;
const REQUESTS_A_SECOND = 20;
/** In turn. */
const CUSTOMERS = 20;
const STREAM_MS = 2_000;
/** Mean times of a host that flaps. */
const UP_MS = 45_000;
const DOWN_MS = 45_000;
/** Share of requests that fail at a host that is up. */
const SPORADIC_FAILURES = 0.005;
const MEDIAN_FIRST_TOKEN_MS = 400;

const HOSTS = [
  { id: "flaps-refusing", failing: { does: "refuses" } },
  { id: "flaps-with-503", failing: { does: "fails", status: 503, ms: 20 } },
  { id: "flaps-silently", failing: { does: "nothing" } },
  { id: "steady-1", failing: null },
  { id: "steady-2", failing: null },
  { id: "steady-3", failing: null },
] as const satisfies { id: string; failing: Deed | null }[];

const MODEL = model(
  "sim/model",
  HOSTS.map(({ id }) => route(id)),
);
const CATALOG = catalogOf([MODEL]);
const REQUEST = SURFACES["chat.completions"].readRequest(
  new TextEncoder().encode(
    JSON.stringify({ model: MODEL.id, stream: true, messages: [{ role: "user", content: "Hello" }] }),
  ),
) as GenerationRequest;

const CALL: Omit<FailoverCall, "balanceId"> = {
  signal: new AbortController().signal,
  limits: { firstTokenMs: 30_000, maxHosts: 3, hedgeMs: null, chunkGapMs: 120_000, totalMs: 1_200_000 },
  clientHeaders: {},
  outputCeiling: null,
  defaultMaxOutputTokens: 1_000,
  prepared: null,
  keyId: "key",
  conversation: null,
  trace: null,
  receipt: "req_test" as ReceiptId,
};

const depsOn = (transport: ScriptedHosts, clock: Clock, health: Health): FailoverDeps => ({
  transport,
  clock,
  deadlines: new Deadlines(clock, rethrow),
  destinations: new Destinations(),
  pairing,
  health,
  slots: new HostSlots(clock),
  random: systemRandom,
  onFault: rethrow,
  tried() {},
});

/** Up for a while, down for a while, if it flaps; slow by the log-normal law that first tokens follow. */
class FlappingHost {
  readonly downs: [number, number][] = [];

  constructor(
    readonly id: string,
    private readonly failing: Deed | null,
    private readonly random: Random,
    /** Random numbers of its own, so that the host goes up and down at the same times for every caller. */
    private readonly moods: Random,
    private readonly clock: Clock,
  ) {}

  deed(): Deed {
    if (this.failing !== null && this.isDown()) return this.failing;
    if (this.random.chance(SPORADIC_FAILURES)) return { does: "fails", status: 500, ms: 50 };
    return { does: "answers", ms: MEDIAN_FIRST_TOKEN_MS * Math.exp(0.4 * this.random.normal()) };
  }

  private isDown(): boolean {
    const nowMs = this.clock.elapsedMs();
    let last = this.downs.at(-1);
    while (last === undefined || last[1] <= nowMs) {
      const fromMs = (last?.[1] ?? 0) + this.moods.exponential(UP_MS);
      last = [fromMs, fromMs + this.moods.exponential(DOWN_MS)];
      this.downs.push(last);
    }
    return nowMs >= last[0];
  }
}

const newMinute = (): Minute => ({ requests: 0, served: 0, attempts: 0, firstTokensMs: [] });

function note(minute: Minute, { kind, tries }: FailoverOutcome, ms: number): void {
  minute.requests += 1;
  minute.attempts += tries.length;
  if (kind !== "opened") return;
  minute.served += 1;
  minute.firstTokensMs.push(ms);
}

function total(minutes: readonly Minute[]): Minute {
  const sum = (of: (minute: Minute) => number) => minutes.reduce((all, minute) => all + of(minute), 0);
  return {
    requests: sum(({ requests }) => requests),
    served: sum(({ served }) => served),
    attempts: sum(({ attempts }) => attempts),
    firstTokensMs: minutes.flatMap(({ firstTokensMs }) => firstTokensMs),
  };
}
