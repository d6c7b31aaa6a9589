import { ADMIN } from "../process/gateway.ts";
import type { Random } from "../sim/random.ts";
import type { Secret } from "./clients.ts";
import type { Attempt, Audit, Credit, KeyFacts, LimitSet, Outcome, Receipt, Revoke } from "./history.ts";

/**
 * The owner of the keys, and the operator: credits and takes back, changes limits, makes keys and revokes them, each at any
 * gateway and again until one has answered, and writes down every attempt.
 *
 * `purse` is a balance that is kept nearly empty; `capped` a key whose limit of the day or month is kept
 * nearly used; `team` a budget that two keys draw on, kept nearly used as well. `leaked` are keys that are
 * revoked and replaced all the time; there is plenty of credit for them, so that a gateway which is cut off
 * could go on serving them.
 */
export class Operator {
  readonly keys = new Map<string, KeyFacts>();
  readonly revokes: Revoke[] = [];
  readonly credits: Credit[] = [];
  readonly limits: LimitSet[] = [];
  private owners!: { readonly purse: Owner; readonly capped: Owner; readonly team: Owner };
  private caps = { capped: FIRST_NANO, team: FIRST_NANO };
  /** That clients use now. */
  inUse: Secret[] = [];
  private leaked: Secret[] = [];

  constructor(
    private readonly gateways: readonly string[],
    private readonly urlOf: (gateway: string) => string,
    private readonly nowMs: () => number,
    private readonly random: Random,
    /** The one that does not begin again before the storm is over. */
    private readonly window: "day" | "month",
  ) {}

  /** Everything that there is to use, before anything fails. */
  async prepare(): Promise<void> {
    const [purse, capped, team] = [await this.owner(), await this.owner(), await this.owner()];
    this.owners = { purse, capped, team };
    await this.credit(purse, FIRST_NANO);
    for (const rich of [capped, team]) await this.credit(rich, PLENTY_NANO);
    await this.setLimit("capped", FIRST_NANO);
    const budget = { name: "team", cap_usd: FIRST_NANO / 1e9, window: "total" };
    await this.insist(
      { method: "POST", path: "/v1/budgets", body: budget, bearer: team.recovery_secret },
      () => this.begin(this.limits, { limit: "team", nano: FIRST_NANO }),
    );
    this.keys.set(capped.id, { balance: capped.balance_id, limits: ["capped"] });
    this.keys.set(purse.id, { balance: purse.balance_id, limits: [] });
    const drawing = [await this.key(team, ["team"]), await this.key(team, ["team"])];
    for (let made = 0; made < LEAKED; made++) this.leaked.push(await this.key(team, []));
    this.inUse = [purse, capped, ...drawing, ...this.leaked];
  }

  /** Credits the purse, takes credit back where there is plenty, or raises or lowers a limit. */
  async spreadMoney(): Promise<void> {
    const limit = this.random.pick(["capped", "team"] as const);
    const kind = this.random.below(4);
    if (kind === 3) return this.credit(this.owners[limit], -STEP_NANO);
    if (kind === 0) return this.credit(this.owners.purse, STEP_NANO);
    const change = kind === 1 || this.caps[limit] < FIRST_NANO ? STEP_NANO : -STEP_NANO / 4;
    await this.setLimit(limit, this.caps[limit] + change);
  }

  /**
   * Revokes the oldest key that leaked, which every gateway remembers, and makes another one, which clients
   * use as well.
   */
  async replaceLeaked(): Promise<void> {
    const { team } = this.owners;
    const { id } = this.leaked.shift()!;
    await this.insist({ method: "DELETE", path: `/v1/keys/${id}`, bearer: team.recovery_secret }, () =>
      this.begin(this.revokes, { key: id }),
    );
    const made = await this.key(team, []);
    this.leaked.push(made);
    // The old one is tried for some time yet.
    this.inUse = [...this.inUse.filter((key) => !this.isRevokedLongAgo(key)), made];
  }

  /** One key for each balance or limit that is to be used up. */
  get spenders(): readonly Secret[] {
    const team = this.inUse.find(({ id }) => this.keys.get(id)!.limits.includes("team"))!;
    return [this.owners.purse, this.owners.capped, team];
  }

  /** Asks every gateway for the books, and one for what it knows of each key. */
  async read(): Promise<Outcome> {
    // Each gateway ships what it has when it is asked, so only the second time all of them have shipped
    // everything.
    await this.audits();
    const audits = await this.audits();
    const { purse, capped, team } = this.owners;
    const gateway = this.random.pick(this.gateways);
    const read = async (path: string, bearer: string) =>
      (await this.send(gateway, { method: "GET", path, bearer })).json;
    const receipts: Receipt[] = [];
    for (const owner of [purse, capped, team]) receipts.push(...(await this.receiptsOf(gateway, owner)));
    const left = (await read("/v1/me", purse.key)).balance_usd;
    const used = (await read("/v1/me", capped.key)).key[`used_${this.window}_usd`];
    const drawn = (await read("/v1/budgets/team", team.recovery_secret)).used_usd;
    return {
      receipts,
      audits,
      balances: [{ balance: purse.balance_id, leftNano: nano(left) }],
      limits: [
        { limit: "capped", usedNano: nano(used) },
        { limit: "team", usedNano: nano(drawn) },
      ],
    };
  }

