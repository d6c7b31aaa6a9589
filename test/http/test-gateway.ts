import type { Feature } from "../../src/api/about.ts";
import { catalogOf, type Host, type Model } from "../../src/catalog/catalog.ts";
import { PAYMENTS } from "../../src/config/payment-settings.ts";
import type { Mail } from "../../src/customers/accounts/mail.ts";
import { OwnWebhooks } from "../../src/customers/events/own-webhooks.ts";
import { SealedSecrets } from "../../src/customers/events/sealed-secrets.ts";
import { Keyring } from "../../src/customers/keys/keyring.ts";
import { Runs } from "../../src/customers/keys/runs.ts";
import type { ContractAnswer } from "../../src/customers/wallets/contract-signatures.ts";
import { AppBundle } from "../../src/dashboard/bundle.ts";
import type { GenerationAnswer, GenerationCall } from "../../src/generation/answer.ts";
import { ReceiptSigner } from "../../src/generation/signing/receipt-signer.ts";
import type { RouteReport } from "../../src/hosts/route-report.ts";
import { httpApp, listen } from "../../src/http/app.ts";
import type { HttpDeps } from "../../src/http/deps.ts";
import { UntrustedProxies } from "../../src/http/untrusted-proxies.ts";
import { OpenSockets, type SocketRoom } from "../../src/http/websocket/open-sockets.ts";
import { type Credit, debitEntry, taken } from "../../src/ledger/credit.ts";
import { AddressThrottle, throttlesOf } from "../../src/ledger/limits/address.ts";
import { UnpaidBytes, UnpaidRequests } from "../../src/ledger/limits/unpaid-allowance.ts";
import { formatReceipt } from "../../src/ledger/receipt.ts";
import { bytesOf, type InUse } from "../../src/server/in-use.ts";
import { SqlAccountStore } from "../../src/store/customers/account-store.ts";
import { SqlChangeLog } from "../../src/store/customers/change-log.ts";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { SqlOperatorStore } from "../../src/store/customers/operator-store.ts";
import { diskRefused, openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import type { StoredReceipt } from "../../src/store/ledger/receipts.ts";
import { SigningKeyStore } from "../../src/store/nodes/fleet.ts";
import { SqlPaymentStore } from "../../src/store/payments/payment-store.ts";
import { schemaVersion } from "../../src/store/schema/migrations.ts";
import {
  rankSpending,
  type Spending,
  type SpendingGroup,
  type SpendingScope,
} from "../../src/store/usage/spending.ts";
import { sumUsage } from "../../src/store/usage/usage-sums.ts";
import { ByteBudget } from "../../src/units/byte-budget.ts";
import { type Clock, type EpochMs, systemClock } from "../../src/units/clock.ts";
import { refuse } from "../../src/units/errors/refusal.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import { Networks } from "../../src/units/networks.ts";
import { systemRandom } from "../../src/units/random.ts";
import type { NanoPerMillion, NanoUsd } from "../../src/units/usd.ts";
import { COUNTS_NOTHING } from "../fakes/gateway-parts.ts";
import { untilNothingIsInUse } from "../fakes/nothing-in-use.ts";
import { answeredOf, Conformity } from "./conformity.ts";
import { KnownHealth } from "./known-health.ts";

export const ADMIN_TOKEN = "or-admin-of-the-tests";

/** The HTTP floor and the keys on real sockets and a real database; generation and ledger are played. */
export class TestGateway {
  readonly db = openDatabase(":memory:");
  readonly faults: { error: unknown; receipt: string }[] = [];
  readonly calls: GenerationCall[] = [];
  readonly credits = new Map<string, Credit>();
  readonly receipts: StoredReceipt[] = [];
  settings = {
    baseUrl: "http://gateway.test",
    dashboardUrl: "http://gateway.test/dashboard",
    bodyBytes: 100_000,
    accountlessKeysPerAddressPerHour: 1_000,
    mailsPerHour: 1_000,
    receiptDays: null as number | null,
    lowCredit: null,
    contact: null as string | null,
    catalogIsPublic: false,
    trustedProxies: networks("127.0.0.0/8"),
    operators: [],
    features: new Set<Feature>(["payments", "payments.stripe", "receipts.sign"]),
  };
  generate: (call: GenerationCall) => Promise<GenerationAnswer> = async () => wholeAnswer({ served: true });
  usage: HttpDeps["books"]["usage"] = async () => sumUsage([], { stretchMs: 1 }, 1);
  spending: HttpDeps["books"]["spending"] = async (of) => spendingOf([], of);
  unready: string | null = null;
  stopping = false;
  overRate = false;
  /** The counter of 20 free requests a day, by everybody. */
  freeUsed = 1;
  readonly bodies: ByteBudget;
  private readonly sockets: OpenSockets;
  readonly controlBodies = new ByteBudget(500_000, systemClock);
  reloadProblem: string | null = null;
  /** What all workers together know of routes. */
  routes: RouteReport[] = [];
  readonly health: KnownHealth;
  readonly mails: Mail[] = [];
  /** The networks that sent them. */
  readonly wrongAdminTokens: string[] = [];
  readonly untrustedProxies: string[] = [];
  /** What chains say about signatures of contract wallets. */
  contractAnswer: ContractAnswer = "unknown";
  readonly deps: HttpDeps;
  private readonly server: Bun.Server<unknown>;
  private conformity: Promise<Conformity> | null = null;

  constructor({
    untakenSeconds,
    clock = systemClock,
    bodyMemory = 150_000,
    socketRoom: room = socketRoom(clock),
  }: TestGatewayOptions = {}) {
    this.bodies = new ByteBudget(bodyMemory, clock);
    this.health = new KnownHealth(clock);
    this.sockets = new OpenSockets(clock, room);
    this.deps = this.makeDeps(clock);
    const address = { hostname: "127.0.0.1", port: 0, shared: false };
    this.server = listen(httpApp(this.deps, untakenSeconds), address, room.messageBytes);
  }

  get port(): number {
    return this.server.port!;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async send(method: string, path: string, options: SendOptions = {}): Promise<Sent> {
    const { bearer, body, headers = {} } = options;
    const response = await fetch(this.url + path, {
      method,
      headers: { ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = parsed(text);
    this.conformity ??= Conformity.of(this.url);
    (await this.conformity).check(method, path, answeredOf(response, json));
    return { status: response.status, headers: response.headers, text, json };
  }

  /** An accountless balance with its first key. */
  async setUp(
    body?: unknown,
  ): Promise<{ id: string; key: string; recovery_secret: string; balance_id: BalanceId }> {
    const made = await this.send("POST", "/v1/keys", { body });
    if (made.status !== 201) throw new Error(made.text);
    return made.json;
  }

  /** Credit for a balance. */
  fund(balanceId: BalanceId, usd = 50): void {
    const entry = { balanceId, amount: (usd * 1e9) as NanoUsd, idempotencyKey: crypto.randomUUID() };
    this.credits.set(entry.idempotencyKey, { ...entry, note: null, at: 0 as EpochMs });
  }

  async stop(): Promise<void> {
    try {
      await untilNothingIsInUse(() => this.inUse());
    } finally {
      await this.server.stop(true);
      this.db.close();
    }
  }

  private inUse(): InUse[] {
    return [
      ...bytesOf("bodies", this.bodies),
      ...bytesOf("control bodies", this.controlBodies),
      ["WebSockets", this.sockets.count],
      ["limits of WebSockets", this.sockets.slotsInUse],
      ["bytes of conversations", this.sockets.bytes],
      ["HTTP requests", this.server.pendingRequests],
    ];
  }

  private answer(call: GenerationCall): Promise<GenerationAnswer> {
    this.calls.push(call);
    return this.generate(call);
  }

  private creditOf(id: BalanceId): NanoUsd {
    let total = 0;
    for (const credit of this.credits.values()) if (credit.balanceId === id) total += credit.amount;
    return total as NanoUsd;
  }

  private makeDeps(clock: Clock): HttpDeps {
    const store = new SqlKeyStore(new SqliteDatabase(this.db), clock);
    const keyring = new Keyring(store);
    const self = this;
    return {
      config: {
        get settings() {
          return self.settings;
        },
        catalog: CATALOG,
        schema: schemaVersion({ kind: "sqlite" }),
        modelLists: {
          apply: async () => refuse("invalid_request", "No model list is applied here."),
          undo: async () => refuse("invalid_request", "No model list is applied here."),
        },
        view: () => ({ file: "gateway.yaml", models: [], defaults: {} as never }),
        reload: async () => ({ problem: this.reloadProblem, needsRestart: [] }),
        nodeDifferences: async () => new Map(),
      },
      lifecycle: {
        unready: () => this.unready,
        get isStopping() {
          return self.stopping;
        },
      },
      clock,
      random: systemRandom,
      keyDeps: {
        store,
        keyring,
        clock,
        random: systemRandom,
        settings: () => ({ defaults: DEFAULTS, graceMs: 86_400_000, contact: null }),
        spendable: { of: (id) => this.creditOf(id) },
      },
      accounts: {
        store: new SqlAccountStore(new SqliteDatabase(this.db), clock),
        clock,
        random: systemRandom,
        contracts: { check: async () => this.contractAnswer },
        mailer: { post: (mail) => this.mails.push(mail), heldBack: () => {} },
        links: () => this.settings,
        keyring,
      },
      throttles: throttlesOf(() => new AddressThrottle(clock)),
      webhooks: NO_WEBHOOKS,
      operatorsWebhooks: { list: async () => [], test: async () => undefined },
      admin: {
        token: ADMIN_TOKEN,
        // Without the second that the real one takes for each.
        wrongTokens: {
          note: (network) => {
            this.wrongAdminTokens.push(network);
            return null;
          },
        },
      },
      untrustedProxies: new UntrustedProxies(
        () => {},
        (address) => this.untrustedProxies.push(address),
      ),
      generation: {
        generate: (_surface, call) => this.answer(call),
        generateOnce: (_surface, call) => this.answer(call),
        turnedAway: () => {},
        overRate: () => (this.overRate ? refuse("rate_limited", "Too often.", { retryAfterS: 7 }) : null),
        countTokens: async (body) => body.length,
        compaction: COUNTS_NOTHING.compaction,
      },
      payments: {
        amounts: SOLD.amounts,
        store: new SqlPaymentStore(new SqliteDatabase(this.db), clock),
        x402: null,
        card: {
          fee: SOLD.stripe!.fee,
          order: async () => refuse("internal_error", "Nobody takes cards here."),
          event: async () => null,
          refund: async () => "not refundable",
          resolve: async () => "not held",
        },
      },
      bodies: { prompts: this.bodies, control: this.controlBodies, unpaid: new UnpaidBytes(clock) },
      unpaidRequests: new UnpaidRequests(clock, { known: (id) => this.creditOf(id) }),
      books: {
        runs: new Runs(store),
        usage: (of) => this.usage(of),
        keyActivity: async () => [],
        spending: (of) => this.spending(of),
        events: { list: async () => [], has: async () => false },
        nodes: { list: async () => [], close: async () => "closed" },
        changes: new SqlChangeLog(new SqliteDatabase(this.db)),
        exports: { status: async () => [] },
        operators: new SqlOperatorStore(new SqliteDatabase(this.db)),
        diskRefused,
      },
      sockets: this.sockets,
      health: this.health,
      processes: {
        hosts: async () => ({ routes: this.routes, loads: [] }),
        metrics: async () => "gateway_up 1\n",
      },
      ledger: {
        balance: async (id) => ({ credited: this.creditOf(id), total: this.creditOf(id) }),
        balanceUse: async (id) => {
          const total = this.creditOf(id);
          return { credited: total, total, available: total, ...heldHere(0) };
        },
        keySpending: async () => KEY_SPENDING,
        keyUse: async () => ({ ...KEY_SPENDING, ...heldHere(500_000) }),
        budgetUse: async () => ({ spent: 3_000_000 as NanoUsd, ...heldHere(4_000_000) }),
        valueSpent: async () => 2_000_000 as NanoUsd,
        runUse: async () => null,
        useOf: async (_, run) => ({ run, spending: NO_USE, calls: NO_USE }),
        openTier: async () => ({ limit: 20, used: this.freeUsed, heldAt: "all_processes" }),
        credit: async (credit) => {
          const before = this.credits.get(credit.idempotencyKey);
          if (before === undefined) this.credits.set(credit.idempotencyKey, credit);
          return before ?? credit;
        },
        debit: async (debit) => {
          const before = this.credits.get(debit.idempotencyKey);
          if (before !== undefined) return before;
          let available = 0;
          for (const { balanceId, amount } of this.credits.values()) {
            if (balanceId === debit.balanceId) available += amount;
          }
          const amount = taken(debit.amount, { available, unspent: available });
          if (amount === null) return { available: available as NanoUsd };
          const entry = debitEntry(debit, amount);
          this.credits.set(debit.idempotencyKey, entry);
          return entry;
        },
        credits: async (balance, limit) =>
          [...this.credits.values()].filter(({ balanceId }) => balanceId === balance).slice(0, limit),
        audit: async () => ({
          creditsNano: 10n,
          chargesNano: 4n,
          heldNano: 1n,
          availableNano: 5n,
          heldAt: "all_processes" as const,
          writeOffsNano: 0n,
          lossesNano: 0n,
          drifts: [],
        }),
      },
      receipts: {
        receipt: async (id) => this.receipts.find((one) => one.id === id) ?? null,
        receipts: async (balance, { keyId }, limit, before) => {
          const mine = this.receipts.filter(
            (one) => one.balanceId === balance && (keyId === null || one.keyId === keyId),
          );
          const from = before === null ? 0 : mine.findIndex((one) => one.id === before) + 1;
          const receipts = mine.slice(from, from + limit);
          return { receipts, nextBefore: mine.length > from + limit ? receipts.at(-1)!.id : null };
        },
      },
      receiptSigner: new ReceiptSigner({
        store: new SigningKeyStore(new SqliteDatabase(this.db)),
        clock,
        random: systemRandom,
        issuer: () => this.settings.baseUrl,
      }),
      apps: new AppBundle(),
      onFault: (error, receipt) => this.faults.push({ error, receipt }),
    };
  }
}

/** As the thread answers that found these groups, and nobody's name. */
const spendingOf = (groups: readonly SpendingGroup[], of: SpendingScope): Spending => ({
  ...rankSpending(groups, of),
  owners: new Map(),
  keyLabels: new Map(),
  compared: of.beforeMs !== null,
  countedSince: null,
});

/** A receipt as the ledger keeps it, of a request that was settled. */
export const storedReceipt = (
  id: string,
  { id: keyId, balance_id: balanceId }: { readonly id: string; readonly balance_id: BalanceId },
): StoredReceipt => ({
  id: id as ReceiptId,
  at: 1 as EpochMs,
  balanceId,
  keyId: keyId as KeyId,
  body: formatReceipt({
    id: id as ReceiptId,
    createdAt: 1 as EpochMs,
    state: "settled",
    surface: "chat.completions",
    keyId: keyId as KeyId,
    modelRequested: "test/one",
    model: "test/one",
    host: "h",
    attempts: [{ host: "h", model: "test/one", outcome: "opened", ms: 12, detail: null }],
    stream: true,
    tokens: { input: 1, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 },
    tokensFrom: "host",
    price,
    cost: 5_000 as NanoUsd,
    held: 10_000 as NanoUsd,
    writeOff: 0 as NanoUsd,
    firstTokenMs: 12,
    totalMs: 20,
    errorCode: null,
  }),
});

export interface SendOptions {
  readonly bearer?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

export interface Sent {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever the server said
  readonly json: any;
}

const wholeAnswer = (json: unknown, status = 200): GenerationAnswer => ({
  kind: "whole",
  status,
  headers: { "content-type": "application/json", "x-gateway-receipt": "rcpt_played" },
  body: Buffer.from(JSON.stringify(json)),
});

/** As configured by nothing but Stripe's secrets. */
const SOLD = PAYMENTS.read({ stripe: { secret_key: "sk", webhook_secret: "whsec" } }, [], () => {})!;

const DEFAULTS = {
  accountless: {
    rpmLimit: 60,
    tpmLimit: 400_000,
    dailyLimit: 5_000_000_000 as NanoUsd,
    monthlyLimit: 50_000_000_000 as NanoUsd,
  },
  account: { rpmLimit: 300, tpmLimit: null, dailyLimit: null, monthlyLimit: null },
};

const host: Host = {
  id: "h",
  baseUrl: "http://127.0.0.1:1/v1",
  speaks: ["chat.completions"],
  apiKey: null,
  auth: "bearer",
  headers: {},
  onDisconnect: "cancel",
  quirks: {},
};
const perMillion = (usd: number) => (usd * 1e9) as NanoPerMillion;
const priced = (output: number) => ({
  input: perMillion(1),
  output: perMillion(output),
  cacheRead: perMillion(1),
  cacheWrite: perMillion(1),
});
const price = priced(2);
const parameters = new Set(["temperature", "tools"]);
const model = (id: string, contextLength: number, output: number): [string, Model] => [
  id,
  {
    id,
    name: `Model ${id}`,
    contextLength,
    maxOutputTokens: 100,
    price: priced(output),
    routes: [{ host, model: "m", price: priced(output), free: false, parameters }],
  },
];
const CATALOG = catalogOf({
  models: new Map([model("test/one", 1_000, 2), model("test/two", 900, 3.5)]),
  auto: new Map([
    ["fast", ["test/two", "test/one"]],
    ["free", ["test/one"]],
  ]),
  hosts: new Map([["h", host]]),
});

/** Addresses and blocks that are known to be right. */
export function networks(...rows: string[]): Networks {
  const all = new Networks();
  for (const row of rows) if (!all.add(row)) throw new Error(`${row} is no network`);
  return all;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

interface TestGatewayOptions {
  readonly untakenSeconds?: number;
  readonly clock?: Clock;
  /** Bytes of memory for large bodies. */
  readonly bodyMemory?: number;
  readonly socketRoom?: SocketRoom;
}

const heldHere = (nano: number) => ({ held: nano as NanoUsd, heldAt: "all_processes" as const });
const NO_USE = { spent: 0 as NanoUsd, ...heldHere(0) };
const KEY_SPENDING = { day: 1_000_000 as NanoUsd, month: 2_000_000 as NanoUsd };
/** Memory for 128 WebSockets. */
const socketRoom = (clock: Clock): SocketRoom => ({
  messageBytes: 100_000,
  bodies: new ByteBudget(51_200_000, clock),
  settings: () => ({ bodyBytes: 100_000, bodyMemoryBytes: 51_200_000 }),
});

const NO_WEBHOOKS = new OwnWebhooks({
  store: {
    list: async () => [],
    find: async () => null,
    add: async () => "full",
    change: async () => null,
    remove: async () => false,
    claim: async () => null,
    waiting: async () => [],
    note: async () => {},
  },
  clock: systemClock,
  random: systemRandom,
  sealed: new SealedSecrets("store", systemRandom),
  isFunded: async () => false,
  hasMailbox: async () => false,
  urlProblem: () => null,
  send: async () => null,
});
