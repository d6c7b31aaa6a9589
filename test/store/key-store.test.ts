import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, mock, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBudget } from "../../src/customers/keys/budgets.ts";
import { createKey, setUp } from "../../src/customers/keys/creation.ts";
import type { KeyDeps } from "../../src/customers/keys/deps.ts";
import {
  type BalanceCursor,
  BY_GATEWAY,
  MAX_ENDS_READ,
  type RemovedUnused,
  SWEPT_AT_ONCE,
} from "../../src/customers/keys/key-store.ts";
import { Keyring } from "../../src/customers/keys/keyring.ts";
import { type Actor, OPERATOR } from "../../src/customers/keys/root.ts";
import { revoke, rotate } from "../../src/customers/keys/rotation.ts";
import { Runs } from "../../src/customers/keys/runs.ts";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { DAY_MS } from "../../src/units/clock.ts";
import { StoreContended } from "../../src/units/errors/bookkeeping.ts";
import { refuse, refused } from "../../src/units/errors/refusal.ts";
import type { SuspensionReason } from "../../src/units/errors/suspension.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";
import { hashSecret } from "../../src/units/secret-hash.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";

const LIMITS = { rpmLimit: 1, tpmLimit: 2, dailyLimit: 3 as NanoUsd, monthlyLimit: null };

let folder: string;
let clock: ManualClock;
let close: () => void;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "keys-"));
  clock = new ManualClock();
});
afterEach(() => {
  close();
  rmSync(folder, { recursive: true });
});

/** A process's view of the database: opened again, it knows only what is on disk. */
function openDeps(): KeyDeps {
  const db = openDatabase(join(folder, "gateway.sqlite"));
  close = () => db.close();
  const store = new SqlKeyStore(new SqliteDatabase(db), clock);
  const settings = () => ({
    defaults: { accountless: LIMITS, account: LIMITS },
    graceMs: DAY_MS,
    contact: null,
  });
  return {
    store,
    keyring: new Keyring(store),
    clock,
    random: systemRandom,
    settings,
    spendable: { of: () => 0 as NanoUsd },
  };
}

const KEY: Actor = { by: "key" };
const ownerOf = ({ recovery }: { recovery: string }): Actor => ({
  by: "recovery",
  secret: hashSecret(recovery),
});

/** The value where no refusal is expected. */
async function done<Value>(
  outcome: Promise<Value>,
): Promise<Exclude<Value, { code: unknown; details: unknown }>> {
  const value = await outcome;
  if (refused(value)) throw new Error(value.message);
  return value as never;
}

describe("what was answered is on disk", () => {
  test("keys, balances and budgets come back as they were", async () => {
    const deps = openDeps();
    const made = await done(setUp(deps, { name: "first", allowedModels: ["a/b"] }));
    const budget = await done(
      createBudget(
        deps,
        made.key.balanceId,
        { name: "team", cap: 9 as NanoUsd, window: "week", perTag: null },
        OPERATOR,
      ),
    );
    const balance = (await deps.store.balanceByRecovery(hashSecret(made.recovery)))!;
    const second = await done(
      createKey(deps, balance, { budgets: ["team"], dailyLimit: null }, ownerOf(made)),
    );
    close();

    const again = openDeps();
    expect(await again.store.keyById(made.key.id)).toEqual(made.key);
    expect(await again.store.keyByHash(hashSecret(second.secret))).toEqual(second.key);
    expect(await again.store.balanceWithBudgets(balance.id)).toEqual({ balance, budgets: [budget] });
    expect((await again.keyring.identify(second.secret, clock.now()))!.budgets).toEqual([budget]);
  });

  test("a rotation is whole: both keys or neither", async () => {
    const deps = openDeps();
    const { key } = await done(setUp(deps, {}));
    const other = await done(setUp(deps, {}));
    const clash = deps.store.changeKey(key.id, (present) => ({
      key: { ...present, state: "rotated" },
      successor: { ...present, id: "key_new", hash: other.key.hash },
    }));
    await expect(clash).rejects.toThrow(StoreContended);
    expect(await deps.store.keyById(key.id)).toEqual(key);
  });

  test("a refused change writes nothing", async () => {
    const deps = openDeps();
    const { key } = await done(setUp(deps, {}));
    const no = refuse("invalid_request", "no");
    expect(await deps.store.changeKey(key.id, () => no)).toBe(no);
    expect(await deps.store.addKey(key.balanceId, () => no)).toBe(no);
    expect(await deps.store.putBudget(key.balanceId, "team", 1, () => no)).toBe(no);
    expect(await deps.store.dropBudget(key.balanceId, "team", () => no)).toBe(no);
    expect(await deps.store.keysOf([key.balanceId], 10, null)).toEqual([key]);
  });
});

