import type { LoggedChange } from "../../src/customers/changes/change.ts";
import type { ChangeOrigin } from "../../src/customers/changes/origin.ts";
import { withOrigin } from "../../src/customers/changes/origin.ts";
import { changeBudget, createBudget, dropBudget } from "../../src/customers/keys/budgets.ts";
import { createKey, setUp } from "../../src/customers/keys/creation.ts";
import type { KeyDeps } from "../../src/customers/keys/deps.ts";
import { Keyring } from "../../src/customers/keys/keyring.ts";
import { OPERATOR } from "../../src/customers/keys/root.ts";
import { revise, revoke, rotate } from "../../src/customers/keys/rotation.ts";
import { newOperatorToken } from "../../src/customers/operators/operator.ts";
import type { Credit, Debit } from "../../src/ledger/credit.ts";
import { SqlChangeLog } from "../../src/store/customers/change-log.ts";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { SqlOperatorStore } from "../../src/store/customers/operator-store.ts";
import type { Database } from "../../src/store/database/database.ts";
import { DAY_MS, type EpochMs, epochMs, systemClock } from "../../src/units/clock.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import { hashSecret } from "../../src/units/secret-hash.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { Random } from "../sim/random.ts";

/** Makes changes within one millisecond, and reads them page by page. Returns their numbers. */
export async function changesOfOneMoment(db: Database): Promise<readonly number[]> {
  const log = new SqlChangeLog(db);
  const random = new Random(5);
  for (let step = 0; step < MOMENT_CHANGES; step++) {
    const id = `chg_${Buffer.from(random.bytes(new Uint8Array(8))).toString("hex")}` as const;
    const by = { kind: "operator", id: "kim", name: null } as const;
    const stamp = { id, at: 1 as EpochMs, by, network: "", request: "" };
    const change = { action: "configuration.reloaded", balance: null, before: {}, after: {} } as const;
    await withOrigin({ stamp: () => stamp }, () => log.append({ ...change, subject: `${step}` }));
  }
  const any = { since: null, until: null, by: null, action: null, subject: null };
  const listed: number[] = [];
  for (let before: string | null = null; ; ) {
    const page: readonly LoggedChange[] = await log.list(null, any, 7, before);
    if (page.length === 0) return listed;
    listed.push(...page.map(({ subject }) => Number(subject)));
    before = page.at(-1)!.id;
  }
}

const MOMENT_CHANGES = 20;
export const NEWEST_FIRST = Array.from({ length: MOMENT_CHANGES }, (_, at) => MOMENT_CHANGES - 1 - at);

/** Where credits are written: in another way on SQLite alone than where several processes spend. */
export interface CreditWriter {
  credit(credit: Credit): unknown;
  debit(debit: Debit & { readonly amount: NanoUsd }): unknown;
}

/** Changes keys, balances, budgets, credit and operators at random, each as one of an operator's requests. */
export class ChangingOperator {
  private readonly deps: KeyDeps;
  private readonly operators: SqlOperatorStore;
  private readonly balances: BalanceId[] = [];
  private readonly keys: KeyId[] = [];
  /** Stamps of all changes, of all that change the same database. */
  private static stamps = 0;

  constructor(
    db: Database,
    private readonly credits: CreditWriter,
    private readonly random: Random,
  ) {
    const store = new SqlKeyStore(db, systemClock);
    const limits = { rpmLimit: 60, tpmLimit: null, dailyLimit: 5e9 as NanoUsd, monthlyLimit: null };
    this.deps = {
      store,
      keyring: new Keyring(store),
      clock: systemClock,
      random: random.bytes,
      settings: () => ({
        defaults: { accountless: limits, account: limits },
        graceMs: DAY_MS,
        contact: null,
      }),
      spendable: { of: () => 1 as NanoUsd },
    };
    this.operators = new SqlOperatorStore(db);
  }

  /** May be refused, and then nothing has changed; rejects where nobody knows what has. */
  async step(): Promise<void> {
    const origin: ChangeOrigin = {
      stamp: () => {
        const count = ++ChangingOperator.stamps;
        const by = { kind: "operator", id: "eve", name: "eve" } as const;
        const id = `chg_${String(count).padStart(10, "0")}` as const;
        return { id, at: epochMs(count), by, network: "", request: "" };
      },
    };
    await withOrigin(origin, () => this.change());
  }

