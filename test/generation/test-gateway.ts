import { Database } from "bun:sqlite";
import {
  type CatalogWithLists,
  type Host,
  type Model,
  catalogOf as openCatalog,
  type SurfaceName,
} from "../../src/catalog/catalog.ts";
import type { Price } from "../../src/catalog/price.ts";
import type { Key } from "../../src/customers/keys/key.ts";
import { type Holder, isLive, type Keyring } from "../../src/customers/keys/keyring.ts";
import type { GenerationAnswer } from "../../src/generation/answer.ts";
import type { CountTurn } from "../../src/generation/counting/counting.ts";
import type { GenerationDeps, GenerationSettings } from "../../src/generation/deps.ts";
import { generator } from "../../src/generation/generate.ts";
import { Receipts } from "../../src/generation/refused-receipts.ts";
import { Http1Transport } from "../../src/hosts/http1/transport.ts";
import type { HostSlots } from "../../src/hosts/slots/host-slots.ts";
import type { RunningSums } from "../../src/ledger/counter-cache.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { CountAllowance } from "../../src/ledger/limits/count-allowance.ts";
import { type Receipt, recoveredReceipt } from "../../src/ledger/receipt.ts";
import { buildGateway } from "../../src/server/gateway.ts";
import type { GatewayParts } from "../../src/server/gateway-parts.ts";
import { socketsInUse } from "../../src/server/in-use.ts";
import { withMemory } from "../../src/store/books/bookkeeping.ts";
import { openLedger } from "../../src/store/books/bookkeeping-sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import type { Drift } from "../../src/store/ledger/sql-ledger-store.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { SQLITE_SCHEMA } from "../../src/store/schema/migrations.ts";
import { SURFACES } from "../../src/surfaces/surfaces.ts";
import { countPromptTokens } from "../../src/tokens/count.ts";
import { Families } from "../../src/tokens/families.ts";
import { type Clock, type EpochMs, systemClock } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";
import { type NanoUsd, nanoFromUsd, pricePerMillion } from "../../src/units/usd.ts";
import { balanceOf } from "../fakes/balance.ts";
import { BlindHealth } from "../fakes/blind-health.ts";
import { booksOf, COUNTS_NOTHING, configOf, partsOf } from "../fakes/gateway-parts.ts";
import { keyOf } from "../fakes/key.ts";
import { untilNothingIsInUse } from "../fakes/nothing-in-use.ts";
import { until } from "../fakes/until.ts";
import { SimulatedDisk } from "../sim/disk.ts";
import { enterCredit } from "../store/enter-credit.ts";

/** The counting thread is ten times as slow as the allowance expects: prompts of a tenth of the length use it up. */
export const COUNTED_MS_PER_BYTE = 0.005;

/**
 * The conductor and everything beneath it, without the HTTP floor: real sockets to hosts, a disk that can be
 * broken.
 */
