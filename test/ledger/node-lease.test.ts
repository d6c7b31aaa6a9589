import { beforeEach, expect, test } from "bun:test";
import {
  EpochFenced,
  type KeyringChange,
  LEASE_MS,
  NodeLease,
  type Registry,
} from "../../src/ledger/node-lease.ts";
import { ManualClock } from "../fakes/clock.ts";
import { Random } from "../sim/random.ts";

let clock: ManualClock;
let registry: FarRegistry;
let lease: NodeLease;
/** What goes back because limits were lowered; ended by the test. */
let releases: { readonly through: number; end(failure?: Error): void }[];
/** The latest change for which everything has gone back. */
let released: number;
let failures: unknown[];

beforeEach(begin);

function begin(): void {
  clock = new ManualClock();
  registry = new FarRegistry();
  releases = [];
  released = 0;
  failures = [];
  const life = { epoch: 1, seen: 0 };
  lease = new NodeLease(registry, clock, "n0", life, {
    changed: (changes) =>
      new Promise((resolve, reject) => {
        const through = changes.at(-1)!.version;
        releases.push({
          through,
          end(failure) {
            releases.shift();
            if (failure !== undefined) return reject(failure);
            released = through;
            resolve();
          },
        });
      }),
    lapsed() {},
    failed: (error) => failures.push(error),
  });
}

test("nothing is usable before the first renewal, and then for ten seconds from when it was asked for", async () => {
  void lease.hurry();
  await quiet();
  registry.arrive();
  clock.advance(4_000);
  expect(lease.usable()).toBe(false);
  registry.answer();
  await quiet();
  expect(lease.leaseLeftMs).toBe(LEASE_MS - 4_000);
  clock.advance(LEASE_MS - 4_000);
  expect(lease.usable()).toBe(false);
});

test("a renewal from before a change comes back after it: the change waits until what was granted has gone back", async () => {
  void lease.hurry();
  await quiet();
  registry.arrive();
  const version = registry.note();
  void lease.hurry();
  registry.answer();
  await quiet();
  expect(lease.usable()).toBe(true);
  await renewOnRequest();
  expect(releases.length).toBe(1);
  expect(registry.waiting).toBe(0);
  expect(await registry.unseen(version)).toBe(true);
  releases[0]!.end();
  await quiet();
  expect(await registry.unseen(version)).toBe(true);
  await renewOnRequest();
  expect(await registry.unseen(version)).toBe(false);
});

test("calls during a renewal cause one more, and nobody renews after that", async () => {
  void lease.hurry();
  await quiet();
  void lease.hurry();
  void lease.hurry();
  await renewOnRequest();
  expect(registry.waiting).toBe(1);
  await renewOnRequest();
  expect(registry.waiting).toBe(0);
});

test("who was without a lease uses nothing when what was granted has gone back, but only once the lease is renewed after that", async () => {
  await renew();
  clock.advance(LEASE_MS);
  const version = registry.note();
  expect(await registry.unseen(version)).toBe(false);
  await renew();
  expect(lease.usable()).toBe(false);
  releases[0]!.end();
  await quiet();
  expect(lease.usable()).toBe(false);
  await renewOnRequest();
  expect(lease.usable()).toBe(true);
});

test("what could not be given back leaves the change unnoticed, and is given back before the next renewal", async () => {
  await renew();
  const version = registry.note();
  await renew();
  releases[0]!.end(new Error("no answer"));
  clock.advance(LEASE_MS);
  await quiet();
  await renew();
  expect(lease.usable()).toBe(false);
  expect(releases.map(({ through }) => through)).toEqual([version]);
});

test("a renewal that comes back after the node has stopped changes nothing", async () => {
  void lease.hurry();
  await quiet();
  registry.arrive();
  const stopped = lease.stop();
  registry.answer();
  await quiet();
  await stopped;
  expect(lease.usable()).toBe(false);
});

test("who has left asks for no lease any more, whatever changes", async () => {
  await renew();
  await lease.leave();
  registry.note();
  void lease.hurry();
  await quiet();
  expect(registry.waiting).toBe(0);
});

test("another life of the node ends what this one may use, at once", async () => {
  await renew();
  registry.isFenced = true;
  await renew();
  expect(lease.usable()).toBe(false);
  expect(failures[0]).toBeInstanceOf(EpochFenced);
});