describe("rotation over time", () => {
  test("the old key works until the 24th hour, then it does not", async () => {
    const deps = openDeps();
    const { key, secret } = await done(setUp(deps, {}));
    const rotated = await done(rotate(deps, key, KEY));
    clock.advance(DAY_MS - 1);
    expect(await deps.keyring.identify(secret, clock.now())).not.toBeNull();
    clock.advance(1);
    expect(await deps.keyring.identify(secret, clock.now())).toBeNull();
    expect(await deps.keyring.identify(rotated.secret, clock.now())).not.toBeNull();
  });

  test("a chain keeps the first key's rotation id, so no cap begins again", async () => {
    const deps = openDeps();
    const { key, recovery } = await done(setUp(deps, {}));
    const second = await done(rotate(deps, key, KEY));
    const third = await done(rotate(deps, second.key, ownerOf({ recovery })));
    expect([second.key.rotationId, third.key.rotationId]).toEqual([key.id, key.id]);
    expect([third.key.rpmLimit, third.key.dailyLimit as number]).toEqual([1, 3]);
  });

  test.each<{ ways: ("key" | "recovery")[] }>([{ ways: ["key", "recovery"] }, { ways: ["recovery", "key"] }])(
    "of two at once, by $ways, only the recovery secret's key works in the end",
    async ({ ways }) => {
      const deps = openDeps();
      const { key, secret, recovery } = await done(setUp(deps, {}));
      const actors = { key: KEY, recovery: ownerOf({ recovery }) };
      const outcomes = await Promise.all(ways.map((way) => rotate(deps, key, actors[way])));
      const secrets = outcomes.map((outcome) => (refused(outcome) ? null : outcome.secret));
      const byRecovery = secrets[ways.indexOf("recovery")]!;
      for (const one of [secret, ...secrets]) {
        const found = one === null ? null : await deps.keyring.identify(one, clock.now());
        expect(found !== null).toBe(one === byRecovery);
      }
    },
  );

  test("a loop that rotates without end is stopped", async () => {
    const deps = openDeps();
    let { key } = await done(setUp(deps, {}));
    for (let turn = 0; turn < 16; turn++) ({ key } = await done(rotate(deps, key, KEY)));
    const stopped = await rotate(deps, key, KEY);
    expect(stopped).toMatchObject({ code: "rate_limited", details: { shouldRetry: false } });
    clock.advance(DAY_MS);
    expect(refused(await rotate(deps, key, KEY))).toBe(false);
  });

  test("a balance without credit has a hundred keys a day, those by rotation included", async () => {
    const deps = openDeps();
    const { key } = await done(setUp(deps, {}));
    const db = new Database(join(folder, "gateway.sqlite"));
    const insert =
      db.query(`INSERT INTO keys (id, hash, prefix, balance_id, lineage, state, created_at, budgets)
      VALUES (?1, ?1, 'or-live-', ?2, ?1, 'revoked', ?3, '')`);
    for (let n = 0; n < 99; n++) insert.run(`key_${n}`, key.balanceId, clock.now());
    db.run("UPDATE balances SET version = version + 1");
    db.close();
    const stopped = await rotate(deps, key, KEY);
    expect(refused(stopped) && stopped.message).toContain("the most is 100. Use keys again");
    const funded = { ...deps, spendable: { of: () => 1 as NanoUsd } };
    expect(refused(await rotate(funded, key, KEY))).toBe(false);
  });

  test("a revoked or expired key cannot be rotated", async () => {
    const deps = openDeps();
    const revoked = await done(setUp(deps, {}));
    await done(revoke(deps, revoked.key.id, KEY));
    const expiring = await done(setUp(deps, { expiresAt: (clock.now() + 5) as never }));
    clock.advance(5);
    for (const { key, recovery } of [revoked, expiring]) {
      for (const by of [KEY, ownerOf({ recovery })]) {
        expect(await rotate(deps, key, by)).toMatchObject({ code: "invalid_request" });
      }
    }
  });
});