export async function openTestGateway(
  hosts: readonly Host[],
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const clock = options.clock ?? systemClock;
  const disk = new SimulatedDisk();
  const db = Database.deserialize(MIGRATED, { strict: true });
  const store = new SqliteLedgerStore(new SqliteDatabase(db));
  const faults: unknown[] = [];
  const refusals: Receipt[] = [];
  const reported: string[] = [];
  const counted: ("text" | "files")[] = [];
  const turns: CountTurn[] = [];
  const opening = {
    disk,
    store: store.endsOf(null),
    clock,
    relaxed: false,
    journalFileBytes: 1_000_000,
    writeOffTokens: 50,
    defer: (run: () => void) => void setImmediate(run),
    recoveredBody: recoveredReceipt,
    onFault: (error: unknown) => faults.push(error),
  };
  let holder: Holder | null = holderOf(options.key);
  const current = (_: unknown, at: EpochMs) => (holder !== null && isLive(holder.key, at) ? holder : null);
  const identify = (secret: string, at: EpochMs) => (secret === SECRET ? current(secret, at) : null);
  const sums = options.sums ?? store;
  const { books, ledger } = await openLedger(opening, {
    sums,
    debits: store,
    holders: { current, reread: async () => {} },
  });
  const catalog = catalogOf(hosts, options);
  const credit = nanoFromUsd(options.creditUsd ?? 10)!;
  if (credit > 0) {
    enterCredit(db, {
      balanceId: BALANCE,
      amount: credit,
      idempotencyKey: "first",
      note: null,
      at: clock.now(),
    });
  }
  const transport = new Http1Transport({ clock, onFault: (error) => faults.push(error) });
  const gateway = buildGateway(
    partsOf({
      config: configOf(catalog, { ...SETTINGS, ...options.settings }),
      clock,
      random: systemRandom,
      transport,
      books: booksOf({
        ledger,
        journal: books.journal,
        keyring: {
          identify,
          blockOf: (key, at) => (current(key, at) === null ? "ended" : null),
        } as Partial<Keyring> as Keyring,
      }),
      counting: COUNTING,
      log: (event, fields) => void (event === "fault" && faults.push(fields)),
    }),
  );
  const { generation } = gateway;
  const { slots } = generation;
  const health = options.blind === true ? new BlindHealth(clock) : generation.health;
  for (const { routes } of catalog.models.values())
    for (const route of routes) if (route.free) health.verify(route, true);
  const generate = generator({
    ...generation,
    pairing: options.pairing ?? generation.pairing,
    health,
    suggest: (id) => `The closest is not ${id}.`,
    allowances: () => [{ owner: BALANCE, limit: 3 }],
    userPseudonym: (_, user) => `pseudonym-of-${user}`,
    reporting: {
      openTrace: (headers) => generation.reporting.openTrace(headers),
      finished(done) {
        generation.reporting.finished(done);
        reported.push(done.errorCode === null ? done.state : `${done.state} ${done.errorCode}`);
      },
    },
    counting: {
      ...generation.counting,
      count: async (what, { promptBound, body }, turn) => {
        counted.push(what);
        turns.push(turn);
        await options.counting?.();
        const { promptTokens = promptBound } = options;
        const text = typeof promptTokens === "number" ? promptTokens : promptTokens(promptBound);
        const tokens = what === "text" ? text : (options.fileTokens ?? null);
        return { tokens, ms: what === "text" ? body.length * COUNTED_MS_PER_BYTE : 1 };
      },
      countAnswer: async (texts, family) => {
        await options.countingAnswer?.();
        return generation.counting.countAnswer(texts, family);
      },
      readUnpaid: async ({ body: handedOver }) => {
        const body = new Uint8Array((handedOver.buffer as ArrayBuffer).transfer());
        await options.readingUnpaid?.();
        const read = SURFACES["chat.completions"].readRequest(body);
        return { read, subject: { model: MODEL, stream: false } };
      },
      credit: () => credit,
      allowance: new CountAllowance(options.countClock ?? clock),
    },
    receipts: refusedReceipts(refusals),
    onFault: (error) => void faults.push(error),
  });
  const used = () => [...gateway.inUse(), ...socketsInUse(transport)];
  return {
    ledger,
    change: (key) => {
      holder = key === null ? null : holderOf({ ...options.key, ...key });
    },
    disk,
    faults,
    refusals,
    reported,
    counted,
    turns,
    slots,
    send: (surface, body, signal = new AbortController().signal, headers = new Headers()) =>
      generate(surface, {
        secret: SECRET,
        headers,
        body: new TextEncoder().encode(JSON.stringify(body)),
        blocks: () => [],
        isUnpaid: options.readingUnpaid !== undefined,
        signal,
      }),
    sendBytes: (surface, body) =>
      generate(surface, {
        secret: SECRET,
        headers: new Headers(),
        body,
        blocks: () => [],
        isUnpaid: false,
        signal: new AbortController().signal,
      }),
    receipt(answer) {
      // The books will do so again, which changes nothing.
      void store.ship(null, null, books.journal.unapplied(1_000));
      const id = answer.headers["x-gateway-receipt"] as string;
      const stored = db.query<{ body: string }, [string]>("SELECT body FROM ends WHERE receipt = ?").get(id);
      return stored === null ? null : JSON.parse(stored.body);
    },
    async drifts() {
      await books.journal.flushed();
      await books.catchUp();
      return withMemory(await store.audit(), ledger, books.appliedThrough, (id) => store.spent(id)).drifts;
    },
    async close() {
      try {
        await untilNothingIsInUse(used);
      } finally {
        await books.close();
        transport.close();
      }
    },
  };
}

/** Collects the receipts that it is given to keep. */
function refusedReceipts(refusals: Receipt[]): Receipts {
  const store = { receipt: async () => null, receipts: async () => NONE, unbooked: () => null };
  const receipts = new Receipts(store, null, { known: () => null });
  receipts.keepRefused = (receipt) => void refusals.push(receipt);
  return receipts;
}

const NONE = { receipts: [], nextBefore: null };

/** An empty database, which takes 5 ms to make. */
const MIGRATED = (() => {
  using db = new Database(":memory:");
  for (const migration of SQLITE_SCHEMA.migrations) db.run(migration);
  return db.serialize();
})();

/** Loaded once for all gateways. */
const FAMILIES = new Families();
/** As the thread counts, without one. */
const COUNTING: GatewayParts["counting"] = {
  ...COUNTS_NOTHING,
  count: async (texts, family) => {
    const counter = await FAMILIES.get(family);
    return texts.reduce((sum, text) => sum + counter.count(text), 0);
  },
  billedPrompt: async (body, family) =>
    countPromptTokens(JSON.parse(Buffer.from(body).toString()), await FAMILIES.get(family)),
};

