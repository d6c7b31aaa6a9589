import { hashSecret } from "../src/units/secret-hash.ts";
/**
 * The hot pieces, each next to a baseline that does the least that anything could, and each with its result
 * checked: a bench that computes the wrong thing is worthless however fast.
 *
 *     bun run bench micro
 */

import { LRUCache } from "lru-cache";
import { bench, do_not_optimize, group, run } from "mitata";
import type { Key } from "../src/customers/keys/key.ts";
import { Keyring } from "../src/customers/keys/keyring.ts";
import { HostSlots } from "../src/hosts/slots/host-slots.ts";
import { Ledger } from "../src/ledger/ledger.ts";
import { RateWindow } from "../src/ledger/limits/rate-window.ts";
import type { FinishedRequest } from "../src/ledger/receipt.ts";
import { formatRecord, type LedgerRecord } from "../src/ledger/record.ts";
import { Reservation, type ReservationRequest } from "../src/ledger/reservation.ts";
import { Affinity } from "../src/routing/affinity.ts";
import { conversationOf } from "../src/routing/conversation.ts";
import { Health } from "../src/routing/health.ts";
import { makePlan, type Plan } from "../src/routing/plan.ts";
import type { GenerationRequest, HostBody, HostTarget } from "../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../src/surfaces/surfaces.ts";
import { prometheusText } from "../src/telemetry/metric.ts";
import { Metrics } from "../src/telemetry/metrics.ts";
import { estimateTokens } from "../src/tokens/estimate.ts";
import { ByteBudget } from "../src/units/byte-budget.ts";
import { systemClock } from "../src/units/clock.ts";
import type { ReceiptId } from "../src/units/id.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../src/units/usd.ts";
import { balanceOf } from "../test/fakes/balance.ts";
import { KnownHolders } from "../test/fakes/holders.ts";
import { keyOf } from "../test/fakes/key.ts";
import { catalogOf, model, queryFor, route, servedIn } from "../test/routing/world.ts";
import { DELTA } from "./mock-host.ts";

export interface Piece {
  readonly name: string;
  /** The least work that could give the same answer. */
  readonly baseline: () => unknown;
  readonly ours: () => unknown;
  /** Throws when either computes the wrong thing. */
  check(): void;
}

export async function pieces(): Promise<Piece[]> {
  return [
    await keyLookup(),
    rateWindow(),
    await admission(),
    planning(),
    eventScan(),
    paddedEventScan(),
    requestRead(),
    agentRequest(20),
    agentRequest(200),
    estimate(),
    counted(),
    placed(),
  ];
}

function counted(): Piece {
  const slots = new HostSlots(systemClock);
  const metrics = new Metrics({
    knows: () => true,
    hosts: () => [],
    slots,
    bodies: new ByteBudget(1, systemClock),
    sockets: { count: 0, bytes: 0 },
    ledger: { openHolds: 0, lost: ZERO_USD },
    journal: { healthy: true, syncs: 0, unappliedCount: 0, undurable: 0 },
    schema: 1,
    figures: () => [],
    dropped: () => ({}),
  });
  const done = Array.from({ length: 100 }, (_, index) => finishedOf(`a/b${index % 20}`, `h${index % 5}`));
  const counts = new Map<string, number>();
  let [theirs, ours] = [0, 0];
  return {
    name: "a request counted for /metrics: outcome, two times, tokens, cost (one count in a Map)",
    baseline: () => {
      const { model } = done[(theirs = (theirs + 1) % 100)]!;
      counts.set(model!, (counts.get(model!) ?? 0) + 1);
    },
    ours: () => metrics.finished(done[(ours = (ours + 1) % 100)]!),
    check() {
      const line = /gateway_requests_total\{[^}]*model="a\/b1",host="h1"[^}]*\} (\d+)/;
      const before = Number(line.exec(prometheusText(metrics.read()))?.[1] ?? 0);
      metrics.finished(finishedOf("a/b1", "h1"));
      equal(Number(line.exec(prometheusText(metrics.read()))![1]), before + 1);
    },
  };
}

