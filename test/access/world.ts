import { Database } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { webhookId } from "../../src/customers/events/webhook.ts";
import type { Made, OpenGateway, SendOptions } from "../gateway/open.ts";
import { ADMIN, type Reply } from "../process/gateway.ts";
import type { Credential, Operation, State } from "./credentials.ts";

/** In the configuration; nobody listens there. */
export const OPERATORS_WEBHOOK = "http://127.0.0.1:1/ops";

/** A balance in one of its states, with everybody who has to do with it, on a real gateway. */
export class World {
  /** What was done with it changes what comes after. */
  used = false;

  private constructor(
    private readonly deps: Fixture,
    private readonly secrets: Readonly<Record<Credential, string | null>>,
    private readonly names: Readonly<Record<string, string>>,
    private readonly ids: Readonly<Partial<Record<Credential, Ids>>>,
    private readonly isAccounts: boolean,
  ) {}

  /** `rotated`: the set-up key was, and there are the one that took its place and the one in its grace. */
  static async make(deps: Fixture, state: State, rotated: boolean): Promise<World> {
    const setUp = await deps.setUp();
    const owner = { bearer: setUp.recovery_secret };
    const [spare, revoked] = [await deps.newKey(owner), await deps.newKey(owner)];
    await deps.send("DELETE", `/v1/keys/${revoked.id}`, owner);
    await deps.send("POST", "/v1/budgets", {
      ...owner,
      json: { name: "team", cap_usd: 1, window: "month" },
    });
    await deps.credit(setUp.balance_id);
    const webhook = await deps.send("POST", "/v1/webhooks", {
      ...owner,
      json: { url: "http://127.0.0.1:1/" },
    });
    const receipts = { setUp: await deps.chat(setUp.key), spare: await deps.chat(spare.key) };

    const email = deps.newEmail();
    if (state !== "nobody's") {
      await deps.send("POST", "/v1/me/claim", { bearer: setUp.key, json: { email } });
    }
    if (state === "reclaimed") await deps.send("DELETE", "/v1/me/claim", owner);
    const isAccounts = state === "claimed" || state === "replaced" || state === "kept";
    const entered = isAccounts ? await deps.useLink(email) : await deps.signIn(email);
    const stranger = deps.newEmail();
    const other = await deps.signIn(stranger);
    await deps.credit((await deps.send("GET", "/v1/me", { bearer: other.session })).json.balance_id);
    const offered = await deps.setUp();
    await deps.send("POST", "/v1/me/claim", { bearer: offered.key, json: { email } });

    const by = state === "replaced" ? bySession(setUp.balance_id, entered) : owner;
    const recovery = (await deps.send("POST", "/v1/me/recovery", by)).json.recovery_secret;
    const next = rotated
      ? (await deps.send("POST", `/v1/keys/${setUp.id}/rotate`, { bearer: setUp.key })).json
      : null;
    const nextReceipt = next === null ? "" : await deps.chat(next.key);
    if (state === "kept") deps.age(setUp.balance_id);
    const [sessions, token] = [
      await deps.send("GET", "/v1/auth/sessions", { bearer: entered.session }),
      await deps.requestLink(stranger),
    ];

    const payment = isAccounts
      ? await deps.send("POST", "/v1/credits", { ...bySession(setUp.balance_id, entered), json: CARD })
      : null;

    const secrets = {
      none: null,
      setUpKey: setUp.key,
      rotatedKey: next?.key ?? null,
      ownerMadeKey: spare.key,
      rotatedOutKey: setUp.key,
      revokedKey: revoked.key,
      recovery,
      oldRecovery: setUp.recovery_secret,
      session: entered.session,
      otherSession: other.session,
      ...(await deps.operators()),
      admin: ADMIN,
    };
    const names = {
      balance: setUp.balance_id,
      account: entered.account_id,
      offered: offered.balance_id,
      session: sessions.json.data[0].id,
      token,
      recovery,
      webhook: webhook.json.id,
      operators: webhookId(OPERATORS_WEBHOOK),
      payment: payment?.json.id ?? "",
      theirs: spare.key,
      operator: deps.newOperator(),
    };
    const first = { key: setUp.id, another: spare.id, receipt: receipts.setUp, others: receipts.spare };
    const ids = {
      setUpKey: first,
      rotatedOutKey: first,
      rotatedKey: { ...first, key: next?.id ?? "", receipt: nextReceipt },
      ownerMadeKey: { key: spare.id, another: setUp.id, receipt: receipts.spare, others: receipts.setUp },
      revokedKey: { ...first, key: revoked.id },
    };
    return new World(deps, secrets, { ...names, otherAccount: other.account_id }, ids, isAccounts);
  }

  /** The status of an answer, and for refusals the code. */
  async send({ method, path, body }: Operation, by: Credential, headers = this.bearing(by)): Promise<string> {
    const json = await this.filledBody(body, by);
    const target = this.filled(await this.withColleague(path), by);
    const reply = await this.deps.send(method, target, {
      headers,
      ...(json === undefined ? {} : { json }),
    });
    if (method !== "GET" && reply.status < 400) this.used = true;
    if (path.startsWith("/v1/") || path.startsWith("/admin/")) {
      if (!/^rcpt_/.test(reply.headers.get("x-gateway-receipt") ?? ""))
        throw new Error(`${path}: no receipt`);
    }
    return reply.status < 400 ? String(reply.status) : `${reply.status} ${reply.json.error.code}`;
  }

  /** A session that names no balance acts on its account's own. */
  private bearing(by: Credential): Record<string, string> {
    const secret = this.secrets[by];
    return {
      ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
      ...(by === "session" ? this.naming : {}),
    };
  }

