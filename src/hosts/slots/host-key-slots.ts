import type { HostKey } from "../../catalog/catalog.ts";
import { RateWindow } from "../../ledger/limits/rate-window.ts";
import { boundedCache } from "../../units/bounded-cache.ts";
import type { Clock } from "../../units/clock.ts";

/**
 * The keys of a host that has several, each with its own limits. Providers keep prompt caches by organization or key, so a
 * conversation stays with one key: every process computes the same first choice from the conversation and the weights
 * (rendezvous hashing: adding or removing a key moves only that key's conversations). If that key has no room, the next one
 * serves the conversation, and this process remembers it. A refused key is retired until its text changes; a key that has
 * reached its rate rests. Neither is tried while another key is usable.
 */
export class HostKeySlots {
  private readonly states = new Map<string, KeyState>();
  private inOrder: readonly KeyState[] = [];
  private keys: readonly HostKey[] | null = null;
  /** Conversations that moved from their first choice. */
  private readonly moved = boundedCache<number, KeyState>(MAX_MOVED);
  /** Replaces the conversation of requests that have none. */
  private drawn = 0;

  constructor(
    readonly clock: Pick<Clock, "now" | "elapsedMs">,
    /** Processes of this machine, which divide the limits evenly. */
    private readonly processes: number,
    readonly onRetired: (key: string, detail: string) => void,
  ) {}

  /** Applies a configuration's keys; the state of keys that stay is kept. */
  use(keys: readonly HostKey[]): void {
    if (keys === this.keys) return;
    this.keys = keys;
    for (const name of this.states.keys())
      if (!keys.some((key) => key.name === name)) this.states.delete(name);
    this.inOrder = keys.map((key) => {
      const state = this.states.getOrInsertComputed(key.name, () => new KeyState(key));
      state.key = key;
      return state;
    });
  }

  /** A key with room for the request; null if no usable key has room. */
  take(request: KeyRequest): KeyLease | null {
    const nowMs = this.clock.elapsedMs();
    const able = this.able(request.model, nowMs);
    const { conversation, tokens } = request;
    const order = this.preferred(able, conversation);
    const moved = conversation === null ? undefined : this.moved.get(conversation);
    const hasRoom = (one: KeyState) => this.hasRoom(one, tokens, nowMs);
    const state = moved !== undefined && able.includes(moved) && hasRoom(moved) ? moved : order.find(hasRoom);
    if (state === undefined) return null;
    if (conversation !== null) {
      if (state === order[0] && able.length === this.inOrder.length) this.moved.delete(conversation);
      else this.moved.set(conversation, state);
    }
    return new KeyLease(this, state, request, nowMs);
  }

  /** Whether a key is neither retired nor resting. */
  canServe(model: string): boolean {
    const nowMs = this.clock.elapsedMs();
    return this.inOrder.some((state) => !state.isRetired && state.restMs(model, nowMs) === 0);
  }

  /** Milliseconds until the first key has rested; null if none rests. */
  restMs(model: string): number | null {
    const nowMs = this.clock.elapsedMs();
    const rests = this.inOrder.filter(({ isRetired }) => !isRetired).map((one) => one.restMs(model, nowMs));
    return rests.length === 0 ? null : Math.min(...rests);
  }

  /** For the metrics and the operator. */
  loads(): KeyLoad[] {
    const nowMs = this.clock.elapsedMs();
    return this.inOrder.map((state) => ({
      name: state.key.name,
      state: state.isRetired ? "retired" : state.isResting(nowMs) ? "resting" : "usable",
      inFlight: state.inFlight,
      refused: state.isRetired ? { at: state.refused!.at, detail: state.refused!.detail } : null,
    }));
  }

  /** Keys that are neither retired nor rest; else keys that rest; else all, at the pace of the host's circuit. */
  private able(model: string, nowMs: number): readonly KeyState[] {
    const known = this.inOrder.filter(({ isRetired }) => !isRetired);
    const rested = known.filter((state) => state.restMs(model, nowMs) === 0);
    return rested.length > 0 ? rested : known.length > 0 ? known : this.inOrder;
  }

  /** The same in every process. */
  private preferred(able: readonly KeyState[], conversation: number | null): readonly KeyState[] {
    const seed = conversation ?? this.drawn++;
    return able
      .map((state) => ({ state, distance: distanceOf(seed, state.key) }))
      .sort((a, b) => a.distance - b.distance)
      .map(({ state }) => state);
  }

  private hasRoom({ key, inFlight, requests, tokens }: KeyState, size: number, nowMs: number): boolean {
    if (key.maxConcurrent !== undefined && inFlight >= this.part(key.maxConcurrent)) return false;
    if (key.rpm !== undefined && requests.taken(nowMs) + 1 > this.part(key.rpm)) return false;
    if (key.tpm === undefined) return true;
    const taken = tokens.taken(nowMs);
    // A request larger than the limit goes to an idle key: the host decides.
    return taken === 0 || taken + size <= this.part(key.tpm);
  }

  private part(limit: number): number {
    return Math.max(1, Math.floor(limit / this.processes));
  }
}

export interface KeyRequest {
  readonly conversation: number | null;
  /** The model's name at the host; free requests have a name of their own, because their limits are not the paid ones'. */
  readonly model: string;
  /** Tokens of the prompt, plus the output ceiling if the request names one. */
  readonly tokens: number;
}