function finishedOf(model: string, host: string): FinishedRequest {
  const tokens = { input: 10, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };
  return {
    id: "rcpt_bench",
    createdAt: NOW,
    state: "settled",
    surface: "chat.completions",
    keyId: key.id,
    modelRequested: model,
    model,
    host,
    attempts: [],
    stream: true,
    tokens,
    tokensFrom: "host",
    price: null,
    cost: 1_000 as NanoUsd,
    held: ZERO_USD,
    writeOff: ZERO_USD,
    firstTokenMs: 300,
    totalMs: 2_000,
    errorCode: null,
    trace: null,
  };
}

function placed(): Piece {
  const slots = new HostSlots(systemClock);
  const host = { id: "h" };
  let taken = 0;
  return {
    name: "a place at a host, taken and given back (a counter)",
    baseline: () => {
      taken += 1;
      taken -= 1;
    },
    ours: () => slots.take(host)!.release(),
    check: () => equal([...slots.loads()][0]?.inFlight ?? 0, taken),
  };
}

const SECRET = "or-live-123456789ABCDEFGHJKLMNPQRSTUVWXY";
const NOW = systemClock.now();

const key = keyOf({
  hash: hashSecret(SECRET),
  rpmLimit: Number.MAX_SAFE_INTEGER,
  tpmLimit: Number.MAX_SAFE_INTEGER,
  dailyLimit: MAX_NANO_USD,
  monthlyLimit: MAX_NANO_USD,
});
const balance = balanceOf({ id: key.balanceId, createdAt: NOW });

async function keyLookup(): Promise<Piece> {
  const keyring = new Keyring({
    keyByHash: async () => key,
    balanceWithBudgets: async () => ({ balance, budgets: [] }),
  });
  await keyring.identify(SECRET, NOW);
  const map = new Map([[SECRET, key]]);
  return {
    name: "key lookup: bearer token → SHA-256 → key (a Map of plaintexts)",
    baseline: () => map.get(SECRET),
    ours: () => keyring.identify(SECRET, NOW),
    check: () => equal((keyring.identify(SECRET, NOW) as { key: Key }).key, map.get(SECRET)),
  };
}

function rateWindow(): Piece {
  const window = new RateWindow();
  let [count, now] = [0, 0];
  return {
    name: "rate window: look and take (a counter)",
    baseline: () => ++count,
    ours: () => (window.taken((now += 0.01)) < 1e9 ? window.take(1, now) : 0),
    check() {
      const fresh = new RateWindow();
      fresh.take(2, 0);
      equal(fresh.taken(59_000), 2);
      equal(fresh.taken(61_000), 0);
    },
  };
}

async function admission(): Promise<Piece> {
  let written = 0;
  // The journal formats its records when it writes them; here each at once, so that its work is in the
  // figure.
  const journal = {
    append: (record: LedgerRecord) => (written += formatRecord(record).length),
    withdraw: () => false,
  };
  const holders = new KnownHolders();
  holders.put(key);
  const ledger = new Ledger(
    systemClock,
    journal,
    { spent: () => ZERO_USD, credited: () => MAX_NANO_USD },
    holders,
  );
  const keyCounters = await ledger.counters.of(key, [], [], NOW);
  const request: ReservationRequest = {
    receipt: "rcpt_bench" as ReceiptId,
    at: NOW,
    key,
    budgets: [],
    allowances: [],
    rpmLimit: key.rpmLimit,
    freeRpmLimit: null,
    tpmLimit: key.tpmLimit,
    amount: 1_000 as NanoUsd,
    worst: 1_000 as NanoUsd,
    rateTokens: 100,
    most: { amount: 1_000 as NanoUsd, tokens: 100 },
    promptTokens: 10,
    price: { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 } as ReservationRequest["price"],
    about: { surface: "chat.completions", model: "bench/model", stream: false },
  };
  const end = {
    state: "settled",
    cost: ZERO_USD,
    rateTokens: 100,
    allowanceUsed: false,
  } as const;
  let held = 0;
  const admit = () => {
    const reservation = ledger.admit(keyCounters, request);
    if (!(reservation instanceof Reservation)) throw new Error("refused");
    ledger.settle(reservation, end, () => "{}");
    return reservation.held;
  };
  return {
    name: "admission and settlement: every limit, both journal records (an addition and a subtraction)",
    baseline: () => (held += 1_000) && (held -= 1_000),
    ours: admit,
    check: () => equal([admit(), ledger.openHolds].join(), "1000,0"),
  };
}

