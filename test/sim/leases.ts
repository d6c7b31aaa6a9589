import type { Key } from "../../src/customers/keys/key.ts";
import type { BalanceWithBudgets } from "../../src/customers/keys/key-store.ts";
import { Keyring } from "../../src/customers/keys/keyring.ts";
import { newApiKey } from "../../src/customers/keys/secret.ts";
import { type KeyringChange, NodeLease, type Registry } from "../../src/ledger/node-lease.ts";
import { SqliteRegistry } from "../../src/store/nodes/sqlite-registry.ts";
import type { Clock } from "../../src/units/clock.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import { hashSecret } from "../../src/units/secret-hash.ts";
import { balanceOf } from "../fakes/balance.ts";
import { keyOf } from "../fakes/key.ts";
import type { VirtualClock } from "./clock.ts";
import { emptyDatabase } from "./database.ts";
import { LEASE_MUTANTS } from "./mutants/nodes.ts";
import type { Random } from "./random.ts";
import { scenario } from "./scenario.ts";
import { type Auditor, check, type Player, type World } from "./world.ts";

const COUNTS = ["accepted", "refused", "unavailable", "revoked", "lowered", "crashes"] as const;

/**
 * Three to five nodes remember keys under leases, over a network that loses, delays and reorders, with
 * partitions, pauses and crashes, while keys are revoked and limits lowered through any of them. Once a revoke was
 * answered, no request that comes may be accepted by any node; once a lower limit was, no node may use what it was
 * granted under the old one; and either is answered soon after the longest lease, whichever node is gone.
 */
export const LEASES = scenario({
  options: { steps: 400 },
  seeds: 1_000,
  mutants: { rules: LEASE_MUTANTS },
  // Unavailable: without a lease.
  counts: COUNTS,
  steps: ({ steps }) => steps,
  fill: (world) => void world.judgedBy(world.joins(new Fleet(world))),
  kept: "Nothing accepted after its revoke was answered.",
});

const START = epochMs(Date.UTC(2026, 10, 21, 12));
const KEYS = 12;
const BALANCE = "bal_1" as BalanceId;
/** Room for as many as a run has. */
const MAX_KEYS = { keys: 1_000, unknown: 1_000 };

class Fleet implements Player, Auditor {
  private readonly random: Random;
  private readonly store: Store;
  private readonly nodes: Node[];
  private readonly secrets: string[] = [];
  /** Keys whose revoke was answered. */
  private readonly answered = new Set<string>();
  /** The latest change of limits that was answered. */
  private lowered = 0;

  constructor(private readonly world: World<(typeof COUNTS)[number]>) {
    this.random = world.random;
    this.store = new Store(world.time.life().clock, world.apart(0));
    this.nodes = Array.from({ length: 3 + this.random.below(3) }, (_, index) => this.birth(`n${index}`));
    for (let index = 0; index < KEYS; index++) this.addKey();
  }

  close(): void {
    this.store.close();
  }

  async act(): Promise<void> {
    const { random } = this;
    const node = random.pick(this.nodes);
    const dice = random.next();
    if (dice < 0.6) this.world.spawn(this.request(node, random.pick(this.secrets)));
    else if (dice < 0.64) void this.revoke(node, random.pick(this.secrets));
    else if (dice < 0.66) node.cut = random.chance(0.4);
    else if (dice < 0.68) node.pauseUntilMs = this.world.time.elapsedMs() + random.below(15_000);
    else if (dice < 0.685) this.crash(node);
    else if (dice < 0.705) void this.lower(node);
    await this.world.pass(random.below(random.chance(0.02) ? 12_000 : 150));
  }

  watch(): void {
    for (const { name, runs, lease, released } of this.nodes)
      check(
        !runs || !lease.usable() || released >= this.lowered,
        `${name} may use what it was granted under limits that were lowered`,
      );
  }

  private addKey(): void {
    const secret = newApiKey(this.random.bytes);
    const id = `key_${this.secrets.length}` as KeyId;
    this.store.keys.set(hashSecret(secret), keyOf({ id, hash: hashSecret(secret) }));
    this.secrets.push(secret);
  }

  private async request(node: Node, secret: string): Promise<void> {
    const dead = this.answered.has(secret);
    await node.awake();
    if (node.dead) return;
    // Where the store did not answer, nobody knows whose key it is.
    const holder = await Promise.resolve(node.keyring.identify(secret, START)).catch(() => undefined);
    await node.awake();
    if (node.dead) return;
    if (holder === undefined || (holder !== null && !node.lease.usable())) this.world.counts.unavailable += 1;
    else if (holder === null) this.world.counts.refused += 1;
    else {
      this.world.counts.accepted += 1;
      check(!dead, `${node.name} accepted a key whose revoke was answered`);
    }
  }

  private async revoke(node: Node, secret: string): Promise<void> {
    if (node.dead || this.answered.has(secret)) return;
    try {
      const version = await node.call(() => this.store.revoke(hashSecret(secret)));
      await node.lease.acknowledged(version);
      await node.awake();
      if (node.dead) return;
      if (!this.answered.has(secret)) {
        this.answered.add(secret);
        this.world.counts.revoked += 1;
        this.addKey();
      }
    } catch {
      // Its caller got a failure, and may try again.
    }
  }

