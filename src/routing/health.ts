import { type Catalog, type Model, type Route, routeName } from "../catalog/catalog.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { type AttemptFailure, Circuit, type CircuitState, type Rest } from "./circuit.ts";
import { ExplorationLog } from "./exploration-log.ts";
import { RefusedFallbacks } from "./native-fallbacks.ts";
import { Speed, type StreamEnd } from "./speed.ts";

/**
 * What past attempts show about hosts, shared by all requests. A host has one circuit for failures of the whole host (it cannot
 * be reached, it refuses the gateway's key) and one for each of its models, because an overloaded or missing model says
 * nothing about the others. Rejected requests and clients that leave do not count. Nor do free requests, which anybody can
 * send at will: they are only measured, each route by itself, and `FreeRoutes` judges free routes by probes.
 */
export class Health {
  private readonly hosts = new Map<string, HostHealth>();
  private readonly verified = new Set<string>();
  /**
   * Keeps retries from multiplying the load during an outage: each request adds half a retry, so over time there are at
   * most 1.5 attempts per request, plus a reserve for the first moments.
   */
  private retriesLeft = RETRY_RESERVE;
  private readonly refusedFallbacks = new RefusedFallbacks();

  constructor(
    private readonly clock: Clock,
    /** Reports a rest to the machine's other workers. */
    private readonly onRest: (rest: HostRest) => void = () => {},
  ) {}

  /** Milliseconds until the route takes requests; 0: now. */
  restMs(of: Route): number {
    const health = this.hosts.get(of.host.id);
    if (health === undefined) return 0;
    const nowMs = this.clock.elapsedMs();
    const route = health.known(of);
    const restMs = health.circuit.restMs(nowMs);
    return route === undefined ? restMs : Math.max(restMs, route.circuit.restMs(nowMs));
  }

  /** How the last attempt at the route or its host ended; null before the first. */
  lastAttempt(of: Route): "served" | "failed" | null {
    const health = this.hosts.get(of.host.id);
    const route = health?.known(of);
    if (health?.circuit.isFailing === true || route?.circuit.isFailing === true) return "failed";
    return route !== undefined && route.served > 0 ? "served" : null;
  }

  usable(route: Route): boolean {
    return this.restMs(route) === 0;
  }

  /** It takes requests again after a rest, but none has succeeded yet. */
  unproven(route: Route): boolean {
    const health = this.hosts.get(route.host.id);
    if (health === undefined || !this.usable(route)) return false;
    const nowMs = this.clock.elapsedMs();
    const own = health.known(route)?.circuit.state(nowMs) ?? "closed";
    return own !== "closed" || health.circuit.state(nowMs) !== "closed";
  }

  /** Call before each attempt: enters as a probe if need be, which `observe` ends. */
  enter(route: Route): void {
    if (route.free) return;
    const nowMs = this.clock.elapsedMs();
    const host = this.hostHealth(route.host.id);
    host.circuit.enter(nowMs);
    host.route(route).circuit.enter(nowMs);
  }

  /** Circuits with a probe under way, which take no other requests meanwhile. */
  get probes(): number {
    const nowMs = this.clock.elapsedMs();
    const circuits = [...this.hosts.values()].flatMap(({ circuit, routes }) => [
      circuit,
      ...[...routes.values()].map((route) => route.circuit),
    ]);
    return circuits.filter((circuit) => circuit.isProbed(nowMs)).length;
  }

  /** Call before an attempt that explores how fast the route is now. */
  noteExploration(route: Route, by: BalanceId): void {
    this.hostHealth(route.host.id).route(route).explorations.note(by, this.clock.elapsedMs());
  }

  explorationDueMs(route: Route, by: BalanceId): number {
    const known = this.record(route);
    return known?.explorations.dueMs(by, this.clock.elapsedMs()) ?? Number.POSITIVE_INFINITY;
  }

  latencyMs(route: Route, promptTokens: number, by: BalanceId): number | null {
    return this.speed(route)?.firstTokenMsFor(promptTokens, by, this.clock.elapsedMs()) ?? null;
  }

  throughput(route: Route, by: BalanceId): number | null {
    return this.speed(route)?.tokensPerSecondFor(by, this.clock.elapsedMs()) ?? null;
  }

  takesFallbacks(route: Route, next: readonly Route[], by: BalanceId): boolean {
    return !this.refusedFallbacks.has(route, next, by, this.clock.elapsedMs());
  }

  /** The host refused these `fallbacks`: for a while, the gateway falls back by itself. */
  refusesFallbacks(route: Route, next: readonly Route[], by: BalanceId): void {
    this.refusedFallbacks.refused(route, next, by, this.clock.elapsedMs());
  }

  /** Call before the first attempt of a request. */
  begin(): void {
    this.retriesLeft = Math.min(this.retriesLeft + RETRIES_PER_REQUEST, RETRY_RESERVE);
  }

  /** Call before each further attempt. False if half of the model's hosts are down and the retry budget is used up. */
  mayRetry({ routes }: Model, { free }: Route): boolean {
    // Free requests have none of the budget; each counts against the sender's daily allowance.
    if (free) return true;
    let down = 0;
    for (const route of routes) if (!this.usable(route)) down += 1;
    if (this.retriesLeft < 1) return down * 2 < routes.length;
    this.retriesLeft -= 1;
    return true;
  }