describe("an owner's change of a run", () => {
  const CHANGES = [["other limits", { calls: 9 }] as const, ["its end", "end"] as const];

  test.each(CHANGES)("%s: not once the balance has another owner", async (_what, change) => {
    const deps = openDeps();
    const { key, recovery } = await done(setUp(deps, {}));
    const { balanceId } = key;
    const runs = new Runs(deps.store);
    const now = clock.now();
    const request = { spec: { name: "job", cap: null, calls: 5 }, by: key.id, at: now };
    await done(Promise.resolve(runs.join(balanceId, request, async () => 10)));
    const revisedBy = (actor: Actor) => runs.revise(balanceId, "job", now, change, actor);

    const former: Actor[] = [
      { by: "recovery", secret: hashSecret("replaced since") },
      { by: "session", account: "acct_undone" },
    ];
    for (const actor of former) {
      expect(await revisedBy(actor)).toMatchObject({ code: "invalid_request" });
      expect(await deps.store.run(balanceId, "job")).toMatchObject({ calls: 5, usedAt: now, revision: 0 });
    }
    expect(await revisedBy(ownerOf({ recovery }))).toMatchObject({ name: "job", revision: 1 });
  });
});

describe("suspension", () => {
  const suspend = (
    deps: KeyDeps,
    subject: string,
    reason: SuspensionReason | null,
    lifted: SuspensionReason | null = null,
    by = "ops",
  ) => deps.store.suspend({ subject, reason, lifted, at: clock.now(), by, note: null });
  const reasonOf = async (deps: KeyDeps, id: BalanceId) =>
    (await deps.store.balanceWithBudgets(id))!.balance.suspended;

  test("of an account reaches all its balances, and says which", async () => {
    const deps = openDeps();
    const made = await Promise.all([1, 2, 3].map(() => done(setUp(deps, {}))));
    const [first, second, third] = made.map(({ key }) => key.balanceId) as [BalanceId, BalanceId, BalanceId];
    const db = openDatabase(join(folder, "gateway.sqlite"));
    db.run("INSERT INTO accounts (id, created_at) VALUES ('acct_1', 0)");
    db.run("UPDATE balances SET account_id = 'acct_1' WHERE id IN (?, ?)", [first, second]);
    db.close();
    expect((await suspend(deps, "acct_1", "chargeback"))!.balances.toSorted()).toEqual(
      [first, second].toSorted(),
    );
    expect([await reasonOf(deps, first), await reasonOf(deps, third)]).toEqual(["chargeback", null]);
    expect(await suspend(deps, third, "sanctions")).toEqual({ balances: [third], suspended: "sanctions" });
    expect(await suspend(deps, "acct_none", "sanctions")).toBeNull();

    // A balance's own suspension outlasts its account's.
    await suspend(deps, first, "acceptable_use");
    await suspend(deps, "acct_1", null);
    expect([await reasonOf(deps, first), await reasonOf(deps, second)]).toEqual(["acceptable_use", null]);
  });

  test("for several reasons lasts until each is lifted, and the gravest is shown", async () => {
    const deps = openDeps();
    const { balanceId: id } = (await done(setUp(deps, {}))).key;
    const notified: unknown[] = [];
    const then = async (reason: SuspensionReason | null, lifted: SuspensionReason | null = null) =>
      notified.push((await suspend(deps, id, reason, lifted))!.suspended, await reasonOf(deps, id));
    await then("acceptable_use");
    await then("chargeback");
    await then("chargeback");
    await then(null, "sanctions");
    await then(null, "chargeback");
    await then("sanctions");
    await then(null);
    const expected = [
      "acceptable_use",
      "chargeback",
      "chargeback",
      "chargeback",
      "acceptable_use",
      "sanctions",
      null,
    ];
    expect(notified).toEqual(expected.flatMap((one) => [one, one]));
  });

  test("by the operator is not lifted by the gateway, which suspended for the same reason", async () => {
    const deps = openDeps();
    const { balanceId: id } = (await done(setUp(deps, {}))).key;
    const then = async (
      by: string,
      reason: SuspensionReason | null,
      lifted: SuspensionReason | null = null,
    ) => (await suspend(deps, id, reason, lifted, by))!.suspended;
    const dispute = () => then(BY_GATEWAY, "chargeback");
    const won = () => then(BY_GATEWAY, null, "chargeback");
    expect([await dispute(), await won()]).toEqual(["chargeback", null]);
    expect([await dispute(), await then("ops", "chargeback"), await won()]).toEqual(
      Array(3).fill("chargeback"),
    );
    expect([await dispute(), await then("ops", null, "sanctions"), await won()]).toEqual(
      Array(3).fill("chargeback"),
    );
    // The operator lifts both; what they lifted binds nobody later.
    expect([await then("ops", null, "chargeback"), await dispute(), await won()]).toEqual([
      null,
      "chargeback",
      null,
    ]);
    await then("ops", "chargeback");
    expect([await then("ops", null), await dispute(), await won()]).toEqual([null, "chargeback", null]);
  });

  test("is kept with who decided it, when and why", async () => {
    const deps = openDeps();
    const { balanceId: subject } = (await done(setUp(deps, {}))).key;
    const at = clock.now();
    const first = { subject, reason: "sanctions" as const, lifted: null, at, by: "kim", note: "list of May" };
    const second = { subject, reason: null, lifted: "sanctions" as const, at, by: "lee", note: null };
    await deps.store.suspend(first);
    await deps.store.suspend(second);
    expect(await deps.store.suspensions(subject, 10)).toEqual([second, first]);
    expect(await deps.store.suspensions(subject, 1)).toEqual([second]);
  });
});