/** A key's state, as processes report it to each other. */
export interface KeyLoad {
  readonly name: string;
  readonly state: "usable" | "resting" | "retired";
  readonly inFlight: number;
  readonly refused: { readonly at: number; readonly detail: string } | null;
}

export class KeyLease {
  private isOpen = true;
  /** The text that the host is sent. */
  private readonly text: string;
  private readonly taken: { readonly requests: number; readonly tokens: number };
  private counted: number;

  constructor(
    private readonly keys: HostKeySlots,
    private readonly state: KeyState,
    private readonly request: KeyRequest,
    private readonly startedMs: number,
  ) {
    this.text = state.key.secret.text;
    this.counted = request.tokens;
    state.inFlight += 1;
    this.taken = {
      requests: state.requests.take(1, startedMs),
      tokens: state.tokens.take(request.tokens, startedMs),
    };
  }

  get model(): string {
    return this.request.model;
  }

  get key(): HostKey {
    return this.state.key;
  }

  refused(detail: string): void {
    const { state, text } = this;
    const { clock, onRetired } = this.keys;
    if (text !== state.key.secret.text || state.isRetired) return;
    state.refused = { text, atMs: clock.elapsedMs(), at: clock.now(), detail };
    onRetired(state.key.name, detail);
  }

  /** The key has reached a limit of one model, or of all (null); the host asks to wait for `ms`. */
  limited(model: string | null, ms: number | null): void {
    this.state.rested(model, ms, this.startedMs, this.keys.clock.elapsedMs());
  }

  served(): void {
    this.state.served(this.request.model, this.text, this.startedMs);
  }

  /** Whether another key can serve the request now. */
  get hasOther(): boolean {
    return this.keys.canServe(this.request.model);
  }

  get restMs(): number | null {
    return this.keys.restMs(this.request.model);
  }

  /** The host's usage replaces the estimate. */
  used(tokens: number): void {
    this.state.tokens.adjust(this.taken.tokens, tokens - this.counted, this.keys.clock.elapsedMs());
    this.counted = tokens;
  }

  release(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.state.inFlight -= 1;
  }

  /** No host was called: nothing counts. */
  giveBack(): void {
    this.release();
    this.state.requests.adjust(this.taken.requests, -1, this.keys.clock.elapsedMs());
    this.used(0);
  }
}

class KeyState {
  inFlight = 0;
  readonly requests = new RateWindow();
  readonly tokens = new RateWindow();
  refused: { text: string; atMs: number; at: number; detail: string } | null = null;
  /** By the model's name at the host; "" for all of its models. */
  private readonly rests = new Map<string, KeyRest>();

  constructor(public key: HostKey) {}

  /** A new text has not been refused. */
  get isRetired(): boolean {
    return this.refused !== null && this.refused.text === this.key.secret.text;
  }

  isResting(nowMs: number): boolean {
    for (const { untilMs } of this.rests.values()) if (untilMs > nowMs) return true;
    return false;
  }

  restMs(model: string, nowMs: number): number {
    const untilMs = Math.max(this.rests.get("")?.untilMs ?? 0, this.rests.get(model)?.untilMs ?? 0);
    return Math.max(0, untilMs - nowMs);
  }

  rested(model: string | null, ms: number | null, startedMs: number, nowMs: number): void {
    const name = model ?? "";
    const known = this.rests.get(name);
    // Requests from before the rest bring no news.
    if (known !== undefined && startedMs < known.atMs && ms === null) return;
    const times = (known?.times ?? 0) + 1;
    const restMs = ms ?? Math.min(MAX_REST_MS, FIRST_REST_MS * 2 ** (times - 1));
    const untilMs = Math.max(known?.untilMs ?? 0, nowMs + Math.min(restMs, MAX_REST_MS));
    this.rests.set(name, { untilMs, atMs: nowMs, times });
    if (this.rests.size > MAX_RESTS) this.rests.delete(this.rests.keys().next().value!);
  }

  served(model: string, text: string, startedMs: number): void {
    if (this.refused !== null && text === this.refused.text && startedMs > this.refused.atMs)
      this.refused = null;
    if (this.rests.size === 0) return;
    for (const name of ["", model]) {
      const rest = this.rests.get(name);
      if (rest !== undefined && startedMs >= rest.untilMs) this.rests.delete(name);
    }
  }
}

interface KeyRest {
  readonly untilMs: number;
  readonly atMs: number;
  /** Rests in a row; each is twice as long if the host names no time. */
  readonly times: number;
}

/** The smallest distance wins, in proportion to the weights: an exponential variable divided by the weight. */
function distanceOf(seed: number, { name, weight }: HostKey): number {
  const drawn = (Number(BigInt.asUintN(53, BigInt(Bun.hash(`${seed}\n${name}`)))) + 1) / (2 ** 53 + 2);
  return -Math.log(drawn) / weight;
}

/** Some 2 MB when full. */
const MAX_MOVED = 20_000;
/** Models at one host that have reached a limit. */
const MAX_RESTS = 1_000;
const FIRST_REST_MS = 1_000;
const MAX_REST_MS = 10 * 60_000;