  private async change(): Promise<unknown> {
    const { deps, random } = this;
    const { store } = deps;
    if (this.balances.length === 0 || random.chance(0.05)) {
      const made = await setUp(deps, {});
      if ("key" in made) {
        this.balances.push(made.key.balanceId);
        this.keys.push(made.key.id);
      }
      return made;
    }
    const balance = random.pick(this.balances);
    const key = random.pick(this.keys);
    const name = `budget${random.below(3)}`;
    const cap = (1 + random.below(9)) as NanoUsd;
    switch (random.below(13)) {
      case 0: {
        const { balance: present } = (await store.balanceWithBudgets(balance))!;
        const made = await createKey(deps, present, { name: `key ${random.below(9)}` }, OPERATOR);
        if ("key" in made) this.keys.push(made.key.id);
        return made;
      }
      case 1: {
        const present = await store.keyById(key);
        const made = present === null ? null : await rotate(deps, present, OPERATOR);
        if (made !== null && "key" in made) this.keys.push(made.key.id);
        return made;
      }
      case 2:
        return random.chance(0.3)
          ? revoke(deps, key, OPERATOR)
          : revise(deps, key, { rpmLimit: random.below(9), dailyLimit: cap }, OPERATOR);
      case 3:
        return createBudget(deps, balance, { name, cap, window: "week", perTag: null }, OPERATOR);
      case 4:
        return changeBudget(deps, balance, name, { cap }, OPERATOR);
      case 5:
        return dropBudget(deps, balance, name, OPERATOR);
      case 6:
        return store.changeBalance(balance, (present) =>
          random.chance(0.5)
            ? { ...present, lowCredit: random.pick([cap, null]) }
            : { ...present, priceList: random.pick(["partner", "friends", null]) },
        );
      case 7: {
        const [reason, lifted] = random.chance(0.5)
          ? (["sanctions", null] as const)
          : ([null, null] as const);
        return store.suspend({
          subject: balance,
          reason,
          lifted,
          at: deps.clock.now(),
          by: "eve",
          note: null,
        });
      }
      case 8:
        return store.secretsSaved(balance, deps.clock.now());
      case 9:
      case 10:
        return this.credits.credit({ ...this.entry(balance), amount: (1 + random.below(5_000)) as NanoUsd });
      case 11:
        return this.credits.debit({ ...this.entry(balance), amount: 1 as NanoUsd });
      default:
        return this.changeOperator(`person${random.below(4)}`);
    }
  }

  private entry(balanceId: BalanceId) {
    const idempotencyKey = `${this.random.below(1e9)} ${ChangingOperator.stamps}`;
    return { balanceId, idempotencyKey, note: null, at: this.deps.clock.now() };
  }

  private changeOperator(name: string): Promise<unknown> {
    const { random } = this;
    const tokenHash = hashSecret(newOperatorToken(random.bytes));
    const role = random.pick(["read", "operate", "admin"] as const);
    const removes = random.chance(0.4);
    return this.operators.change(name, (known) =>
      known !== null && removes
        ? "remove"
        : { name, role: known?.role ?? role, expiresAt: null, createdAt: epochMs(1), tokenHash },
    );
  }
}

/**
 * What the log alone comes to, held against the tables: a change without its row, or a row without its change, shows as a
 * difference, and so does a row that says another thing than what was there before.
 */
export async function loggedDifferences(db: Pick<Database, "read">): Promise<readonly string[]> {
  const logged = new LoggedState();
  const rows = await db.read<LogRow>`
    SELECT action, subject, balance_id AS balance, was, became FROM change_log ORDER BY created_at, id`;
  for (const row of rows) logged.take(row);
  const present = await presentState(db);
  const names = new Set([...logged.facts.keys(), ...present.keys()]);
  return [
    ...logged.problems,
    ...[...names].flatMap((name) => {
      const [inLog, inTables] = [logged.facts.get(name), present.get(name)];
      return inLog === inTables ? [] : [`${name}: the log has ${inLog}, the tables have ${inTables}`];
    }),
  ];
}

interface LogRow {
  readonly action: string;
  readonly subject: string;
  readonly balance: string | null;
  readonly was: string;
  readonly became: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** By name, such as `key_… rpm_limit`; what is null is absent. */
class LoggedState {
  readonly facts = new Map<string, string>();
  readonly problems: string[] = [];

