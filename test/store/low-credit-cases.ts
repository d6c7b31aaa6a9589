import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { LowCreditStore } from "../../src/customers/accounts/low-credit.ts";
import type { Mail } from "../../src/customers/accounts/mail.ts";
import { LowCreditWatch } from "../../src/customers/mail/low-credit.ts";
import type { MailOutcome } from "../../src/customers/mail/mailer.ts";
import { type Clock, type EpochMs, systemClock } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { until } from "../fakes/until.ts";

const usd = (amount: number) => (amount * 1_000_000_000) as NanoUsd;
const BELOW = usd(5);

/** A store of either kind, and what the tests do to it behind the gateway's back. */
export interface LowCreditBench {
  readonly store: LowCreditStore;
  addAccount(id: string, email: string | null): Promise<void>;
  addBalance(id: string, account: string | null): Promise<void>;
  setMoney(balance: string, credited: number, spent: number): Promise<void>;
  suspendAccount(id: string, reason: string | null): Promise<void>;
  close(): Promise<void>;
}

/** A store in SQLite, written behind its back on `db`. */
export const sqliteLowCredit = (db: Database, store: LowCreditStore): LowCreditBench => ({
  store,
  async addAccount(id, email) {
    db.run("INSERT INTO accounts (id, email, created_at, proved_at) VALUES (?, ?, 1, 1)", [id, email]);
  },
  async addBalance(id, account) {
    db.run("INSERT INTO balances (id, account_id, created_at) VALUES (?, ?, 1)", [id, account]);
  },
  async setMoney(balance, credited, spent) {
    db.run("INSERT OR REPLACE INTO counters (id, credited, spent) VALUES (?, ?, ?)", [
      `balance:${balance}`,
      credited,
      spent,
    ]);
  },
  async suspendAccount(id, reason) {
    db.run("UPDATE accounts SET suspended = ? WHERE id = ?", [reason, id]);
  },
  close: async () => db.close(),
});

