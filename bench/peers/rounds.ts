/**
 * The measures that are repeated. Every round visits every peer, so that whatever else the machine does at
 * the time falls on all of them alike; what is reported is the median over rounds.
 */
import { type Quantiles, quantiles, spread } from "../figures.ts";
import { cpuOf, type Load, served, type Timings } from "../load.ts";
import { AGENT_LOADS, agentBodies } from "./agents.ts";
import { faultOf, hostPrefix, KINDS, type KindRequest, requestOf, toolFaultOf } from "./kinds.ts";
import { PACES, type Subject } from "./peer.ts";
import type { PeerResult } from "./result.ts";

export interface RoundSize {
  /** Duration of every unstreamed load, s. */
  readonly seconds: number;
  readonly streams: number;
  /** How often each of the paced streams is repeated in a round. */
  readonly passes: number;
  readonly connections: readonly number[];
  /** Absent: all. */
  readonly parts?: readonly Part[];
  /** Load before anything is measured; absent: long enough for compilers. */
  readonly warmUpSeconds?: number;
}

/** What a round measures. */
export const PARTS = [
  "requests",
  "latency",
  "streams",
  "kinds",
  "first bytes",
  "half load",
  "agents",
] as const;
export type Part = (typeof PARTS)[number];

export class Rounds {
  readonly #subject: Subject;
  readonly #size: RoundSize;
  readonly #cpu: number[] = [];
  readonly #perSecond: number[] = [];
  readonly #latency = new Map<number, Quantiles[]>();
  readonly #perEvent: number[] = [];
  readonly #gaps: Quantiles[] = [];
  readonly #steady: number[] = [];
  readonly #thinking: number[] = [];
  readonly #half: Quantiles[] = [];
  readonly #burstsPerSecond: number[] = [];
  readonly #kinds = new Map<string, number[]>();
  readonly #assembled: number[] = [];
  readonly #agents = new Map<string, number[]>();

  constructor(subject: Subject, size: RoundSize) {
    this.#subject = subject;
    this.#size = size;
  }