  take({ action, subject, balance, was, became }: LogRow): void {
    const [kind] = action.split(".");
    const [before, after] = [JSON.parse(was) as Fields, JSON.parse(became) as Fields];
    const of =
      kind === "budget" ? `${balance} ${subject}` : kind === "operator" ? `operator ${subject}` : subject;
    switch (action) {
      case "balance.created":
        this.set(of, "there", true);
        return;
      case "balance.credited":
      case "balance.debited": {
        const nano = Math.round((after.amount_usd as number) * 1e9) * (action.endsWith("debited") ? -1 : 1);
        this.set(of, "credited", Number(this.facts.get(`${of} credited`) ?? 0) + nano);
        return;
      }
      case "key.rotated":
        this.copy(of, after.new_key_id as string, before);
        break;
    }
    for (const [name, value] of Object.entries(before)) this.expect(of, name, value);
    for (const name of Object.keys(before)) this.set(of, name, null);
    for (const [name, value] of Object.entries(after))
      if (name !== "new_key_id" && name !== "revoked_key_ids") this.set(of, name, value);
  }

  /** The successor has what its key had. */
  private copy(from: string, to: string, before: Fields): void {
    for (const [name, value] of this.facts)
      if (name.startsWith(`${from} `)) this.facts.set(`${to} ${name.slice(from.length + 1)}`, value);
    for (const [name, value] of Object.entries(before)) if (name !== "new_key_id") this.set(to, name, value);
  }

  private expect(of: string, name: string, value: unknown): void {
    const known = this.facts.get(`${of} ${name}`);
    if (known !== textOf(value) && name !== "new_key_id")
      this.problems.push(`${of} ${name} was ${known}, and its change says ${textOf(value)}`);
  }

  private set(of: string, name: string, value: unknown): void {
    put(this.facts, of, name, value);
  }
}

function put(facts: Map<string, string>, of: string, name: string, value: unknown): void {
  const text = textOf(value);
  if (text === undefined) facts.delete(`${of} ${name}`);
  else facts.set(`${of} ${name}`, text);
}

/** Lists without members, and what is false, are as if they were not there. */
const textOf = (value: unknown): string | undefined =>
  value == null || value === false || (Array.isArray(value) && value.length === 0)
    ? undefined
    : JSON.stringify(value);

async function presentState(db: Pick<Database, "read">): Promise<Map<string, string>> {
  const facts = new Map<string, string>();
  const take = (of: string, fields: Fields) => {
    for (const [name, value] of Object.entries(fields)) put(facts, of, name, value);
  };
  const usd = (nano: unknown) => (nano == null ? null : Number(nano) / 1e9);
  const time = (at: unknown) => (at == null ? null : new Date(Number(at)).toISOString());
  for (const { id, daily, monthly, expires_at, ...key } of await db.read<Record<string, unknown>>`
    SELECT id, name, state, expires_at, rpm_limit, tpm_limit, daily_limit AS daily, monthly_limit AS monthly FROM keys`)
    take(String(id), {
      ...key,
      expires_at: time(expires_at),
      daily_limit_usd: usd(daily),
      monthly_limit_usd: usd(monthly),
    });
  for (const { balance, name, cap, period } of await db.read<Record<string, unknown>>`
    SELECT balance_id AS balance, name, cap, period FROM budgets`)
    take(`${balance} ${name}`, { name, cap_usd: usd(cap), window: period });
  for (const { id, saved, low, ...balance } of await db.read<Record<string, unknown>>`
    SELECT id, price_list, suspended, secrets_saved_at AS saved, low_credit AS low FROM balances`)
    take(String(id), { there: true, ...balance, secrets_saved_at: time(saved), low_credit_usd: usd(low) });
  for (const { id, credited } of await db.read<Record<string, unknown>>`
    SELECT balance_id AS id, CAST(sum(amount) AS BIGINT) AS credited FROM credits GROUP BY balance_id`)
    take(String(id), { credited: Number(credited) });
  for (const { name, role } of await db.read<Record<string, unknown>>`SELECT name, role FROM operators`)
    take(`operator ${name}`, { role });
  return facts;
}