describe("what nobody used is removed", () => {
  test("but nothing of a balance that is in use, whose requests' ends may not be there yet", async () => {
    const deps = openDeps();
    const { key, recovery } = await done(setUp(deps, {}));
    const balance = (await deps.store.balanceWithBudgets(key.balanceId))!.balance;
    const { key: ended } = await done(createKey(deps, balance, {}, ownerOf({ recovery })));
    await done(revoke(deps, ended.id, OPERATOR));
    clock.advance(DAY_MS);
    const remove = async (isInUse: boolean) => {
      const start = { createdAt: 0 as EpochMs, id: "" };
      await deps.store.removeUnused(clock.now(), start, { isInUse: () => isInUse, forget() {} });
      return (await deps.store.keysOf([balance.id], 10, null)).map(({ id }) => id).toSorted();
    };
    expect(await remove(true)).toEqual([key.id, ended.id].toSorted());
    expect(await remove(false)).toEqual([]);
  });

  test("behind more ended keys that were used than are looked at in one go", async () => {
    const deps = openDeps();
    const { key } = await done(setUp(deps, {}));
    await done(revoke(deps, key.id, OPERATOR));
    const db = openDatabase(join(folder, "gateway.sqlite"));
    const row = db.query("SELECT * FROM keys WHERE id = ?").get(key.id) as Record<string, string>;
    const names = Object.keys(row);
    const insert = db.query(
      `INSERT INTO keys (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
    );
    const end =
      db.query(`INSERT INTO ends (receipt, at, balance_id, key_id, state, charged, written_off, lost,
      counters, allowances, body) VALUES (?, 1, ?, ?, 'settled', 0, 0, 0, '', '', '{}')`);
    for (let n = 0; n < 2 * SWEPT_AT_ONCE; n++) {
      const used = { ...row, id: `key_${n}`, hash: `${n}`.padStart(64, "0") };
      insert.run(...names.map((name) => used[name as keyof typeof used]!));
      end.run(`rcpt_${n}`, key.balanceId, used.id);
    }
    // Whichever way they are found, the unused one is last.
    db.run("DELETE FROM keys WHERE id = ?", [key.id]);
    insert.run(...names.map((name) => row[name]!));
    db.close();
    clock.advance(DAY_MS);
    const here = { isInUse: () => false, forget: mock() };
    const { keys } = await deps.store.removeUnused(clock.now(), { createdAt: 0 as EpochMs, id: "" }, here);
    expect(keys.map(({ hash }) => hash)).toEqual([key.hash]);
    expect(here.forget).toHaveBeenCalledTimes(1);
  });

  test("a few at a time, however many requests their balances had", async () => {
    const deps = openDeps();
    const db = openDatabase(join(folder, "gateway.sqlite"));
    const end =
      db.query(`INSERT INTO ends (receipt, at, balance_id, key_id, state, charged, written_off, lost,
      counters, allowances, body) VALUES (?, 1, ?, ?, 'settled', 0, 0, 0, '', '', '{}')`);
    const unused: string[] = [];
    for (let n = 0; n < 3; n++) {
      const { key, recovery } = await done(setUp(deps, {}));
      const balance = (await deps.store.balanceWithBudgets(key.balanceId))!.balance;
      const { key: ended } = await done(createKey(deps, balance, {}, ownerOf({ recovery })));
      for (const one of [key, ended]) await done(revoke(deps, one.id, OPERATOR));
      db.transaction(() => {
        for (let m = 0; m < MAX_ENDS_READ; m++) end.run(`rcpt_${n}_${m}`, balance.id, key.id);
      })();
      unused.push(ended.hash);
      clock.advance(1);
    }
    db.close();
    const removed: string[][] = [];
    let from: BalanceCursor | null = { createdAt: 0 as EpochMs, id: "" };
    while (from !== null) {
      const some: RemovedUnused = await deps.store.removeUnused(clock.now(), from, {
        isInUse: () => false,
        forget() {},
      });
      removed.push(some.keys.map(({ hash }) => hash));
      from = some.next;
    }
    expect(removed).toEqual([...unused.map((hash) => [hash]), []]);
  });
});

describe("a balance with thousands of keys", () => {
  test("its keys are not counted for one more, unless there may be too many", async () => {
    const deps = { ...openDeps(), spendable: { of: () => 1 as NanoUsd } };
    const made = await done(setUp(deps, {}));
    const { balance } = (await deps.store.balanceWithBudgets(made.key.balanceId))!;
    const make = () => createKey(deps, balance, {}, ownerOf(made));
    await done(make());
    const db = new Database(join(folder, "gateway.sqlite"));
    const insert =
      db.query(`INSERT INTO keys (id, hash, prefix, balance_id, lineage, state, created_at, budgets)
      VALUES (?1, ?1, 'or-live-', ?2, ?1, 'active', ?3, '')`);
    db.transaction(() => {
      for (let n = 0; n < 9_998; n++) insert.run(`key_${n}`, balance.id, clock.now() - 2 * DAY_MS);
    })();
    // It knows of 2, and does not look.
    await done(make());
    // Another change of the balance says that there may be others.
    db.run("UPDATE balances SET version = version + 1");
    const full = await make();
    expect(refused(full) && full.message).toContain("10001 live keys");
    db.run("UPDATE keys SET state = 'revoked' WHERE id IN ('key_0', 'key_1')");
    await done(make());
    // What it knows is too many now, so it counts.
    const again = await make();
    expect(refused(again) && again.message).toContain("10000 live keys");
    db.run("UPDATE keys SET state = 'revoked' WHERE id = 'key_2'");
    await done(make());
    await done(rotate(deps, made.key, KEY));
    db.close();
  });
});