  /**
   * So that compilers have seen the load, and are done: what is measured is a process that has run for a
   * while.
   */
  async warmUp(): Promise<void> {
    const { streams, warmUpSeconds = WARM_UP_SECONDS } = this.#size;
    await this.#load("burst", false, { connections: 64, seconds: warmUpSeconds });
    await this.#load("burst", true, { connections: 64, seconds: warmUpSeconds / 2 });
    await this.#load("steady", true, { connections: streams, requests: WARM_UP_STREAMS * streams });
    if (!(this.#size.parts ?? PARTS).includes("kinds")) return;
    await this.kinds();
    this.#kinds.clear();
    this.#assembled.length = 0;
  }

  async round(): Promise<void> {
    for (const part of this.#size.parts ?? PARTS) await this.#part(part);
  }

  #part(part: Part): Promise<void> {
    switch (part) {
      case "requests":
        return this.saturated();
      case "latency":
        return this.#latencies();
      case "streams":
        return this.streams();
      case "kinds":
        return this.kinds();
      case "first bytes":
        return this.#firstBytes();
      case "half load":
        return this.#halfLoad();
      case "agents":
        return this.#agentRequests();
    }
  }

  /** CPU an event of other kinds of streams, and of a whole answer that the host streams in 500. */
  async kinds(): Promise<void> {
    const { process } = this.#subject;
    const { streams } = this.#size;
    for (const kind of KINDS) {
      const request = requestOf(this.#subject, kind);
      if (request === null || this.#unable.has(kind.name)) continue;
      const fault = await faultOf(request, kind);
      if (fault !== null) {
        this.#unable.add(kind.name);
        console.error(`no streams of ${kind.name}: ${fault}`);
        continue;
      }
      const plan = { body: request.body, connections: streams, requests: streams };
      const { us } = await cpuOf(process, () => served(request.target, plan));
      push(this.#kinds, kind.name, us / (streams * EVENTS));
    }
    if (this.#subject.assembles !== true) return;
    const plan = { connections: 16, seconds: this.#size.seconds };
    const { result, us } = await cpuOf(process, () => this.#load("long", false, plan, 2_000));
    this.#assembled.push(us / result.count);
  }

  readonly #unable = new Set<string>();

  /** CPU a request, and requests a second. */
  async saturated(): Promise<void> {
    const { process } = this.#subject;
    const plan = { connections: 64, seconds: 2 * this.#size.seconds };
    const { result, us } = await cpuOf(process, () => this.#load("burst", false, plan));
    this.#cpu.push(us / result.count);
    this.#perSecond.push(result.count / result.seconds);
  }

  async #latencies(): Promise<void> {
    for (const connections of this.#size.connections) {
      const { totalMs } = await this.#load("burst", false, { connections, seconds: this.#size.seconds });
      const taken = this.#latency.get(connections) ?? [];
      this.#latency.set(connections, [...taken, quantiles(totalMs)]);
    }
  }

  /** CPU an event, and the gaps between events. */
  async streams(): Promise<void> {
    const { process } = this.#subject;
    const { streams, passes } = this.#size;
    const plan = { connections: streams, requests: passes * streams };
    const { result, us } = await cpuOf(process, () => this.#load("steady", true, plan));
    this.#perEvent.push(us / (plan.requests * EVENTS));
    this.#gaps.push(quantiles(result.gapMs));
  }

  async #firstBytes(): Promise<void> {
    const plan = { connections: 64, requests: 64 * this.#size.passes };
    this.#steady.push(...(await this.#load("steady", true, plan)).firstByteMs);
    const { firstByteMs } = await this.#load("thinking", true, plan);
    this.#thinking.push(...firstByteMs.map((ms) => ms - THINKING_MS));
  }

  async #halfLoad(): Promise<void> {
    const { seconds } = this.#size;
    const full = await this.#load("burst", true, { connections: 64, seconds });
    const perSecond = full.count / full.seconds;
    const half = await this.#load("burst", true, {
      connections: 64,
      seconds: 2 * seconds,
      perSecond: perSecond / 2,
    });
    this.#burstsPerSecond.push(perSecond);
    this.#half.push(quantiles(half.firstByteMs));
  }

  /** CPU of an answer to what agents send. */
  async #agentRequests(): Promise<void> {
    const { process, prefix, target, reaches } = this.#subject;
    const { streams, seconds } = this.#size;
    for (const { name, pace, host, bytes, stream, connections } of AGENT_LOADS) {
      const reached = host === "chat.completions" ? target : (reaches?.("chat.completions", host) ?? null);
      // Nobody is given more than it is measured with elsewhere.
      if (reached === null || connections > streams) continue;
      const body = agentBodies(prefix + hostPrefix(host) + pace, bytes, stream);
      if (stream && !(await this.#tellsAll(name, { target: reached, body: body[0]! }))) continue;
      const plan = { body, connections, ...(stream ? { requests: connections } : { seconds }) };
      const { result, us } = await cpuOf(process, () => served(reached, plan));
      push(this.#agents, name, us / result.count);
    }
  }

  /** Whether a stream comes whole through the peer, its tool call included. */
  async #tellsAll(name: string, request: KindRequest): Promise<boolean> {
    if (this.#unable.has(name)) return false;
    const fault = await toolFaultOf(request);
    if (fault === null) return true;
    this.#unable.add(name);
    console.error(`no ${name}: ${fault}`);
    return false;
  }

  #load(pace: keyof typeof PACES, stream: boolean, plan: Omit<Load, "body">, most = 100): Promise<Timings> {
    const { target, prefix } = this.#subject;
    return served(target, { ...plan, body: bodyOf(prefix, pace, stream, QUESTION, most) });
  }

  /** CPU, µs, a value a round. */
  costs(): { readonly request: readonly number[]; readonly event: readonly number[] } {
    return { request: this.#cpu, event: this.#perEvent };
  }

  result(): Omit<PeerResult, "name" | "version" | "settings" | "memory" | "faults"> {
    return {
      usPerRequest: spread(this.#cpu),
      usPerEvent: spread(this.#perEvent),
      streams: this.#size.streams,
      requestsPerSecond: spread(this.#perSecond),
      latencyMs: Object.fromEntries([...this.#latency].map(([count, taken]) => [count, middle(taken)])),
      firstByteMs: {
        steady: quantiles(this.#steady.sort((a, b) => a - b)),
        thinking: quantiles(this.#thinking.sort((a, b) => a - b)),
        halfLoad: { ...middle(this.#half), streamsPerSecond: spread(this.#burstsPerSecond).median },
      },
      gapMs: middle(this.#gaps),
      usPerEventOf: Object.fromEntries([...this.#kinds].map(([name, values]) => [name, spread(values)])),
      usPerAgentsAnswer: Object.fromEntries(
        [...this.#agents].map(([name, values]) => [name, spread(values)]),
      ),
      usPerAssembled: this.#assembled.length === 0 ? null : spread(this.#assembled),
    };
  }
}

/**
 * A just-in-time compiler works next to the first thousands of requests, and its CPU would be counted as
 * theirs.
 */
const WARM_UP_SECONDS = 4;
/** At 64 events each, as many as a compiler wants to see too. */
const WARM_UP_STREAMS = 2;
const THINKING_MS = 300;
/** Deltas a stream; what its request, its head and its end cost is in the figure too. */
const EVENTS = 64;

function push(map: Map<string, number[]>, name: string, value: number): void {
  map.set(name, [...(map.get(name) ?? []), value]);
}

const middle = (taken: readonly Quantiles[]): Quantiles => ({
  p50: spread(taken.map(({ p50 }) => p50)).median,
  p99: spread(taken.map(({ p99 }) => p99)).median,
});

export const bodyOf = (
  prefix: string,
  pace: keyof typeof PACES,
  stream: boolean,
  text = QUESTION,
  most = 100,
): string =>
  JSON.stringify({
    model: prefix + PACES[pace],
    ...(stream ? { stream } : {}),
    max_tokens: most,
    messages: [{ role: "user", content: text }],
  });

const QUESTION = "What is the capital of Norway? Answer in one word.";
