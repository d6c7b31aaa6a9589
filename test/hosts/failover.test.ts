import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Destinations } from "../../src/hosts/destination.ts";
import {
  type FailoverCall,
  type FailoverDeps,
  type FailoverOutcome,
  tryHosts,
} from "../../src/hosts/failover.ts";
import { HostSlots, type Slot } from "../../src/hosts/slots/host-slots.ts";
import { LOST_HEDGE } from "../../src/ledger/receipt.ts";
import { paidCandidates } from "../../src/routing/candidate.ts";
import { Health } from "../../src/routing/health.ts";
import type { Plan } from "../../src/routing/plan.ts";
import type { InUse } from "../../src/server/in-use.ts";
import type { GenerationRequest } from "../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../src/surfaces/surfaces.ts";
import { Deadlines } from "../../src/units/deadlines.ts";
import type { BalanceId, ReceiptId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";
import { ManualClock } from "../fakes/clock.ts";
import { untilNothingIsInUse } from "../fakes/nothing-in-use.ts";
import { type Deed, ScriptedHosts } from "../fakes/scripted-hosts.ts";
import { BALANCE, catalogOf, failedFor, model, route, servedIn } from "../routing/world.ts";

const ROUTES = [route("a"), route("b"), route("c"), route("d")];
const MODEL = model("x/one", ROUTES);
const PLAN: Plan = {
  tier: "paid",
  candidates: paidCandidates(MODEL, { surface: "chat.completions" }),
  home: null,
  auto: null,
  movesOn: "never",
};

let clock = new ManualClock();
let health = new Health(clock);
let hosts: ScriptedHosts;
let slots = new HostSlots(clock);
let faults: unknown[] = [];
let started: { outcome: Promise<FailoverOutcome>; inUse(): InUse[] }[] = [];
beforeEach(() => {
  started = [];
  faults = [];
  clock = new ManualClock();
  health = new Health(clock);
});

afterEach(async () => {
  for (const { outcome } of started) {
    const ended = await outcome.catch(() => null);
    if (ended?.kind === "opened") ended.cancel();
  }
  await untilNothingIsInUse(() => started.flatMap(({ inUse }) => inUse()));
});

interface Options {
  readonly stream?: boolean;
  readonly maxTokens?: number;
  readonly hedgeMs?: number;
  readonly plan?: Plan;
  readonly signal?: AbortSignal;
  readonly prompt?: string;
  readonly pairing?: FailoverDeps["pairing"];
  readonly balanceId?: BalanceId;
  readonly before?: (slots: HostSlots) => void;
}

/** Starts an attempt on hosts that do as the test says; a host that is not named fails at once. */
function start(script: Readonly<Record<string, Deed>>, options: Options = {}): Promise<FailoverOutcome> {
  const {
    stream = true,
    hedgeMs = null,
    plan = PLAN,
    signal = new AbortController().signal,
    prompt = "Hello",
  } = options;
  const body = {
    model: "x/one",
    stream,
    max_tokens: options.maxTokens,
    messages: [{ role: "user", content: prompt }],
  };
  const request = SURFACES["chat.completions"].readRequest(new TextEncoder().encode(JSON.stringify(body)));
  slots = new HostSlots(clock);
  options.before?.(slots);
  hosts = new ScriptedHosts(clock, (id) => script[id] ?? { does: "fails", status: 500, ms: 0 });
  const call: FailoverCall = {
    signal,
    limits: { firstTokenMs: 30_000, maxHosts: 3, hedgeMs, chunkGapMs: 120_000, totalMs: 1_200_000 },
    clientHeaders: {},
    outputCeiling: null,
    defaultMaxOutputTokens: 100,
    prepared: null,
    keyId: "key",
    conversation: null,
    balanceId: options.balanceId ?? BALANCE,
    trace: null,
    receipt: "req_test" as ReceiptId,
  };
  const deps: FailoverDeps = {
    transport: hosts,
    clock,
    deadlines: new Deadlines(clock, (error) => void faults.push(error)),
    destinations: new Destinations(),
    pairing: options.pairing ?? pairing,
    health,
    slots,
    random: systemRandom,
    onFault: (error) => faults.push(error),
    tried() {},
  };
  const outcome = tryHosts(request as GenerationRequest, plan, call, deps);
  started.push({ outcome, inUse: () => [...usedBy(deps)] });
  return outcome;
}

function* usedBy({ deadlines, health: learnt, slots: taken, transport }: FailoverDeps): Generator<InUse> {
  for (const { host, inFlight, waiting } of taken.loads()) {
    yield [`requests in flight at ${host}`, inFlight];
    yield [`requests waiting for ${host}`, waiting];
  }
  yield ["probes of resting hosts", learnt.probes];
  yield ["deadlines", deadlines.count];
  yield ["exchanges that were not ended", (transport as ScriptedHosts).openExchanges];
}

/** Lets time pass, a piece at a time, so that whatever follows from a timer can follow. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 50) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(Math.min(50, left));
  }
  await new Promise((resolve) => setImmediate(resolve));
}

const tried = ({ tries }: FailoverOutcome): string =>
  tries.map(({ host, outcome, ms }) => `${host} ${outcome} ${Math.round(ms)}`).join(", ");
const answers = (ms: number): Deed => ({ does: "answers", ms });
const answersWhole = (ms: number): Deed => ({ does: "answers whole", ms });
const NOTHING: Deed = { does: "nothing" };

/** As if a host had answered 20 streams after so long. */
const knows = (host: string, firstTokenMs: number, promptTokens = 5): void => {
  for (let count = 0; count < 20; count++) {
    health.observe(ROUTES.find(({ host: { id } }) => id === host)!, servedIn(firstTokenMs, promptTokens));
  }
};

describe("how long a host is waited for", () => {
  test("a third of the time each, as long as nothing is known of it", async () => {
    const outcome = start({ a: NOTHING, b: NOTHING, c: NOTHING });
    await pass(30_000);
    expect(tried(await outcome)).toBe("a silent 10000, b silent 10000, c silent 10000");
    expect((await outcome).kind).toBe("exhausted");
  });

  test("half as long again as what is slow for it, while another is ready", async () => {
    knows("a", 1_000);
    const outcome = start({ a: NOTHING, b: answers(200) });
    await pass(1_700);
    expect(tried(await outcome)).toBe("a silent 1500, b opened 200");
    expect(hosts.left).toEqual(["a"]);
  });

  test("a host of which nothing is known: three times as long as what is slow for the other", async () => {
    knows("b", 1_000);
    const outcome = start({ a: NOTHING, b: answers(200) });
    await pass(3_200);
    expect(tried(await outcome)).toBe("a silent 3000, b opened 200");
  });

  test("never less than half a second", async () => {
    knows("a", 20);
    const outcome = start({ a: answers(450) });
    await pass(450);
    expect(tried(await outcome)).toBe("a opened 450");
  });

  test("longer where the other is slower", async () => {
    knows("a", 1_000);
    knows("b", 3_000);
    const outcome = start({ a: answers(4_000) });
    await pass(4_000);
    expect(tried(await outcome)).toBe("a opened 4000");
  });

  test("the last host gets all the time that is left", async () => {
    for (const host of ["a", "b", "c"]) knows(host, 1_000);
    const outcome = start({ a: NOTHING, b: NOTHING, c: answers(20_000) });
    await pass(23_000);
    expect(tried(await outcome)).toBe("a silent 1500, b silent 1500, c opened 20000");
  });

  test("so does a host whose others all rest", async () => {
    knows("a", 1_000);
    for (const one of ROUTES.slice(1)) {
      for (let count = 0; count < 3; count++) health.observe(one, failedFor(null));
    }
    clock.advance(0);
    const outcome = start({ a: answers(1_900) });
    await pass(900);
    expect(hosts.requests).toEqual(["a"]);
    await pass(1_000);
    expect(tried(await outcome)).toBe("a opened 1900");
  });

  test("a long prompt is compared with long prompts", async () => {
    knows("a", 1_000);
    const outcome = start({ a: answers(5_000) }, { prompt: "word ".repeat(4_000) });
    await pass(5_000);
    expect(tried(await outcome)).toBe("a opened 5000");
  });

  test("an unstreamed answer takes its time", async () => {
    knows("a", 1_000);
    const outcome = start({ a: NOTHING }, { stream: false });
    await pass(9_000);
    expect(hosts.requests).toEqual(["a"]);
    await pass(1_000);
    expect(tried(await outcome)).toStartWith("a silent 10000");
  });
});

describe("hedging", () => {
  test("after the time that is configured, the next host is asked as well, and the faster serves", async () => {
    const outcome = start({ a: answers(3_000), b: answers(300) }, { hedgeMs: 1_000 });
    await pass(1_300);
    expect(tried(await outcome)).toBe(`a ${LOST_HEDGE} 1300, b opened 300`);
    expect(hosts.left).toEqual(["a"]);
  });

  test("the first may still be the faster", async () => {
    const outcome = start({ a: answers(1_100), b: answers(300) }, { hedgeMs: 1_000 });
    await pass(1_300);
    expect(tried(await outcome)).toBe(`a opened 1100, b ${LOST_HEDGE} 100`);
    expect(hosts.left).toEqual(["b"]);
  });

  test("a fast answer asks nobody else", async () => {
    const outcome = start({ a: answers(900) }, { hedgeMs: 1_000 });
    await pass(900);
    expect(tried(await outcome)).toBe("a opened 900");
    expect(clock.pending).toBe(0);
  });

  test("one that fails leaves the other, and the next follows when both did", async () => {
    const outcome = start(
      { a: NOTHING, b: { does: "fails", status: 500, ms: 100 }, c: answers(100) },
      { hedgeMs: 1_000 },
    );
    await pass(10_200);
    expect(tried(await outcome)).toBe("a silent 10000, b refused 100, c opened 100");
  });

  test("a host that lost a hedge does not count as failed", async () => {
    for (let count = 0; count < 5; count++) {
      const outcome = start({ a: NOTHING, b: answers(100) }, { hedgeMs: 1_000 });
      await pass(1_100);
      expect(tried(await outcome)).toBe(`a ${LOST_HEDGE} 1100, b opened 100`);
    }
    expect(health.usable(ROUTES[0]!)).toBe(true);
  });

  test("when the client leaves, both are left", async () => {
    const abort = new AbortController();
    const outcome = start({ a: NOTHING, b: NOTHING }, { hedgeMs: 1_000, signal: abort.signal });
    await pass(1_100);
    abort.abort();
    expect(tried(await outcome)).toBe("a abandoned 1100, b abandoned 100");
    expect(hosts.left.toSorted()).toEqual(["a", "b"]);
    expect(clock.pending).toBe(0);
  });

  test("unstreamed answers are not hedged", async () => {
    const abort = new AbortController();
    void start({ a: NOTHING }, { hedgeMs: 1_000, stream: false, signal: abort.signal });
    await pass(5_000);
    expect(hosts.requests).toEqual(["a"]);
    abort.abort();
  });
});

describe("a host that cannot stream", () => {
  const WHOLE = model("x/one", [route("a", { quirks: { noStream: true } }), ...ROUTES.slice(1)]);
  const plan: Plan = {
    ...PLAN,
    candidates: paidCandidates(WHOLE, { surface: "chat.completions" }),
  };
  const turned: Plan = { ...plan, candidates: [plan.candidates[1]!, plan.candidates[0]!] };

  test("has its share of the time while another is ready, since its answer may be long", async () => {
    knows("b", 1_000);
    const outcome = start({ a: answersWhole(9_000) }, { plan });
    await pass(9_000);
    expect(tried(await outcome)).toBe("a opened 9000");
  });

  test("has failed once its share is over, and the next is asked", async () => {
    const outcome = start({ a: NOTHING, b: answers(200) }, { plan });
    await pass(10_200);
    expect(tried(await outcome)).toBe("a silent 10000, b opened 200");
  });

  test("is not hedged", async () => {
    const outcome = start({ a: answersWhole(5_000) }, { plan, hedgeMs: 1_000 });
    await pass(5_000);
    expect(tried(await outcome)).toBe("a opened 5000");
    expect(hosts.requests).toEqual(["a"]);
  });

  test("may be the faster where one that streams is late", async () => {
    const outcome = start({ b: NOTHING, a: answersWhole(300) }, { plan: turned, hedgeMs: 1_000 });
    await pass(1_300);
    expect(tried(await outcome)).toBe(`b ${LOST_HEDGE} 1300, a opened 300`);
    expect(hosts.left).toContain("b");
  });

  test("is not known by the time of its whole answers", async () => {
    const outcome = start({ a: answersWhole(3_000) }, { plan });
    await pass(3_000);
    expect((await outcome).kind).toBe("opened");
    const { route: whole } = plan.candidates[0]!;
    expect([health.lastAttempt(whole), health.speed(whole)?.firstTokenMs ?? null]).toEqual(["served", null]);
  });

  test("has its place back as soon as its answer is here", async () => {
    const outcome = start({ a: answersWhole(100) }, { plan });
    await pass(100);
    expect((await outcome).kind).toBe("opened");
    expect([...slots.loads()].map(({ inFlight }) => inFlight)).toEqual([0]);
  });
});

describe("retries", () => {
  const down = (...ids: string[]): void => {
    for (const one of ROUTES.filter(({ host: { id } }) => ids.includes(id))) {
      health.observe(one, failedFor(120_000));
    }
  };
  /** Requests that fail on every host they may try. */
  async function attemptsOf(requests: number): Promise<number> {
    let attempts = 0;
    for (let count = 0; count < requests; count++) attempts += (await start({})).tries.length;
    return attempts;
  }

  test("while half of a model's hosts are down, there is half a retry a request, next to a reserve", async () => {
    down("a", "b");
    const attempts = await attemptsOf(1_000);
    expect(attempts).toBeGreaterThan(1_000);
    expect(attempts).toBeLessThanOrEqual(1_500 + 50);
  });

  test("while fewer are down, each request may try three, whatever was spent", async () => {
    down("d");
    while (spent()) {}
    expect(tried(await start({ c: { does: "answers", ms: 0 } }))).toBe(
      "a refused 0, b refused 0, c opened 0",
    );
    down("b");
    while (spent()) {}
    // What two requests add together is one retry, which the first of them takes.
    await start({});
    expect(tried(await start({ b: { does: "answers", ms: 0 } }))).toBe("a refused 0");
  });

  /** Takes one of the retries that are left; false when there was none. */
  function spent(): boolean {
    const all = route("z");
    const gone = model("x/gone", [all]);
    health.observe(all, failedFor(120_000));
    return health.mayRetry(gone, gone.routes[0]!);
  }
});

describe("how long a host asks to be left alone", () => {
  const retryInfo = JSON.stringify([
    { error: { code: 429, message: "Quota.", details: [{ retryDelay: "7.5s" }] } },
  ]);
  test.each<[string, number, Record<string, string>, string | undefined, number]>([
    ["seconds", 429, { "retry-after": "7" }, undefined, 7_000],
    ["seconds, when it is down", 503, { "retry-after": "7" }, undefined, 7_000],
    ["a fraction of one", 429, { "retry-after": "7.66" }, undefined, 7_660],
    [
      "milliseconds, as OpenAI and Azure have them next to seconds",
      429,
      { "retry-after": "8", "retry-after-ms": "7250" },
      undefined,
      7_250,
    ],
    ["in its words, as Google does", 429, {}, retryInfo, 7_500],
    ["nonsense", 429, { "retry-after": "soon", "retry-after-ms": "-5" }, undefined, 0],
    ["next to another status", 500, { "retry-after": "7" }, undefined, 0],
  ])("%s", async (_how, status, headers, body, restMs) => {
    await start({ a: { does: "fails", status, ms: 0, headers, ...(body === undefined ? {} : { body }) } });
    expect(health.restMs(ROUTES[0]!)).toBe(restMs);
  });
});

describe("what a host says of the gateway's account there", () => {
  const refuses = (status: number, error: object): Deed => ({
    does: "fails",
    status,
    ms: 0,
    body: JSON.stringify({ error }),
  });
  const quota = refuses(429, { message: "You exceeded your current quota.", code: "insufficient_quota" });

  test("concerns all of its models, and is no reason to give it fewer requests at once", async () => {
    for (let count = 0; count < 3; count++) {
      await start({ a: quota });
      expect([...slots.loads()].map(({ cut }) => cut)).not.toContain(1);
    }
    expect(health.usable(route("a", { model: "another" }))).toBe(false);
  });

  test("rests it for nobody else, where only one balance meets it", async () => {
    for (let count = 0; count < 3; count++) {
      health.observe(ROUTES[0]!, servedIn(100));
      await start(
        { a: refuses(400, { message: "Your credit balance is too low." }) },
        { balanceId: "bal_other" as BalanceId },
      );
    }
    expect(health.usable(ROUTES[0]!)).toBe(true);
  });
});

describe("a host that is just being probed", () => {
  const rest = (): void => {
    for (let count = 0; count < 3; count++) {
      health.observe(ROUTES[0]!, failedFor(null));
    }
    clock.advance(1_000);
  };

  test("is asked by one request; the others go to the next", async () => {
    rest();
    const script = { a: answers(500), b: answers(100) };
    const probe = start(script);
    const used = hosts;
    const other = start(script);
    await pass(600);
    expect([tried(await probe), tried(await other)]).toEqual(["a opened 500", "b opened 100"]);
    expect([used.requests, hosts.requests]).toEqual([["a"], ["b"]]);
  });

  test("is asked after all when there is no other", async () => {
    rest();
    const plan = { ...PLAN, candidates: PLAN.candidates.slice(0, 1) };
    const both = [start({ a: answers(100) }, { plan }), start({ a: answers(100) }, { plan })];
    await pass(150);
    expect((await Promise.all(both)).map(tried)).toEqual(["a opened 100", "a opened 100"]);
  });
});

test("no host gets the request of a client that left the line, even if a host is free by then", async () => {
  const routes = ["a", "b"].map((id) => {
    const one = route(id);
    return { ...one, host: { ...one.host, maxConcurrent: 1 } };
  });
  const candidates = paidCandidates(model("x/two", routes), { surface: "chat.completions" });
  const abort = new AbortController();
  const takeSlots = (busy: HostSlots) => routes.map(({ host }) => busy.take(host)!);
  let held: ReturnType<typeof takeSlots> = [];
  const outcome = start(
    { a: NOTHING, b: NOTHING },
    { plan: { ...PLAN, candidates }, signal: abort.signal, before: (busy) => (held = takeSlots(busy)) },
  );
  await pass(100);
  held[0]!.release();
  abort.abort();
  await pass(50);
  expect(hosts.requests).toEqual([]);
  expect(await outcome).toEqual({ kind: "abandoned", workingHost: null, tries: [] });
  held[1]!.release();
});

test("a client that leaves just as its turn comes gives its slot to the next", async () => {
  const one = route("a");
  const limited = { ...one, host: { ...one.host, maxConcurrent: 1 } };
  const candidates = paidCandidates(model("x/one", [limited]), { surface: "chat.completions" });
  const abort = new AbortController();
  let held: Slot | null = null;
  const before = (busy: HostSlots) => {
    held = busy.take(limited.host);
  };
  const outcome = start({ a: NOTHING }, { plan: { ...PLAN, candidates }, signal: abort.signal, before });
  await pass(100);
  held!.release();
  abort.abort();
  await pass(50);
  expect(hosts.requests).toEqual([]);
  expect(await outcome).toEqual({ kind: "abandoned", workingHost: null, tries: [] });
  const taken = slots.take(limited.host);
  expect(taken).not.toBeNull();
  taken!.release();
});

describe("a neighbour whose requests make a host fail", () => {
  const plan = { ...PLAN, candidates: PLAN.candidates.slice(0, 1) };
  const asks = async (balanceId: string, deed: Deed): Promise<FailoverOutcome> => {
    const outcome = start({ a: deed }, { plan, balanceId: balanceId as BalanceId });
    await pass(deed.does === "nothing" ? 30_000 : 100);
    return outcome;
  };
  const fails = (status: number): Deed => ({ does: "fails", status, ms: 0 });
  const cases: [Deed, boolean][] = [
    ...[403, 404, 405, 408, 409, 410, 421, 425, 499, 504, 524].map((status): [Deed, boolean] => [
      fails(status),
      true,
    ]),
    ...[401, 402, 429, 500, 502, 503, 529].map((status): [Deed, boolean] => [fails(status), false]),
    [{ does: "refuses" }, false],
  ];
  for (const [deed, spared] of cases) {
    const how = deed.does === "fails" ? `answers ${deed.status}` : "refuses connections";
    test(`a host that ${how} to one balance while others are served ${spared ? "serves on" : "rests"}`, async () => {
      await asks("bal_other", answers(50));
      for (let count = 0; count < 3; count++) await asks("bal_neighbour", deed);
      expect(health.usable(ROUTES[0]!)).toBe(spared);
    });
  }

  test("a host that is silent to one balance and answers another serves on", async () => {
    const silences = [1, 2, 3].map(() =>
      start({ a: NOTHING }, { plan, balanceId: "bal_neighbour" as BalanceId }),
    );
    await pass(29_900);
    const other = start({ a: answers(50) }, { plan, balanceId: "bal_other" as BalanceId });
    await pass(200);
    expect((await Promise.all(silences)).map(tried)).toEqual(Array(3).fill("a silent 30000"));
    expect(tried(await other)).toBe("a opened 50");
    expect(health.usable(ROUTES[0]!)).toBe(true);
  });
});

describe("a mistake of the gateway's own", () => {
  const whole = pairing("chat.completions", "chat.completions");

  for (const stream of [true, false]) {
    test(`while it reads a ${stream ? "streamed" : "whole"} answer counts as that host's failure: the next one is asked, the operator notified`, async () => {
      const unreadable: FailoverDeps["pairing"] = () => {
        const isFirst = hosts.requests.length === 0;
        const judge = () => {
          throw new Error("a mistake");
        };
        return isFirst ? { ...whole, openStream: judge, openWhole: judge, readReply: judge } : whole;
      };
      const outcome = start({ a: answers(100), b: answers(100) }, { stream, pairing: unreadable });
      await pass(300);
      // The scripted answer is a stream without an end, which is too little for one that is wanted whole.
      expect(tried(await outcome)).toStartWith(`a refused 100, b ${stream ? "opened" : "refused"} 100`);
      expect(faults).toEqual([new Error("a mistake")]);
      expect(hosts.left).toContain("a");
      expect([...slots.loads()].map(({ inFlight }) => inFlight)).toEqual(stream ? [0, 1] : [0, 0, 0]);
      expect(health.report(catalogOf([MODEL])).find(({ id }) => id === "a")!.failed).toBe(1);
    });
  }

  test("before a host is asked leaves no host working and no place taken", async () => {
    let bodies = 0;
    const faulty: FailoverDeps["pairing"] = () => ({
      ...whole,
      hostBody(...args) {
        if (++bodies === 2) throw new Error("a mistake");
        return whole.hostBody(...args);
      },
    });
    const outcome = start({ a: answers(500) }, { hedgeMs: 200, pairing: faulty });
    const failed = outcome.catch((error: Error) => error.message);
    await pass(1_000);
    expect(await failed).toBe("a mistake");
    expect(hosts.requests).toEqual(["a"]);
    expect(hosts.left).toEqual(["a"]);
    expect([...slots.loads()].map(({ inFlight }) => inFlight)).toEqual([0]);
  });
});

test("the time of a broken answer behind its first token is not taken from the next host", async () => {
  const breaks = { does: "breaks", ms: 1_000, afterMs: 60_000 } as const;
  const outcome = start({ a: breaks, b: answersWhole(10_000) }, { stream: false, maxTokens: 400 });
  await pass(71_000);
  expect(tried(await outcome)).toBe("a unreachable 61000, b answered 10000");
});

describe("an error status", () => {
  const fails = (status: number, error: object = { message: "no" }): Deed => ({
    does: "fails",
    status,
    ms: 0,
    body: JSON.stringify({ error }),
  });
  const hostsOwn = [
    401, 402, 403, 404, 405, 407, 408, 409, 410, 421, 425, 429, 498, 499, 500, 503, 504, 529, 600,
  ];

  test.each(hostsOwn)("%i is the host's failure: the next host serves", async (status) => {
    const outcome = await start({ a: fails(status), b: answers(0) });
    expect(tried(outcome)).toBe("a refused 0, b opened 0");
  });

  test.each([400, 406, 413, 415, 422, 451, 497])(
    "%i is a verdict on the request: no other host gets it",
    async (status) => {
      const outcome = await start({ a: fails(status), b: answers(0) });
      expect([outcome.kind, tried(outcome)]).toEqual(["rejected", "a rejected 0"]);
    },
  );

  test.each(hostsOwn.map((status) => [status, [401, 402, 407].includes(status)] as const))(
    "%i concerns all models of the host: %p",
    async (status, wholeHost) => {
      for (let count = 0; count < 3; count++) await start({ a: fails(status) });
      expect(health.usable(route("a", { model: "another" }))).toBe(!wholeHost);
    },
  );

  test.each(hostsOwn.map((status) => [status, [408, 429, 498, 503, 504, 529].includes(status)] as const))(
    "%i says that the host has too much to do: %p",
    async (status, isOverload) => {
      await start({ a: fails(status), b: answers(0) });
      expect([...slots.loads()].find(({ host }) => host === "a")!.cut).toBe(isOverload ? 1 : 0);
    },
  );

  test("names no secret of the host, neither in its words nor in the field that it blames", async () => {
    const outcome = await start({
      a: fails(400, {
        message: "bad host-secret",
        param: "tools[host-secret]",
        type: "invalid_request_error",
      }),
    });
    expect(outcome.kind).toBe("rejected");
    expect(JSON.stringify(outcome)).toContain("[hidden]");
    expect(JSON.stringify({ ...outcome, candidate: null })).not.toContain("host-secret");
  });
});