  private async audits(): Promise<Audit[]> {
    const audits: Audit[] = [];
    for (const gateway of this.gateways) {
      const { json } = await this.send(gateway, {
        method: "GET",
        path: "/admin/ledger/audit",
        bearer: ADMIN,
      });
      audits.push({
        gateway,
        ok: json.ok,
        driftNano: Number(json.drift_nano),
        creditsNano: Number(json.credits_nano),
        chargesNano: Number(json.charges_nano),
      });
    }
    return audits;
  }

  private async receiptsOf(gateway: string, owner: Owner): Promise<Receipt[]> {
    const all: Receipt[] = [];
    for (let before = ""; ; ) {
      const path = `/v1/receipts?limit=100${before}`;
      const { json } = await this.send(gateway, { method: "GET", path, bearer: owner.recovery_secret });
      for (const { id, key_id, state, cost_usd } of json.data) {
        all.push({ id, key: key_id, state, costNano: nano(cost_usd) });
      }
      if (!json.has_more) return all;
      before = `&before=${json.next_before}`;
    }
  }

  private async owner(): Promise<Owner> {
    return this.insist({ method: "POST", path: "/v1/keys", bearer: null });
  }

  private async key(owner: Owner, limits: readonly string[]): Promise<Secret> {
    const body = limits.length === 0 ? {} : { budget: limits[0] };
    const bearer = owner.recovery_secret;
    const made: Secret = await this.insist({ method: "POST", path: "/v1/keys", body, bearer });
    this.keys.set(made.id, { balance: owner.balance_id, limits });
    return made;
  }

  private async credit({ balance_id: balance }: Owner, amount: number): Promise<void> {
    const idempotencyKey: string = crypto.randomUUID();
    const body = { balance_id: balance, amount_usd: Math.abs(amount) / 1e9, idempotency_key: idempotencyKey };
    const path = amount > 0 ? "/admin/credits" : "/admin/debits";
    await this.insist({ method: "POST", path, body, bearer: ADMIN }, () =>
      this.begin(this.credits, { balance, idempotencyKey, nano: amount }),
    );
  }

  private async setLimit(limit: "capped" | "team", amount: number): Promise<void> {
    this.caps[limit] = amount;
    const { id, recovery_secret: bearer } = this.owners[limit];
    const path = limit === "capped" ? `/v1/keys/${id}` : "/v1/budgets/team";
    const capped = this.window === "day" ? "daily_limit_usd" : "monthly_limit_usd";
    const body = { [limit === "capped" ? capped : "cap_usd"]: amount / 1e9 };
    await this.insist({ method: "PATCH", path, body, bearer }, () =>
      this.begin(this.limits, { limit, nano: amount }),
    );
  }

  private isRevokedLongAgo({ id }: Secret): boolean {
    const revoked = this.revokes.find(({ key, answeredMs }) => key === id && answeredMs !== null);
    return revoked !== undefined && this.nowMs() - revoked.answeredMs! > TRIED_MS;
  }

  /** Writes down an attempt; what it returns is called when that is answered. */
  private begin<One extends Attempt>(book: One[], about: Omit<One, keyof Attempt>): () => void {
    const attempt = { ...about, sentMs: this.nowMs(), answeredMs: null as number | null };
    book.push(attempt as unknown as One);
    return () => {
      attempt.answeredMs = this.nowMs();
    };
  }

  /** Asks one gateway after the other until one answers; nobody knows what became of the attempts before. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the gateway said
  private async insist(call: Call, begin: () => () => void = () => () => {}): Promise<any> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const answered = begin();
      const reply = await this.send(this.random.pick(this.gateways), call).catch(() => null);
      if (reply !== null && reply.status < 300) {
        answered();
        return reply.json;
      }
      if (reply !== null && reply.status < 500) {
        throw new Error(`${call.method} ${call.path}: ${reply.status} ${JSON.stringify(reply.json)}`);
      }
      await Bun.sleep(AGAIN_MS);
    }
    throw new Error(`${call.method} ${call.path} was not answered ${MAX_ATTEMPTS} times`);
  }

  // biome-ignore lint/suspicious/noExplicitAny: whatever the gateway said
  private async send(gateway: string, call: Call): Promise<{ status: number; json: any }> {
    const { method, path, body, bearer } = call;
    const response = await fetch(this.urlOf(gateway) + path, {
      method,
      headers: {
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { status: response.status, json: await response.json() };
  }
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly bearer: string | null;
}

interface Owner extends Secret {
  readonly recovery_secret: string;
  readonly balance_id: string;
}

/** Some hundred requests. */
const FIRST_NANO = 100_000_000;
const STEP_NANO = 50_000_000;
const PLENTY_NANO = 100_000_000_000;
const LEAKED = 4;
const TRIED_MS = 5_000;
/** A change of keys may wait for a lease to run out. */
const TIMEOUT_MS = 15_000;
const AGAIN_MS = 200;
const MAX_ATTEMPTS = 200;

const nano = (usd: number): number => Math.round(usd * 1e9);