const WALKS = 300;
const MOVES = 100;

test("in whatever order calls arrive, come back or are lost, nothing from before a change is usable once that was answered", async () => {
  let [usable, overtaken] = [0, 0];
  for (let seed = 1; seed <= WALKS; seed++) {
    begin();
    const random = new Random(seed);
    void lease.follow();
    for (let move = 0; move < MOVES; move++) {
      await quiet();
      random.pick(MOVES_OF_ANYBODY)(random);
      if (registry.answered > released) overtaken += 1;
      if (!lease.usable()) continue;
      usable += 1;
      if (registry.answered > released)
        throw new Error(`seed ${seed}, move ${move}: change ${registry.answered} was answered`);
    }
    void lease.stop();
  }
  expect(usable).toBeGreaterThan(WALKS * 10);
  // By those whose lease was over.
  expect(overtaken).toBeGreaterThan(WALKS);
});

const MOVES_OF_ANYBODY: readonly ((random: Random) => void)[] = [
  (random) => random.chance(0.3) && registry.note(),
  () => registry.arrive(),
  () => registry.answer(),
  (random) => random.chance(0.2) && registry.lose(),
  (random) => releases[0]?.end(random.chance(0.2) ? new Error("no answer") : undefined),
  () => void lease.hurry(),
  (random) => clock.advance(random.below(random.chance(0.2) ? 12_000 : 1_500)),
];

async function renew(): Promise<void> {
  void lease.hurry();
  await quiet();
  await renewOnRequest();
}

/** What the node has asked arrives, and comes back. */
async function renewOnRequest(): Promise<void> {
  registry.arrive();
  registry.answer();
  await quiet();
}

const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** As its node knows it from afar: what is asked arrives, and comes back, when the test says so. */
class FarRegistry implements Registry {
  isFenced = false;
  private readonly node = { seen: 0, leaseUntilMs: Number.NEGATIVE_INFINITY };
  private latest = 0;
  /** Given up ones may still arrive. */
  private calls: Call[] = [];

  /** A limit is lowered. */
  note(): number {
    this.latest += 1;
    return this.latest;
  }

  /** The latest change that its owner saw confirmed. */
  get answered(): number {
    const { seen, leaseUntilMs } = this.node;
    return leaseUntilMs > clock.elapsedMs() ? seen : this.latest;
  }

  /** Calls that the node waits for. */
  get waiting(): number {
    return this.calls.filter(({ isGivenUp }) => !isGivenUp).length;
  }

  renew(_name: string, _epoch: number, seen: number): Promise<readonly KeyringChange[]> {
    return new Promise((resolve, reject) => {
      this.calls.push({ seen, resolve, reject, answer: null, isGivenUp: false });
    });
  }

  arrive(): void {
    const call = this.calls.find(({ answer }) => answer === null);
    if (call !== undefined) call.answer = this.renewed(call);
  }

  answer(): void {
    const call = this.calls.find(({ answer }) => answer !== null);
    if (call === undefined) return;
    this.calls = this.calls.filter((one) => one !== call);
    if (!call.isGivenUp) call.answer!();
  }

  lose(): void {
    const call = this.calls.find(({ isGivenUp }) => !isGivenUp);
    if (call === undefined) return;
    call.isGivenUp = true;
    call.reject(new Error("no answer"));
  }

  async unseen(version: number): Promise<boolean> {
    return version > this.answered;
  }

  async leave(): Promise<void> {
    this.isFenced = true;
  }

  private renewed({ seen, resolve, reject }: Call): () => void {
    if (this.isFenced) return () => reject(new EpochFenced("n0"));
    const changes: KeyringChange[] = [];
    for (let version = seen + 1; version <= this.latest; version++)
      changes.push({ version, balance: null, key: null, counters: [""] });
    if (changes.length === 0) Object.assign(this.node, { seen, leaseUntilMs: clock.elapsedMs() + LEASE_MS });
    return () => resolve(changes);
  }
}

interface Call {
  readonly seen: number;
  resolve(changes: readonly KeyringChange[]): void;
  reject(error: Error): void;
  answer: (() => void) | null;
  isGivenUp: boolean;
}