function planning(): Piece {
  const health = new Health(systemClock);
  const affinity = new Affinity(systemClock);
  const routes = ["a", "b", "c"].map((id) => route(id));
  const catalog = catalogOf([model("bench/model", routes)]);
  for (const one of routes) health.observe(one, servedIn(100, 100));
  const request = SURFACES["chat.completions"].readRequest(BODY) as GenerationRequest;
  const headers = new Headers({ "user-agent": "bench" });
  const plan = () => {
    const { conversation } = conversationOf(request, headers, key.balanceId);
    const query = queryFor("bench/model", { sticky: affinity.stickyRoute(conversation) });
    const made = makePlan({ ...query, catalog, routeState: health }, () => "") as Plan;
    const [first] = made.candidates;
    affinity.served(conversation, first!, { isHome: first!.route === made.home, keptMs: 300_000 });
    return made;
  };
  return {
    name: "plan: three hosts' health, the conversation's host found and kept (the model's entry)",
    baseline: () => catalog.models.get("bench/model")!.routes,
    ours: plan,
    check: () =>
      equal(
        plan()
          .candidates.map(({ route: { host } }) => host.id)
          .join(),
        "a,b,c",
      ),
  };
}

function eventScan(): Piece {
  const request = SURFACES["chat.completions"].readRequest(BODY);
  const bytes = new TextEncoder().encode(DELTA);
  const text = DELTA.slice("data: ".length).trim();
  const open = () => openChat(request);
  const judge = open();
  return {
    name: "one SSE event: cut, judged, counted, model put back (JSON.parse of its data)",
    baseline: () => JSON.parse(text),
    ours: () => judge.push(bytes),
    check() {
      const given = new TextDecoder().decode(open().push(bytes));
      equal(given, DELTA.replace("bench-model", "bench/model"));
    },
  };
}

function paddedEventScan(): Piece {
  const request = SURFACES["chat.completions"].readRequest(BODY);
  const texts = [1, 9, 4, 15, 6, 12, 2].map((length) =>
    DELTA.slice("data: ".length)
      .trim()
      .replace(/}$/, `,"obfuscation":"${"x".repeat(length)}"}`),
  );
  const events = texts.map((text) => new TextEncoder().encode(`data: ${text}\n\n`));
  const judge = openChat(request);
  let [theirs, ours] = [0, 0];
  return {
    name: "the same event, padded to another length each time, as OpenAI does (JSON.parse of its data)",
    baseline: () => JSON.parse(texts[(theirs = (theirs + 1) % texts.length)]!),
    ours: () => judge.push(events[(ours = (ours + 1) % events.length)]!),
    check() {
      const judge = openChat(request);
      for (const [at, event] of events.entries()) {
        const given = new TextDecoder().decode(judge.push(event));
        equal(given, `data: ${texts[at]!.replace("bench-model", "bench/model")}\n\n`);
      }
    },
  };
}

const openChat = (request: unknown) =>
  pairing("chat.completions", "chat.completions").openStream(request as never, {
    publicModel: "bench/model",
    atS: 0,
  });

