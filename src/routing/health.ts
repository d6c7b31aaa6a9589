import type { Host, Route } from "../catalog/catalog.ts";
import type { Clock } from "../units/clock.ts";
import { Speed, type StreamEnd } from "./speed.ts";

/**
 * What past attempts say about a host: after a few failures in a row it is tried last for a while, longer each time, and
 * then one attempt is let through to see. Requests that a host rejects, and clients that leave, say nothing about it.
 */
export class Health {
  private readonly hosts = new Map<string, HostHealth>();
  private readonly verified = new Set<string>();
  private readonly speeds = new Map<string, Speed>();

  constructor(private readonly clock: Clock) {}

  usable({ host }: Route): boolean {
    const health = this.hosts.get(host.id);
    return (
      health === undefined ||
      health.failures < FAILURES_TO_REST ||
      this.clock.elapsedMs() >= health.restsUntilMs
    );
  }

  observe(host: Host, outcome: "served" | "failed"): void {
    if (outcome === "served") {
      this.hosts.delete(host.id);
      return;
    }
    const health = this.hosts.get(host.id) ?? { failures: 0, restsUntilMs: 0 };
    health.failures += 1;
    const rests = Math.max(0, health.failures - FAILURES_TO_REST);
    health.restsUntilMs =
      this.clock.elapsedMs() + Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** Math.min(rests, 10));
    this.hosts.set(host.id, health);
  }

  speed(route: Route): Speed | null {
    return this.speeds.get(routeName(route)) ?? null;
  }

  firstToken(route: Route, ms: number): void {
    const name = routeName(route);
    const speed = this.speeds.get(name) ?? new Speed();
    speed.firstToken(ms);
    this.speeds.set(name, speed);
  }

  streamEnded(route: Route, { kind, tokens, ms }: StreamEnd): void {
    // Short answers come in one piece, and say how fast the network is.
    if (kind === "complete" && tokens >= LEAST_TOKENS && ms > 0)
      this.speed(route)?.rate((tokens * 1_000) / ms);
  }

  verifiedFree(route: Route): boolean {
    return this.verified.has(routeName(route));
  }

  verify(route: Route, verified: boolean): void {
    if (verified) this.verified.add(routeName(route));
    else this.verified.delete(routeName(route));
  }
}

interface HostHealth {
  failures: number;
  restsUntilMs: number;
}

const FAILURES_TO_REST = 3;
/** Output tokens below which an answer says nothing about throughput. */
const LEAST_TOKENS = 16;
const FIRST_REST_MS = 2_000;
const LONGEST_REST_MS = 60_000;

const routeName = ({ host, model }: Route): string => `${host.id}\n${model}`;