  /**
   * How long to wait for a first token while another host is ready, in milliseconds: 1.5 times what is slow for this route
   * with a prompt of this size, or for the other route. A route with few measurements counts as somewhat slower than the
   * model's other routes. Null while nothing is known.
   */
  firstTokenWaitMs(route: Route, other: Route, { routes }: Model, promptTokens: number): number | null {
    const slowMs = this.slowMs(route, promptTokens);
    const otherSlowMs = this.slowMs(other, promptTokens);
    if (slowMs !== null) return Math.max(MIN_WAIT_MS, WAITS * Math.max(slowMs, otherSlowMs ?? 0));
    let known = otherSlowMs ?? 0;
    if (otherSlowMs === null)
      for (const one of routes) known = Math.max(known, this.slowMs(one, promptTokens) ?? 0);
    return known === 0 ? null : Math.max(MIN_STRANGER_WAIT_MS, STRANGER_WAITS * known);
  }

  private slowMs(route: Route, promptTokens: number): number | null {
    return this.speed(route)?.firstTokenMsWithinFor(SLOW, promptTokens) ?? null;
  }

  /** Call after each attempt. */
  observe(route: Route, observation: Observation): void {
    const nowMs = this.clock.elapsedMs();
    const host = this.hostHealth(route.host.id);
    const known = host.route(route);
    const { circuit } = known;
    switch (observation.kind) {
      case "served":
        if (!route.free) host.noteServed(nowMs, observation.by);
        known.noteServed(nowMs, observation.by);
        if (observation.firstTokenMs !== null) {
          const { firstTokenMs, promptTokens, by } = observation;
          known.speed.firstToken(firstTokenMs, promptTokens, by, nowMs);
          if (!route.free) host.firstTokenMs = moved(host.firstTokenMs, firstTokenMs);
        }
        return;
      case "failed":
        this.noteFailure(host, known, route, observation.detail);
        if (route.free) return;
        if (observation.wholeHost) {
          this.rested(route.host.id, null, host.circuit.failed(nowMs, observation));
          circuit.left();
        } else {
          host.circuit.left();
          this.rested(route.host.id, route.model, circuit.failed(nowMs, observation));
        }
        return;
      case "nothing":
        if (route.free) return;
        host.circuit.left();
        circuit.left();
    }
  }

  /** Call after each relayed stream. */
  streamEnded(route: Route, { kind, tokens, ms, by }: StreamEnd): void {
    const nowMs = this.clock.elapsedMs();
    const host = this.hostHealth(route.host.id);
    const known = host.route(route);
    const { circuit } = known;
    if (kind === "host_failed") {
      this.noteFailure(host, known, route, "the stream broke off after its first token");
      if (!route.free) this.rested(route.host.id, route.model, circuit.died(nowMs, by));
    }
    if (kind !== "complete") return;
    circuit.completed();
    // A short answer comes in a burst or two, which only shows the network's speed.
    if (tokens < MIN_TOKENS || ms < MIN_MS) return;
    known.speed.wrote(tokens, ms, by, nowMs);
    if (!route.free) host.tokensPerSecond = moved(host.tokensPerSecond, (tokens * 1_000) / ms);
  }

  private noteFailure(host: HostHealth, known: RouteHealth, { free }: Route, detail: string): void {
    const at = this.clock.now();
    if (!free) host.noteFailed(at);
    known.lastFailure = { at, since: known.noteFailed(at), detail };
  }

  /** Another worker reported that the host should rest. */
  onRemoteRest({ host, model, ...rest }: HostRest): void {
    const health = this.hostHealth(host);
    const { circuit } = model === null ? health : health.route({ model, free: false });
    circuit.open(this.clock.elapsedMs(), rest);
  }

  private rested(host: string, model: string | null, rest: Rest | null): void {
    if (rest !== null) this.onRest({ host, model, ...rest });
  }

  speed(route: Route): Speed | null {
    return this.record(route)?.speed ?? null;
  }

  /** Null before its first attempt. */
  record(route: Route): RouteHealth | null {
    return this.hosts.get(route.host.id)?.known(route) ?? null;
  }

  /** Every host of the catalog, in its order. */
  report({ hosts }: Catalog): HostReport[] {
    const nowMs = this.clock.elapsedMs();
    return [...hosts.keys()].map((id) => reportOf(id, this.hosts.get(id) ?? new HostHealth(), nowMs));
  }

  /** After a reload: forgets hosts and models that the catalog no longer has. */
  keep({ hosts, models }: Catalog): void {
    for (const id of this.hosts.keys()) if (!hosts.has(id)) this.hosts.delete(id);
    const named = new Set([...models.values()].flatMap(({ routes }) => routes.map(routeName)));
    for (const [id, { routes, freeRoutes }] of this.hosts)
      for (const known of [routes, freeRoutes])
        for (const model of known.keys()) if (!named.has(`${id}\n${model}`)) known.delete(model);
    for (const name of this.verified) if (!named.has(name)) this.verified.delete(name);
  }