/** What owners are told, whichever store remembers it. */
export function lowCreditCases(open: () => Promise<LowCreditBench>): void {
  let bench: LowCreditBench;
  let desk: Desk;

  beforeEach(async () => {
    bench = await open();
    desk = new Desk(bench.store);
    await bench.addAccount("acct_a", "ada@example.com");
    await bench.addBalance("bal_a", "acct_a");
  });
  afterEach(() => bench.close());

  const money = (credited: number, spent: number, id = "bal_a") =>
    bench.setMoney(id, usd(credited), usd(spent));

  test("an owner is told once when credit falls below, and again only after there was more", async () => {
    const watch = desk.watch();
    const told: number[] = [];
    for (const [credited, spent] of [
      [20, 0],
      [20, 14.5],
      [20, 15],
      [20, 15.1],
      [20, 19],
      [22, 19],
      [30, 19],
      [30, 24],
      [30, 26],
      [30, 26],
    ] as const) {
      await money(credited, spent);
      await watch.round();
      told.push(desk.mails.length);
    }
    expect(told).toEqual([0, 0, 0, 1, 1, 1, 1, 1, 2, 2]);
    const [{ to, subject, text }] = desk.mails as [Mail];
    expect([to as string, subject]).toEqual(["ada@example.com", "Your credit is running low"]);
    for (const words of ["bal_a", "$4.90", "http://g.test/dashboard", "(ops@example.com)", "below $5.00"]) {
      expect(text).toContain(words);
    }
    expect(desk.logged[0]).toEqual({
      event: "low credit",
      balance: "bal_a",
      account: "acct_a",
      left_usd: 4.9,
      below_usd: 5,
      has_email: true,
    });
    expect(desk.logged).toHaveLength(2);
  });

  test("an owner who never had more is told nothing", async () => {
    const watch = desk.watch();
    for (const credited of [0, 1, 2, 4]) {
      await money(credited, 0);
      await watch.round();
    }
    await money(4, 3);
    await watch.round();
    expect(desk.mails).toEqual([]);
  });

  test("credit that came and went between two looks has fallen below", async () => {
    const watch = desk.watch();
    await watch.round();
    await money(10, 9);
    await watch.round();
    await watch.round();
    expect(desk.mails).toHaveLength(1);
  });

  test("credit that the operator takes back counts like credit that was spent", async () => {
    const watch = desk.watch();
    const told: number[] = [];
    for (const [credited, spent] of [
      [1_000, 2],
      [10, 2],
      [6, 2],
      [2, 2],
      [12, 2],
      [2, 2],
    ] as const) {
      await money(credited, spent);
      await watch.round();
      told.push(desk.mails.length);
    }
    expect(told).toEqual([0, 0, 1, 1, 1, 2]);
    expect(desk.mails[1]!.text).toContain("has $0.00 of credit left");
  });

  test("after a restart nobody is told again", async () => {
    const watch = desk.watch();
    await money(10, 0);
    await watch.round();
    await money(10, 6);
    await watch.round();
    await watch.stop();
    const restarted = desk.watch();
    await restarted.round();
    desk.minutes += 60;
    await restarted.round();
    expect(desk.mails).toHaveLength(1);
  });

  test("after a crash before the mail was sent, the next process sends it, and one only", async () => {
    const crashing = desk.watch(() => new Promise(() => {}));
    await money(10, 0);
    await crashing.round();
    await money(10, 6);
    void crashing.round();
    await until(() => desk.tried !== 0);
    const next = desk.watch();
    await next.round();
    expect(desk.mails).toHaveLength(0);
    desk.minutes += 11;
    for (let round = 0; round < 3; round++) await next.round();
    expect(desk.mails).toHaveLength(1);
  });

  test("while mails cannot be sent, owners wait for theirs", async () => {
    let delivery: MailOutcome = "failed";
    const watch = desk.watch(async () => delivery);
    await bench.addAccount("acct_b", "bob@example.com");
    await bench.addBalance("bal_b", "acct_b");
    for (const id of ["bal_a", "bal_b"]) await money(10, 0, id);
    await watch.round();
    for (const id of ["bal_a", "bal_b"]) await money(10, 6, id);
    await watch.round();
    expect(desk.tried).toBe(1);
    delivery = "sent";
    desk.minutes += 11;
    await watch.round();
    await watch.round();
    expect(desk.tried).toBe(3);
    expect(desk.logged.map(({ balance }) => balance)).toEqual(["bal_a", "bal_b"]);
  });

  test("an address that the mail server refuses is not tried again", async () => {
    const watch = desk.watch(async () => "refused");
    await money(10, 0);
    await watch.round();
    await money(10, 6);
    for (let round = 0; round < 3; round++, desk.minutes += 11) await watch.round();
    expect(desk.tried).toBe(1);
  });

  test("of two processes that look at the same time, one tells", async () => {
    const watches = [desk.watch(), desk.watch()];
    for (let turn = 1; turn <= 5; turn++) {
      await money(turn * 10, turn * 10 - 10);
      await Promise.all(watches.map((watch) => watch.round()));
      await money(turn * 10, turn * 10 - 1);
      await Promise.all(watches.map((watch) => watch.round()));
      expect(desk.mails).toHaveLength(turn);
    }
  });

  test("a wallet's owner gets no mail, and the log has the news; without an account there is none", async () => {
    const watch = desk.watch();
    await bench.addAccount("acct_w", null);
    await bench.addBalance("bal_w", "acct_w");
    await bench.addBalance("bal_free", null);
    for (const [credited, spent] of [
      [10, 0],
      [10, 8],
    ] as const) {
      for (const id of ["bal_w", "bal_free"]) await money(credited, spent, id);
      await watch.round();
    }
    expect(desk.mails).toEqual([]);
    expect(desk.logged).toMatchObject([{ balance: "bal_w", has_email: false }]);
  });

  test("a suspended account is told once it is not suspended any more", async () => {
    const watch = desk.watch();
    await money(10, 0);
    await watch.round();
    await bench.suspendAccount("acct_a", "chargeback");
    await money(10, 8);
    await watch.round();
    expect(desk.mails).toEqual([]);
    await bench.suspendAccount("acct_a", null);
    await watch.round();
    expect(desk.mails).toHaveLength(1);
  });

  test("every balance is looked at, however many there are", async () => {
    const watch = desk.watch();
    const ids = Array.from({ length: 450 }, (_, index) => `bal_${String(index).padStart(3, "0")}`);
    for (const [index, id] of ids.entries()) {
      const account = `acct_${Math.floor(index / 90)}`;
      if (index % 90 === 0) await bench.addAccount(account, `${account}@example.com`);
      await bench.addBalance(id, account);
      await money(10, 0, id);
    }
    await watch.round();
    for (const id of ids) await money(10, 9, id);
    await watch.round();
    await watch.round();
    expect(desk.logged.map(({ balance }) => balance as string).toSorted()).toEqual(ids);
    expect(desk.mails).toHaveLength(ids.length);
  });

  test("nothing is looked at where the operator wants no notice", async () => {
    desk.below = null;
    const watch = desk.watch();
    await money(10, 0);
    await watch.round();
    expect(await bench.store.watched(null)).toMatchObject([{ id: "bal_a", mark: null }]);
  });
}

/** What the watches of one test share; each looks when the test says so. */
class Desk {
  readonly mails: Mail[] = [];
  readonly logged: Record<string, unknown>[] = [];
  below: NanoUsd | null = BELOW;
  minutes = 0;
  tried = 0;

  constructor(private readonly store: LowCreditStore) {}

  watch(deliver: (mail: Mail) => Promise<MailOutcome> = async () => "sent") {
    let next: (() => void) | null = null;
    let ended = () => {};
    const clock: Clock = {
      ...systemClock,
      now: () => (Date.UTC(2026, 0, 1) + this.minutes * 60_000) as EpochMs,
      after: (ms, fire) => {
        if (ms < 60_000) return systemClock.after(0, fire);
        next = fire;
        ended();
        return { cancel: () => {} };
      },
    };
    const watch = new LowCreditWatch({
      store: this.store,
      clock,
      log: (event, fields) => this.logged.push({ event, ...fields }),
      below: () => this.below,
      deliver: async (mail) => {
        this.tried += 1;
        const delivery = await deliver(mail);
        if (delivery === "sent") this.mails.push(mail);
        return delivery;
      },
      links: () => ({ dashboardUrl: "http://g.test/dashboard", contact: "mailto:ops@example.com" }),
    });
    return {
      stop: () => watch.stop(),
      round: () =>
        new Promise<void>((resolve) => {
          ended = resolve;
          next!();
        }),
    };
  }
}
