import type { Database } from "bun:sqlite";
import type { AccountDeps } from "../../src/customers/accounts/deps.ts";
import type { Mail } from "../../src/customers/accounts/mail.ts";
import type { KeyDeps, KeySettings } from "../../src/customers/keys/deps.ts";
import { Keyring } from "../../src/customers/keys/keyring.ts";
import { SqlAccountStore } from "../../src/store/customers/account-store.ts";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import type { NotedChange } from "../../src/store/nodes/changes.ts";
import { committing } from "../../src/store/nodes/keeper.ts";
import { KeeperDatabase } from "../../src/store/nodes/keeper-node-store.ts";
import { type Clock, pause } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import type { VirtualClock } from "./clock.ts";
import type { Random } from "./random.ts";

/** One life of a process of the gateway: what its endpoints work with. */
export interface Process {
  readonly clock: Clock;
  readonly keys: KeyDeps;
  readonly accounts: AccountDeps;
  end(): void;
}

/**
 * Processes on one database, each with the production stores and a keyring of its own. One alone writes the database
 * itself. Several have a keeper, which commits what they decide, and each notices a change before it is answered.
 * Everything takes some time, in which anything else may come between; a process that ends answers nobody any more.
 */
export class Processes {
  readonly all: Process[];
  /** By version, what resolves once every process has noticed it. */
  private readonly noticed: Promise<unknown>[] = [];
  private readonly notices = new Map<Process, (changes: readonly NotedChange[]) => Promise<void>>();
  private readonly keeper;

  constructor(
    private readonly db: Database,
    private readonly time: VirtualClock,
    private readonly random: Random,
    count: number,
    private readonly post: (mail: Mail) => void,
  ) {
    const { clock } = time.life();
    const registry = { note: (changes: readonly NotedChange[]) => this.note(changes) };
    const commit = committing(new SqliteDatabase(db), registry, () => this.someTime(clock));
    this.keeper =
      count === 1
        ? null
        : async (...args: Parameters<typeof commit>) => {
            await this.someTime(clock);
            return commit(...args);
          };
    this.all = Array.from({ length: count }, () => this.begin());
  }

  /** Ends one, and what it has under way; another one takes its place. */
  crash(): void {
    const at = this.random.below(this.all.length);
    this.all[at]!.end();
    this.all[at] = this.begin();
  }

  private note(changes: readonly NotedChange[]): number {
    const all = [...this.notices.values()].map((notice) => notice(changes));
    return this.noticed.push(Promise.all(all)) - 1;
  }

  private begin(): Process {
    const { clock, end } = this.time.life();
    const { random, keeper } = this;
    const stores = keeper === null ? this.storesAlone(clock) : this.storesOfNode(clock, keeper);
    const store = this.slow(stores.keys, clock);
    const keyring = new Keyring(store);
    const over = Promise.withResolvers<void>();
    const process: Process = {
      clock,
      keys: {
        store,
        keyring,
        clock,
        random: random.bytes,
        settings: () => SETTINGS,
        spendable: { of: () => CREDIT },
      },
      accounts: {
        store: this.slow(stores.accounts, clock),
        clock,
        random: random.bytes,
        contracts: { check: async () => "valid" },
        mailer: { post: this.post },
        links: () => LINKS,
        keyring,
      },
      end: () => {
        end();
        this.notices.delete(process);
        over.resolve();
      },
    };
    if (keeper !== null)
      this.notices.set(process, (changes) => {
        const noticing = this.someTime(clock).then(() =>
          keyring.forget(
            changes.flatMap(({ key }) => (key === null ? [] : [{ hash: key }])),
            changes.flatMap(({ balance }) => balance ?? []),
          ),
        );
        return Promise.race([noticing, over.promise]);
      });
    return process;
  }

  private storesAlone(clock: Clock) {
    const durable = () => this.someTime(clock);
    return {
      keys: new SqlKeyStore(new SqliteDatabase(this.db, durable), clock),
      accounts: new SqlAccountStore(new SqliteDatabase(this.db, durable), clock),
    };
  }

  private storesOfNode(clock: Clock, keeper: NonNullable<Processes["keeper"]>) {
    const commit: typeof keeper = async (...args) => {
      const committed = await keeper(...args);
      await this.someTime(clock);
      return committed;
    };
    const database = new KeeperDatabase(this.db, { commit }, async (version) => {
      await this.noticed[version];
    });
    return {
      keys: new SqlKeyStore(database, clock),
      accounts: new SqlAccountStore(database, clock),
    };
  }

  /** The same, with time before each answer and after it. */
  private slow<T extends object>(store: T, clock: Clock): T {
    return new Proxy(store, {
      get: (target, name) => {
        const method = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return async (...args: unknown[]) => {
          await this.someTime(clock);
          const answer = await method.apply(target, args);
          await this.someTime(clock);
          return answer;
        };
      },
    });
  }

  private someTime(clock: Clock): Promise<void> {
    return pause(clock, this.random.below(MAX_MS));
  }
}

const MAX_MS = 20;
/** Enough for a balance to make as many keys as any other. */
const CREDIT = 1 as NanoUsd;
const NONE = { rpmLimit: null, tpmLimit: null, dailyLimit: null, monthlyLimit: null };
const SETTINGS: KeySettings = {
  defaults: { accountless: NONE, account: NONE },
  graceMs: 86_400_000,
  contact: null,
};
const LINKS = { baseUrl: "http://g.test", dashboardUrl: "http://g.test/dashboard", contact: null };