export interface TestGatewayOptions {
  readonly creditUsd?: number;
  readonly key?: Partial<Key>;
  readonly settings?: Partial<GenerationSettings>;
  readonly model?: Partial<Model>;
  readonly free?: boolean;
  readonly auto?: ReadonlyMap<string, readonly string[]>;
  /** Hosts that fail are tried again and again. */
  readonly blind?: boolean;
  /** Next to `test/model`. */
  readonly models?: readonly Model[];
  /**
   * What prompts and the files in them come to when they are counted: their bounds and nobody knows, unless
   * given.
   */
  readonly promptTokens?: number | ((bytes: number) => number);
  readonly fileTokens?: number;
  /** Happens before an answer is counted. */
  readonly countingAnswer?: () => void | Promise<void>;
  /** Happens before a prompt is counted. */
  readonly counting?: () => void | Promise<void>;
  /** Requests are of somebody who could not pay; happens while such a request is read, for which it is handed over. */
  readonly readingUnpaid?: () => void;
  readonly clock?: Clock;
  /** Clock of the windows in which unpaid prompts may be counted. */
  readonly countClock?: Clock;
  /** In place of the surfaces' own. */
  readonly pairing?: GenerationDeps["pairing"];
  /** In place of the database's. */
  readonly sums?: RunningSums;
}

export interface TestGateway {
  readonly ledger: Ledger;
  /** What the key is from now on; null: it is revoked. */
  change(key: Partial<Key> | null): void;
  readonly disk: SimulatedDisk;
  readonly faults: unknown[];
  readonly refusals: Receipt[];
  /** What the operator's figures hear of each request. */
  readonly reported: string[];
  /** What of prompts was counted. */
  readonly counted: ("text" | "files")[];
  /** Where each stood in line. */
  readonly turns: readonly CountTurn[];
  readonly slots: HostSlots;
  send(
    surface: SurfaceName,
    body: object,
    signal?: AbortSignal,
    headers?: Headers,
  ): Promise<GenerationAnswer>;
  sendBytes(surface: SurfaceName, body: Uint8Array): Promise<GenerationAnswer>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into the receipt as its readers do
  receipt(answer: GenerationAnswer): any;
  /** Running sums, in the store or in memory, that are not what the entries say. */
  drifts(): Promise<readonly Drift[]>;
  close(): Promise<void>;
}

const SECRET = "or-live-test";
const MODEL = "test/model";
const BALANCE = "bal_test" as BalanceId;

/** $1 and $10 per million: 1,000 and 10,000 nano-dollars a token. */
const PRICE: Price = {
  input: pricePerMillion(1)!,
  output: pricePerMillion(10)!,
  cacheRead: pricePerMillion(0.1)!,
  cacheWrite: pricePerMillion(1.25)!,
};

const SETTINGS: GenerationSettings = {
  baseUrl: "http://gateway",
  dashboardUrl: "http://gateway/dashboard",
  contact: null,
  attempts: {
    firstTokenMs: 30_000,
    maxHosts: 3,
    hedgeMs: null,
    chunkGapMs: 120_000,
    totalMs: 1_200_000,
  },
  order: "listed",
  chunkGapMs: 10_000,
  keepaliveMs: null,
  totalMs: 60_000,
  writeOffTokens: 50,
  defaultMaxOutputTokens: 1_000,
  openTierRpm: 20,
  sellsCredit: false,
};

function catalogOf(
  hosts: readonly Host[],
  { model, free, auto, models = [] }: TestGatewayOptions,
): CatalogWithLists {
  const whole: Model = {
    id: MODEL,
    name: "Test",
    contextLength: 100_000,
    maxOutputTokens: 4_000,
    price: PRICE,
    routes: hosts.map((host) => ({ host, model: "host-model", price: PRICE, free: free ?? false })),
    ...model,
  };
  return openCatalog({
    models: new Map([whole, ...models].map((one) => [one.id, one])),
    auto: auto ?? new Map(),
    hosts: new Map(hosts.map((host) => [host.id, host])),
  });
}

const holderOf = (limits: Partial<Key> = {}): Holder => ({
  key: keyOf({ balanceId: BALANCE, ...limits }),
  balance: balanceOf({ id: BALANCE }),
  budgets: [],
});

/** A request as small as the language allows. */
export const requestBody = (surface: SurfaceName, more: object = {}): object => {
  const conversation =
    surface === "responses" ? { input: "Hello" } : { messages: [{ role: "user", content: "Hello" }] };
  return { model: MODEL, ...(surface === "messages" ? { max_tokens: 100 } : {}), ...conversation, ...more };
};

/** Runs an answer to its end, as a client that reads everything; `seen` receives what it has so far. */
export async function read(answer: GenerationAnswer, seen = (_text: string) => {}): Promise<string> {
  if (answer.kind === "whole") return new TextDecoder().decode(answer.body);
  const decoder = new TextDecoder();
  let text = "";
  await answer.run({
    write(bytes) {
      text += decoder.decode(bytes, { stream: true });
      seen(text);
      return true;
    },
    close() {},
  });
  return text;
}

export const heldNano = async (gateway: TestGateway): Promise<NanoUsd> =>
  (await gateway.ledger.balance(BALANCE)).held;

/** The receipt once it is booked: a settlement is in the books a sync later than in memory. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into the receipt as its readers do
export async function bookedReceipt(gateway: TestGateway, answer: GenerationAnswer): Promise<any> {
  await until(() => gateway.receipt(answer) !== null);
  return gateway.receipt(answer);
}