  inCookie(origin: string): Record<string, string> {
    return { origin, cookie: `__Host-session=${this.secrets.session}`, ...this.naming };
  }

  private get naming(): Record<string, string> {
    return this.isAccounts ? { "x-gateway-balance": this.names.balance! } : {};
  }

  private async filledBody(body: unknown, by: Credential): Promise<unknown> {
    if (body === undefined) return undefined;
    const signed = JSON.stringify(body).includes("{signed}") ? await this.deps.signed() : null;
    const text = JSON.stringify(body).replace('"{signed}"', JSON.stringify(signed));
    return JSON.parse(this.filled(text, by));
  }

  /** Names an operator who is there for this request. */
  private async withColleague(path: string): Promise<string> {
    if (!path.includes("{colleague}")) return path;
    return path.replace("{colleague}", (await this.deps.addOperator("read")).name);
  }

  private filled(text: string, by: Credential): string {
    const { key, another, receipt, others } = this.ids[by] ?? this.ids.ownerMadeKey!;
    const { balance, account, otherAccount } = this.names;
    const own = by === "session" ? account : by === "otherSession" ? otherAccount : balance;
    const all: Record<string, string> = { ...this.names, itself: key, another, receipt, others, own: own! };
    return text.replace(/\{(\w+)\}/g, (whole, name) => all[name] ?? whole);
  }
}

const CARD = { amount_usd: 5, rail: "card" };

const bySession = (balance: string, { session }: { readonly session: string }) => ({
  bearer: session,
  headers: { "x-gateway-balance": balance },
});

interface Ids {
  readonly key: string;
  readonly another: string;
  readonly receipt: string;
  readonly others: string;
}

/** A gateway, and what everybody does with it; each request comes from an address of its own. */
export class Fixture {
  private requests = 0;
  private people = 0;
  private colleagues: Record<"reader" | "operating" | "fellow", string> | null = null;

  constructor(private readonly gateway: OpenGateway) {}

  get url(): string {
    return this.gateway.url;
  }

  send(method: string, path: string, options: SendOptions = {}): Promise<Reply> {
    const count = this.requests++;
    const from = `198.${18 + (count >> 16)}.${(count >> 8) & 255}.${count & 255}`;
    return this.gateway.send(method, path, {
      ...options,
      headers: { "x-forwarded-for": from, ...options.headers },
    });
  }

  newOperator(): string {
    return `person${++this.people}`;
  }

  async addOperator(role: string): Promise<{ name: string; token: string }> {
    const json = { name: this.newOperator(), role };
    return (await this.send("POST", "/admin/operators", { bearer: ADMIN, json })).json;
  }

  /** One of each role, for all worlds. */
  async operators(): Promise<Record<"reader" | "operating" | "fellow", string>> {
    this.colleagues ??= {
      reader: (await this.addOperator("read")).token,
      operating: (await this.addOperator("operate")).token,
      fellow: (await this.addOperator("admin")).token,
    };
    return this.colleagues;
  }

  newEmail(): string {
    return `person${++this.people}@example.com`;
  }

  async setUp(): Promise<Made> {
    return (await this.send("POST", "/v1/keys")).json;
  }

  async newKey(owner: SendOptions): Promise<Pick<Made, "id" | "key">> {
    return (await this.send("POST", "/v1/keys", owner)).json;
  }

  async credit(balance: string): Promise<void> {
    await this.gateway.credit(balance, 1);
  }

  /** Returns the receipt's id. */
  async chat(bearer: string): Promise<string> {
    const json = { model: "sim/echo:free", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] };
    const headers = { "x-gateway-run": "job" };
    return (await this.send("POST", "/v1/chat/completions", { bearer, json, headers })).headers.get(
      "x-gateway-receipt",
    )!;
  }

  async signIn(email: string): Promise<{ session: string; account_id: string }> {
    await this.send("POST", "/v1/auth/email", { json: { email } });
    return this.useLink(email);
  }

  async useLink(email: string): Promise<{ session: string; account_id: string }> {
    const json = { token: this.newestToken(email) };
    return (await this.send("POST", "/v1/auth/email/verify", { json })).json;
  }

  async requestLink(email: string): Promise<string> {
    await this.send("POST", "/v1/auth/email", { json: { email } });
    return this.newestToken(email);
  }

  private newestToken(email: string): string {
    const outbox = join(this.gateway.gateway.folder.path, "outbox");
    const mails = readdirSync(outbox)
      .sort()
      .map((name) => readFileSync(join(outbox, name), "utf8"));
    return /#signin=(\S+)/.exec(mails.findLast((mail) => mail.startsWith(`To: ${email}\n`))!)![1]!;
  }

  /** A message that a wallet of its own has signed. */
  async signed(): Promise<{ message: string; signature: string }> {
    const wallet = privateKeyToAccount(generatePrivateKey());
    const json = { address: wallet.address, chain_id: 1 };
    const { message } = (await this.send("POST", "/v1/auth/wallet", { json })).json;
    return { message, signature: await wallet.signMessage({ message }) };
  }

  /** As if its claim had taken effect eight days ago. */
  age(balance: string): void {
    const db = new Database(join(this.gateway.gateway.folder.path, "gateway.sqlite"));
    db.run("PRAGMA busy_timeout = 5000");
    db.run("UPDATE balances SET claimed_at = claimed_at - 8 * 86400000 WHERE id = ?", [balance]);
    db.close();
  }
}

/** The two that there are only once the set-up key was rotated. */
export const isRotated = (by: Credential): boolean => by === "rotatedKey" || by === "rotatedOutKey";