  verifiedFree(route: Route): boolean {
    return this.verified.has(routeName(route));
  }

  verify(route: Route, verified: boolean): void {
    if (verified) this.verified.add(routeName(route));
    else this.verified.delete(routeName(route));
  }

  private hostHealth(host: string): HostHealth {
    let health = this.hosts.get(host);
    if (health === undefined) this.hosts.set(host, (health = new HostHealth()));
    return health;
  }
}

/** What an attempt taught about its host. */
export type Observation =
  /** A first token, or a whole answer, for which there is no first-token time. */
  | {
      readonly kind: "served";
      readonly firstTokenMs: number | null;
      readonly promptTokens: number;
      readonly by: BalanceId;
    }
  | (AttemptFailure & {
      readonly kind: "failed";
      /** The failure concerns all of the host's models. */
      readonly wholeHost: boolean;
      /** For the receipt; never quotes the host, which may repeat a prompt. */
      readonly detail: string;
    })
  | { readonly kind: "nothing" };

/** A rest that begins, of a host or of one of its models. */
export interface HostRest extends Rest {
  readonly host: string;
  /** The model's name at the host; null: the whole host. */
  readonly model: string | null;
}

/** A host as operators and the public may see it. */
export interface HostReport {
  readonly id: string;
  /** `degraded`: some of its models rest. */
  readonly state: CircuitState | "degraded";
  /** Moving averages; null before the first stream. */
  readonly firstTokenMs: number | null;
  readonly tokensPerSecond: number | null;
  /** Attempts, since start. */
  readonly served: number;
  readonly failed: number;
  /** The first failure that no answer has followed. */
  readonly failingSince: EpochMs | null;
}

/** Attempts at one model of a host, since start. */
export interface RouteRecord {
  readonly served: number;
  /** A stream that broke midway is among both. */
  readonly failed: number;
  readonly lastFailure: LastFailure | null;
}

export interface LastFailure {
  readonly at: EpochMs;
  /** The first failure after the last answer before it. */
  readonly since: EpochMs;
  readonly detail: string;
}

/** Attempts at a host, or at one of its models. */
class AttemptTally {
  readonly circuit = new Circuit();
  served = 0;
  failed = 0;
  /** The first failure since the last answer. */
  failingSince: EpochMs | null = null;

  noteServed(nowMs: number, by: BalanceId): void {
    this.served += 1;
    this.failingSince = null;
    this.circuit.served(nowMs, by);
  }

  /** Returns the time of the first failure since the last answer. */
  noteFailed(at: EpochMs): EpochMs {
    this.failed += 1;
    return (this.failingSince ??= at);
  }
}

class HostHealth extends AttemptTally {
  /** By the model's name at the host. */
  readonly routes = new Map<string, RouteHealth>();
  readonly freeRoutes = new Map<string, RouteHealth>();
  firstTokenMs: number | null = null;
  tokensPerSecond: number | null = null;

  known({ model, free }: RouteName): RouteHealth | undefined {
    return (free ? this.freeRoutes : this.routes).get(model);
  }

  route(name: RouteName): RouteHealth {
    const { model, free } = name;
    let health = this.known(name);
    if (health === undefined) (free ? this.freeRoutes : this.routes).set(model, (health = new RouteHealth()));
    return health;
  }
}

type RouteName = Pick<Route, "model" | "free">;

class RouteHealth extends AttemptTally implements RouteRecord {
  readonly speed = new Speed();
  readonly explorations = new ExplorationLog();
  lastFailure: LastFailure | null = null;
}

const RETRIES_PER_REQUEST = 0.5;
const RETRY_RESERVE = 50;
/** A slow first token: the 99th percentile. */
const SLOW = 0.99;
const WAITS = 1.5;
/** At least this: a hiccup of the network or this process is no reason to pay for a prompt twice. */
const MIN_WAIT_MS = 500;
const STRANGER_WAITS = 3;
const MIN_STRANGER_WAIT_MS = 2_000;
/** Output tokens after the first piece, and their time, below which an answer says nothing about throughput. */
const MIN_TOKENS = 16;
const MIN_MS = 250;
/** The weight of each stream in a host's averages. */
const WEIGHT = 0.1;

const moved = (average: number | null, sample: number): number =>
  average === null ? sample : average + WEIGHT * (sample - average);

function reportOf(id: string, health: HostHealth, nowMs: number): HostReport {
  const { circuit, routes, served, failed, failingSince, firstTokenMs, tokensPerSecond } = health;
  const state = stateOf(circuit, routes, nowMs);
  return { id, state, firstTokenMs, tokensPerSecond, served, failed, failingSince };
}

function stateOf(circuit: Circuit, routes: HostHealth["routes"], nowMs: number): HostReport["state"] {
  const own = circuit.state(nowMs);
  if (own !== "closed") return own;
  const states = [...routes.values()].map((route) => route.circuit.state(nowMs));
  if (states.every((state) => state === "closed")) return "closed";
  return states.every((state) => state === states[0]) ? states[0]! : "degraded";
}