  private async lower(node: Node): Promise<void> {
    try {
      const version = await node.call(() => this.store.lower());
      await node.lease.acknowledged(version);
      await node.awake();
      if (node.dead) return;
      this.lowered = Math.max(this.lowered, version);
      this.world.counts.lowered += 1;
    } catch {
      // Its caller got a failure.
    }
  }

  private crash(node: Node): void {
    this.world.counts.crashes += 1;
    node.die();
    this.nodes[this.nodes.indexOf(node)] = this.birth(node.name);
  }

  private birth(name: string): Node {
    const node = new Node(name, this.store, this.world.time, this.random);
    void node.lease.follow();
    return node;
  }
}

/** The keys, and the registry of a keeper, which dies now and then: another goes on with what is in the database. */
class Store {
  readonly keys = new Map<string, Key>();
  private readonly db = emptyDatabase();
  private registry: SqliteRegistry;

  constructor(
    private readonly clock: Pick<Clock, "now" | "elapsedMs">,
    private readonly random: Random,
  ) {
    this.registry = this.begin();
  }

  close(): void {
    this.db.close();
  }

  join(name: string): { epoch: number; seen: number } {
    return this.registry.join(name);
  }

  renew(name: string, epoch: number, seen: number): readonly KeyringChange[] {
    if (this.random.chance(0.005)) this.registry = this.begin();
    return this.registry.renew(name, epoch, seen);
  }

  unseen(version: number): boolean {
    return this.registry.unseen(version);
  }

  revoke(hash: string): number {
    const key = this.keys.get(hash)!;
    this.keys.set(hash, { ...key, state: "revoked" });
    return this.note({ balance: key.balanceId, key: key.hash, counters: [] });
  }

  lower(): number {
    return this.note({ balance: BALANCE, key: null, counters: ["budget:"] });
  }

  private note(change: Omit<KeyringChange, "version">): number {
    // It dies before it has notified anybody of what it changed: nobody is answered.
    if (this.random.chance(0.05)) {
      this.registry = this.begin();
      throw new Error("no answer");
    }
    return this.registry.note([change]);
  }

  withBudgets(id: BalanceId): BalanceWithBudgets {
    return { balance: balanceOf({ id }), budgets: [] };
  }

  private begin(): SqliteRegistry {
    return new SqliteRegistry(this.db, this.clock, () => {});
  }
}

/** One life of one node. */
class Node {
  readonly keyring: Keyring;
  readonly lease: NodeLease;
  cut = false;
  dead = false;
  pauseUntilMs = 0;
  /** The latest change of limits for which everything has gone back. */
  released: number;
  private readonly life: { clock: Clock; end(): void };

  constructor(
    readonly name: string,
    store: Store,
    private readonly time: VirtualClock,
    private readonly random: Random,
  ) {
    this.life = time.life();
    // Timers that are due while a process is paused fire when it goes on.
    const clock: Clock = {
      ...this.life.clock,
      after: (ms, fire) => this.life.clock.after(ms, () => void this.awake().then(fire)),
    };
    const registry: Registry = {
      renew: (name, epoch, seen) => this.call(() => store.renew(name, epoch, seen)),
      unseen: (version) => this.call(() => store.unseen(version)),
      leave: async () => {},
    };
    const joined = store.join(name);
    this.released = joined.seen;
    this.lease = new NodeLease(registry, clock, name, joined, {
      changed: async (changes) => {
        for (const { balance, key } of changes)
          if (key !== null) this.keyring.forget([{ hash: key }], []);
          else if (balance === null) this.keyring.forgetAll();
        // What was granted goes back, and the Authority has to answer.
        if (changes.some(({ counters }) => counters.length > 0)) await this.call(() => {});
        this.released = changes.at(-1)!.version;
      },
      lapsed: () => this.keyring.forgetAll(),
      failed: () => {},
    });
    this.keyring = new Keyring(
      {
        keyByHash: (hash) => this.call(() => store.keys.get(hash) ?? null),
        balanceWithBudgets: (id) => this.call(() => store.withBudgets(id)),
      },
      MAX_KEYS,
      () => this.lease.usable(),
    );
  }

  get runs(): boolean {
    return !this.dead && this.time.elapsedMs() >= this.pauseUntilMs;
  }

  die(): void {
    this.dead = true;
    this.life.end();
  }

  /** Resolves when the process runs; never for one that was killed. */
  async awake(): Promise<void> {
    while (!this.dead && this.time.elapsedMs() < this.pauseUntilMs) {
      await new Promise<void>((resolve) => {
        this.life.clock.after(this.pauseUntilMs - this.time.elapsedMs(), resolve);
      });
    }
  }

  /** To the store and back. What is lost on either way is given up after a while; it may have happened. */
  call<Result>(act: () => Result): Promise<Result> {
    const { clock } = this.time.life();
    return new Promise((resolve, reject) => {
      const lost = () => this.cut || this.random.chance(0.03);
      clock.after(CALL_MS, () => void this.awake().then(() => reject(new Error("no answer"))));
      clock.after(this.delayMs(), () => {
        if (lost()) return;
        let answer: () => void;
        try {
          const result = act();
          answer = () => resolve(result);
        } catch (error) {
          answer = () => reject(error);
        }
        clock.after(this.delayMs(), () => {
          if (!lost()) void this.awake().then(answer);
        });
      });
    });
  }

  private delayMs(): number {
    return this.random.chance(0.05) ? this.random.below(4_000) : this.random.below(60);
  }
}

const CALL_MS = 5_000;