const BODY = new TextEncoder().encode(
  JSON.stringify({
    model: "bench/model",
    stream: true,
    max_tokens: 100,
    messages: Array.from({ length: 8 }, (_, turn) => ({
      role: turn % 2 === 0 ? "user" : "assistant",
      content: "The quick brown fox jumps over the lazy dog, and then it does so again. ".repeat(4),
    })),
  }),
);

function requestRead(): Piece {
  const { readRequest } = SURFACES["chat.completions"];
  const decoder = new TextDecoder();
  return {
    name: `a request of ${BODY.length} bytes: scanned, parsed, sized (decode and JSON.parse)`,
    baseline: () => JSON.parse(decoder.decode(BODY)),
    ours: () => readRequest(BODY),
    check: () => equal((readRequest(BODY) as { model: string }).model, "bench/model"),
  };
}

/** What an agent sends at one of its later turns, up to the bytes for a host of its own language. */
function agentRequest(kB: number): Piece {
  const { readRequest } = SURFACES["chat.completions"];
  const { hostBody } = pairing("chat.completions", "chat.completions");
  const decoder = new TextDecoder();
  const body = agentBody(kB * 1_000);
  const sent = () => hostBody(readRequest(body) as GenerationRequest, AGENT_TARGET) as HostBody;
  return {
    name: `an agent's request of ${kB} kB, read and written for its host (decode and JSON.parse)`,
    baseline: () => JSON.parse(decoder.decode(body)),
    ours: sent,
    check: () => equal(JSON.parse(decoder.decode(Buffer.concat(sent().parts))).model, "host-model"),
  };
}

const AGENT_TARGET: HostTarget = {
  stream: true,
  model: "host-model",
  publicModel: "bench/model",
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 4_096,
};

/** Instructions, tools, and as many calls of them with their results, which are code, as fill the bytes. */
function agentBody(bytes: number): Uint8Array {
  const code = Array.from(
    { length: 80 },
    (_, n) => `  if (value${n} === null) return "none";\n\tawait read(${n});`,
  );
  const tools = Array.from({ length: 10 }, (_, n) => ({
    type: "function",
    function: {
      name: `tool_${n}`,
      description: "Reads a file, or a part of it. ".repeat(6),
      parameters: { type: "object", properties: { path: { type: "string" }, lines: { type: "integer" } } },
    },
  }));
  const head = { model: "bench/model", stream: true, max_tokens: 4_096, tools };
  const messages: object[] = [
    { role: "system", content: "You write code. ".repeat(bytes / 200) },
    { role: "user", content: "Fix the failing test." },
  ];
  let size = JSON.stringify({ ...head, messages }).length;
  for (let n = 0; size < bytes; n++) {
    const path = JSON.stringify({ path: `src/file${n}.ts`, text: 'a "quoted" line\n' });
    const call = { id: `call_${n}`, type: "function", function: { name: "tool_1", arguments: path } };
    const turns = [
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: call.id, content: code.slice(0, 10 + ((n * 7) % 70)).join("\n") },
    ];
    messages.push(...turns);
    size += JSON.stringify(turns).length;
  }
  return new TextEncoder().encode(JSON.stringify({ ...head, messages }));
}

function estimate(): Piece {
  const text = " token";
  const cache = new LRUCache<string, number>({ max: 10 });
  cache.set(text, 2);
  return {
    name: "tokens of a delta (a cache hit)",
    baseline: () => cache.get(text),
    ours: () => estimateTokens(text),
    check: () => equal(estimateTokens(text), 1.5),
  };
}

function equal(actual: unknown, expected: unknown): void {
  if (actual !== expected) throw new Error(`computed ${String(actual)}, expected ${String(expected)}`);
}

if (import.meta.main) {
  for (const piece of await pieces()) {
    piece.check();
    group(piece.name, () => {
      bench("baseline", () => do_not_optimize(piece.baseline()));
      bench("ours", () => do_not_optimize(piece.ours()));
    });
  }
  await run();
}
