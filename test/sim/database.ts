import { Database } from "bun:sqlite";
import { LedgerStore } from "../../src/store/ledger-store.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import type { Random } from "./random.ts";

/**
 * The production store on SQLite in memory. The database's own durability is taken as it is documented: what is
 * checkpointed, or committed durably, survives a power cut; later commits survive up to some point, in order.
 */
export class SimulatedDatabase {
  private static empty: Uint8Array | null = null;
  private db: Database;
  /** States that a power cut may leave, oldest first; the first is the one that is surely there. */
  private states: Uint8Array[] = [];
  store: LedgerStore;

  constructor() {
    SimulatedDatabase.empty ??= emptyDatabase();
    this.db = Database.deserialize(SimulatedDatabase.empty);
    this.store = this.opened();
    this.durable();
  }

  crash(random: Random, kind: "process" | "power"): void {
    const image = kind === "process" ? this.db.serialize() : random.pick(this.states);
    this.db.close();
    this.db = Database.deserialize(image);
    this.store = this.opened();
    this.durable();
  }

  private opened(): LedgerStore {
    const store = new LedgerStore(this.db);
    const apply = store.apply.bind(store);
    store.apply = (batch) => {
      apply(batch);
      if (this.states.length < MOST_STATES) this.states.push(this.db.serialize());
    };
    store.checkpoint = () => this.durable();
    const credit = store.credit.bind(store);
    store.credit = (entry) => {
      const result = credit(entry);
      this.durable();
      return result;
    };
    return store;
  }

  private durable(): void {
    this.states = [this.db.serialize()];
  }
}

/** Images kept for a power cut between two checkpoints; the rest of the commits counts as not on the disk yet. */
const MOST_STATES = 4;

function emptyDatabase(): Uint8Array {
  const db = new Database(":memory:", { strict: true });
  for (const migration of MIGRATIONS) db.run(migration);
  const image = db.serialize();
  db.close();
  return image;
}
