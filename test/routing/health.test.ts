import { beforeEach, describe, expect, test } from "bun:test";
import type { Route } from "../../src/catalog/catalog.ts";
import { Health, type HostRest, type Observation } from "../../src/routing/health.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";
import { BALANCE, catalogOf, failedFor, model, route, servedIn } from "./world.ts";

const A = route("a");
const A_OTHER = { ...A, model: "another" };
const SERVED: Observation = servedIn(100);
const FAILED: Observation = failedFor(null);
const UNREACHABLE: Observation = failedFor(null, true);
const NOTHING: Observation = { kind: "nothing" };

let clock = new ManualClock();
let health = new Health(clock);
beforeEach(() => {
  clock = new ManualClock();
  health = new Health(clock);
});

/** As an attempt does: in, if it may. */
function enter(one: Route): boolean {
  if (!health.usable(one)) return false;
  health.enter(one);
  return true;
}

const attempts = (...lessons: Observation[]): void => {
  for (const observation of lessons) {
    enter(A);
    health.observe(A, observation);
  }
};
const FIRST_REST_MS = 1_000;

describe("how the last attempt at a route ended", () => {
  test.each<[string, readonly Observation[], "served" | "failed" | null]>([
    ["nothing was tried", [], null],
    ["it served", [FAILED, SERVED], "served"],
    ["it failed once", [SERVED, FAILED], "failed"],
    ["its host cannot be reached", [SERVED, UNREACHABLE], "failed"],
    ["a client left", [NOTHING], null],
  ])("%s", (_what, lessons, expected) => {
    attempts(...lessons);
    expect(health.lastAttempt(A)).toBe(expected);
  });

  test("a stream that broke midway", () => {
    attempts(SERVED);
    health.streamEnded(A, { kind: "host_failed", tokens: 3, ms: 10, by: BALANCE });
    expect(health.lastAttempt(A)).toBe("failed");
  });

  test("a model that was never tried, of a host that cannot be reached", () => {
    attempts(UNREACHABLE);
    expect(health.lastAttempt(A_OTHER)).toBe("failed");
  });
});

describe("a circuit", () => {
  test("opens after three failures in a row, and not before", () => {
    attempts(FAILED, FAILED, SERVED, FAILED, FAILED);
    expect(health.usable(A)).toBe(true);
    attempts(FAILED);
    expect(health.restMs(A)).toBe(FIRST_REST_MS);
  });

  test("what a host thinks of a request, and clients that leave, never count", () => {
    attempts(FAILED, FAILED, ...Array<Observation>(50).fill(NOTHING));
    expect(health.usable(A)).toBe(true);
    attempts(FAILED);
    expect(health.usable(A)).toBe(false);
  });

  test("after its rest lets one request through at a time", () => {
    attempts(FAILED, FAILED, FAILED);
    clock.advance(FIRST_REST_MS - 1);
    expect(enter(A)).toBe(false);
    clock.advance(1);
    expect(enter(A)).toBe(true);
    expect(enter(A)).toBe(false);
    expect(health.usable(A)).toBe(false);
    health.observe(A, SERVED);
    expect([enter(A), enter(A)]).toEqual([true, true]);
  });

  test("a probe that says nothing leaves its place to the next", () => {
    attempts(FAILED, FAILED, FAILED);
    clock.advance(FIRST_REST_MS);
    health.enter(A);
    health.observe(A, NOTHING);
    expect(enter(A)).toBe(true);
  });

  test("a probe that never ends does not keep the host out for ever", () => {
    attempts(FAILED, FAILED, FAILED);
    clock.advance(FIRST_REST_MS);
    health.enter(A);
    clock.advance(60_000);
    expect(enter(A)).toBe(true);
  });

  test("rests longer each time that a probe fails, up to half a minute; once closed, it starts over", () => {
    attempts(FAILED, FAILED, FAILED);
    const rests = [health.restMs(A)];
    for (let probe = 0; probe < 7; probe++) {
      clock.advance(health.restMs(A));
      attempts(FAILED);
      rests.push(health.restMs(A));
    }
    expect(rests).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    clock.advance(30_000);
    attempts(SERVED, FAILED, FAILED);
    expect(health.usable(A)).toBe(true);
    attempts(FAILED);
    expect(health.restMs(A)).toBe(FIRST_REST_MS);
  });

  test("requests that were under way together and fail together are one failure", () => {
    attempts(...Array<Observation>(100).fill(FAILED));
    expect(health.restMs(A)).toBe(FIRST_REST_MS);
  });

  test("obeys the rest that a host asks for, at once, within two minutes", () => {
    attempts(failedFor(7_000));
    expect(health.restMs(A)).toBe(7_000);
    attempts(failedFor(3_600_000));
    expect(health.restMs(A)).toBe(120_000);
  });

  test("an answer that was on its way does not end a rest that the host asked for; a probe after it does", () => {
    attempts(failedFor(7_000));
    health.observe(A, SERVED);
    expect(health.restMs(A)).toBe(7_000);
    clock.advance(7_000);
    attempts(SERVED);
    expect(health.report(catalogOf([model("a/m", [A])]))[0]!.state).toBe("closed");
  });

  test("after its rest it is unproven until it has served somebody", () => {
    const seen: boolean[] = [health.unproven(A)];
    const check = () => seen.push(health.unproven(A));
    attempts(FAILED, FAILED, FAILED);
    check();
    clock.advance(FIRST_REST_MS);
    check();
    attempts(SERVED);
    check();
    expect(seen).toEqual([false, false, true, false]);
  });

  test("it is unproven while its host is", () => {
    attempts(...Array<Observation>(3).fill(failedFor(null, true)));
    clock.advance(FIRST_REST_MS);
    expect(health.unproven(A)).toBe(true);
  });

  test("how often it served and failed is reported, and why and when it failed last", () => {
    expect(health.record(A)).toBeNull();
    attempts(FAILED, SERVED);
    clock.advance(5_000);
    health.streamEnded(A, { kind: "host_failed", tokens: 5, ms: 10, by: BALANCE });
    const at = clock.now();
    clock.advance(5_000);
    attempts(SERVED, NOTHING);
    expect(health.record(A)).toMatchObject({
      served: 2,
      failed: 2,
      lastFailure: { at, since: at, detail: "the stream broke off after its first token" },
    });
  });

  test("since when it fails is the first failure after the last answer", () => {
    attempts(FAILED, SERVED);
    clock.advance(5_000);
    const since = clock.now();
    attempts(FAILED);
    clock.advance(5_000);
    attempts(FAILED);
    expect(health.record(A)!.lastFailure).toMatchObject({ at: clock.now(), since });
    const failingSince = () => health.report(catalogOf([model("a/m", [A])]))[0]!.failingSince;
    expect(failingSince()).toBe(since);
    attempts(SERVED);
    expect(failingSince()).toBeNull();
  });

  test("streams that break after they began count by themselves", () => {
    const broken = { kind: "host_failed", tokens: 5, ms: 10, by: BALANCE } as const;
    const whole = { kind: "complete", tokens: 5, ms: 10, by: BALANCE } as const;
    for (const end of [broken, broken, whole, broken, broken]) {
      attempts(SERVED);
      health.streamEnded(A, end);
    }
    expect(health.usable(A)).toBe(true);
    attempts(SERVED);
    health.streamEnded(A, broken);
    expect(health.usable(A)).toBe(false);
  });
});

describe("what one worker of a machine finds out", () => {
  let reported: HostRest[] = [];
  let one: Health;
  beforeEach(() => {
    reported = [];
    one = new Health(clock, (rest) => reported.push(rest));
  });
  const failing = (route: Route, ...lessons: Observation[]): void => {
    for (const observation of lessons) one.observe(route, observation);
  };
  const receive = (): void => {
    for (const rest of reported) health.onRemoteRest(rest);
  };

  const cases: { name: string; lessons: Observation[]; rests: number; others: number }[] = [
    { name: "a model that fails three times", lessons: [FAILED, FAILED, FAILED], rests: 1_000, others: 0 },
    { name: "a host out of reach", lessons: Array(3).fill(UNREACHABLE), rests: 1_000, others: 1_000 },
    { name: "a rest that the host asked for", lessons: [failedFor(7_000)], rests: 7_000, others: 0 },
    {
      name: "a longer one, asked for next",
      lessons: [failedFor(2_000), failedFor(9_000)],
      rests: 9_000,
      others: 0,
    },
    { name: "too few failures", lessons: [FAILED, FAILED], rests: 0, others: 0 },
  ];
  for (const { name, lessons, rests, others } of cases) {
    test(`the others obey: ${name}`, () => {
      failing(A, ...lessons);
      receive();
      expect([health.restMs(A), health.restMs(A_OTHER)]).toEqual([rests, others]);
      expect(one.restMs(A)).toBe(rests);
    });
  }

  test("is reported once, however many requests failed together", () => {
    failing(A, ...Array<Observation>(100).fill(FAILED), ...Array<Observation>(100).fill(failedFor(7_000)));
    expect(reported.map(({ ms }) => ms)).toEqual([1_000, 7_000]);
  });

  test("is not sent back by those who received it", () => {
    failing(A, FAILED, FAILED, FAILED);
    one.onRemoteRest({ host: "b", model: null, ms: 5_000, isHostRequested: true });
    expect(reported).toHaveLength(1);
  });

  test("ends at each by a probe of its own, and by an answer under way unless the host asked for the rest", () => {
    failing(A, failedFor(7_000));
    receive();
    health.observe(A, SERVED);
    clock.advance(7_000);
    expect(enter(A)).toBe(true);
    expect(enter(A)).toBe(false);
    health.observe(A, SERVED);
    reported = [];
    failing(A, SERVED, FAILED, FAILED, FAILED);
    receive();
    expect(health.usable(A)).toBe(false);
    health.observe(A, SERVED);
    expect(health.usable(A)).toBe(true);
  });
});

describe("failures that a request may have brought about", () => {
  const [ONE, OTHER, THIRD] = ["bal_one", "bal_other", "bal_third"] as [BalanceId, BalanceId, BalanceId];
  const served = (by: BalanceId): Observation => ({ ...servedIn(100), by });
  const doubtful = (by: BalanceId): Observation => ({ ...failedFor(null), by, doubtful: true });
  const certain = (by: BalanceId): Observation => ({ ...failedFor(null), by });

  const cases: { name: string; lessons: Observation[]; opens: boolean }[] = [
    {
      name: "of one balance while another was just served: no",
      lessons: [served(OTHER), ...Array<Observation>(50).fill(doubtful(ONE))],
      opens: false,
    },
    {
      name: "of one that was itself served after the other: no",
      lessons: [served(OTHER), served(ONE), doubtful(ONE), doubtful(ONE), doubtful(ONE)],
      opens: false,
    },
    {
      name: "of two balances while a third was just served: no",
      lessons: [served(THIRD), doubtful(ONE), doubtful(OTHER), doubtful(ONE)],
      opens: false,
    },
    {
      name: "of all balances that were served: yes",
      lessons: [served(THIRD), served(ONE), doubtful(ONE), doubtful(OTHER), doubtful(THIRD)],
      opens: true,
    },
    {
      name: "of nine balances while another was just served: yes",
      lessons: [served(THIRD), ...Array.from({ length: 9 }, (_, n) => doubtful(`bal_${n}` as BalanceId))],
      opens: true,
    },
    {
      name: "of one balance while nobody else is served: yes",
      lessons: [served(ONE), doubtful(ONE), doubtful(ONE), doubtful(ONE)],
      opens: true,
    },
    {
      name: "of one balance, and one that is the host's own: yes",
      lessons: [served(OTHER), doubtful(ONE), doubtful(ONE), certain(ONE)],
      opens: true,
    },
    {
      name: "the host's own, of one balance alone: yes",
      lessons: [served(OTHER), certain(ONE), certain(ONE), certain(ONE)],
      opens: true,
    },
    {
      name: "of two balances with an answer between: no",
      lessons: [doubtful(OTHER), served(OTHER), doubtful(ONE), doubtful(ONE), doubtful(ONE)],
      opens: false,
    },
  ];
  for (const { name, lessons, opens } of cases) {
    test(`do three in a row rest a host? ${name}`, () => {
      attempts(...lessons);
      expect(health.usable(A)).toBe(!opens);
    });
  }

  test("ten seconds after anybody else was served, one balance's count after all", () => {
    attempts(served(OTHER));
    clock.advance(9_999);
    attempts(doubtful(ONE), doubtful(ONE), doubtful(ONE));
    expect(health.usable(A)).toBe(true);
    clock.advance(1);
    attempts(doubtful(ONE));
    expect(health.usable(A)).toBe(false);
  });

  test("a probe's: another balance's request is let through next, and decides", () => {
    for (const [by, usable] of [
      [ONE, true],
      [OTHER, false],
    ] as const) {
      health = new Health(clock);
      attempts(served(OTHER), { ...failedFor(1_000), by: THIRD });
      health.observe(A, served(THIRD));
      clock.advance(1_000);
      attempts(doubtful(ONE));
      expect(health.usable(A)).toBe(true);
      attempts(doubtful(by));
      expect(health.usable(A)).toBe(usable);
    }
  });

  test("probes that one balance makes fail do not prolong the rest while another was served within the last minute", () => {
    attempts(served(OTHER), certain(OTHER), certain(OTHER), certain(OTHER));
    const rests: number[] = [];
    for (let probe = 0; probe < 80; probe++) {
      clock.advance(Math.max(FIRST_REST_MS, health.restMs(A)));
      attempts(doubtful(ONE));
      rests.push(health.restMs(A));
    }
    expect(new Set(rests.slice(0, 50))).toEqual(new Set([0, 1_000]));
    expect(Math.max(...rests)).toBe(30_000);
  });

  test("a probe that takes longer than five seconds keeps nobody else out", () => {
    attempts(certain(OTHER), certain(OTHER), certain(OTHER));
    clock.advance(FIRST_REST_MS);
    expect([enter(A), enter(A)]).toEqual([true, false]);
    clock.advance(5_000);
    expect(enter(A)).toBe(true);
    health.observe(A, served(OTHER));
    health.observe(A, doubtful(ONE));
    expect(health.usable(A)).toBe(true);
  });

  test("those that end while the host rests do not make a probe's failure certain", () => {
    attempts(served(OTHER), certain(OTHER), certain(OTHER), certain(OTHER));
    // They were under way when the rest began.
    for (let late = 0; late < 3; late++) health.observe(A, certain(OTHER));
    clock.advance(FIRST_REST_MS);
    attempts(doubtful(ONE));
    expect(health.usable(A)).toBe(true);
  });

  test("a balance that is served again counts as served then", () => {
    attempts(served(ONE), served(OTHER));
    clock.advance(10_001);
    attempts(served(ONE), doubtful(THIRD), doubtful(THIRD), doubtful(THIRD));
    expect(health.usable(A)).toBe(true);
  });

  test("streams that break: of one balance no, of two yes", () => {
    const broken = (by: BalanceId) => ({ kind: "host_failed", tokens: 5, ms: 10, by }) as const;
    attempts(served(OTHER));
    attempts(...Array<Observation>(5).fill(served(ONE)));
    for (let count = 0; count < 5; count++) health.streamEnded(A, broken(ONE));
    expect(health.usable(A)).toBe(true);
    health.streamEnded(A, broken(OTHER));
    expect(health.usable(A)).toBe(false);
  });
});

describe("free requests at a host that failed for paid ones", () => {
  const FREE = { ...A, free: true };
  beforeEach(() => attempts(UNREACHABLE, UNREACHABLE, UNREACHABLE));

  test("wait for its rest to end, and one that is served does not end it", () => {
    expect(enter(FREE)).toBe(false);
    health.observe(FREE, SERVED);
    expect(health.restMs(A)).toBe(FIRST_REST_MS);
  });

  test("are no probes: paid ones come next to them, and their failures prolong no rest", () => {
    clock.advance(FIRST_REST_MS);
    expect(enter(FREE)).toBe(true);
    health.observe(FREE, UNREACHABLE);
    health.streamEnded(FREE, { kind: "host_failed", tokens: 3, ms: 10, by: BALANCE });
    enter(FREE);
    expect([enter(A), enter(A)]).toEqual([true, false]);
    health.observe(FREE, NOTHING);
    expect(enter(A)).toBe(false);
  });

  test("take no retries from paid ones, and have them when those have none", () => {
    const failing = model("m/one", [A, FREE]);
    for (let retry = 0; retry < 1_000; retry++) expect(health.mayRetry(failing, FREE)).toBe(true);
    let paid = 0;
    while (health.mayRetry(failing, A)) paid += 1;
    expect(paid).toBe(50);
    expect(health.mayRetry(failing, FREE)).toBe(true);
  });

  test("have streams that break, which are not reported to other processes", () => {
    const reported: HostRest[] = [];
    health = new Health(clock, (rest) => reported.push(rest));
    for (let count = 0; count < 5; count++)
      health.streamEnded(FREE, { kind: "host_failed", tokens: 3, ms: 10, by: BALANCE });
    expect(reported).toEqual([]);
    expect([health.usable(A), health.usable(FREE)]).toEqual([true, true]);
  });
});

describe("a host and its models", () => {
  test("one model's failures leave the others alone", () => {
    attempts(FAILED, FAILED, FAILED);
    expect([health.usable(A), health.usable(A_OTHER)]).toEqual([false, true]);
  });
  test("a host that cannot be reached rests with all its models", () => {
    attempts(UNREACHABLE, UNREACHABLE, UNREACHABLE);
    expect([health.usable(A), health.usable(A_OTHER)]).toEqual([false, false]);
  });
  test("another model's probe of the host finds out for all", () => {
    attempts(UNREACHABLE, UNREACHABLE, UNREACHABLE);
    clock.advance(FIRST_REST_MS);
    expect([enter(A_OTHER), enter(A)]).toEqual([true, false]);
    health.observe(A_OTHER, SERVED);
    expect(enter(A)).toBe(true);
  });
  test("other hosts are not concerned", () => {
    attempts(UNREACHABLE, UNREACHABLE, UNREACHABLE);
    expect(health.usable(route("b"))).toBe(true);
  });
});

describe("the report", () => {
  const catalog = catalogOf([model("x/one", [A, route("b")]), model("x/two", [A_OTHER])]);
  const states = (): string =>
    health
      .report(catalog)
      .map(({ id, state }) => `${id} ${state}`)
      .join(", ");

  test("names each host's state", () => {
    expect(states()).toBe("a closed, b closed");
    attempts(FAILED, FAILED, FAILED);
    expect(states()).toBe("a open, b closed");
    health.observe(A_OTHER, SERVED);
    expect(states()).toBe("a degraded, b closed");
    for (let count = 0; count < 3; count++) health.observe(A_OTHER, UNREACHABLE);
    expect(states()).toBe("a open, b closed");
    clock.advance(FIRST_REST_MS);
    expect(states()).toBe("a half_open, b closed");
  });

  test("averages move with each stream; whole answers have no first token, short ones no throughput", () => {
    attempts(SERVED, servedIn(200), servedIn(null), FAILED);
    health.streamEnded(A, { kind: "complete", tokens: 100, ms: 2_000, by: BALANCE });
    health.streamEnded(A, { kind: "complete", tokens: 3, ms: 1, by: BALANCE });
    // A tool call of thirty tokens in one burst.
    health.streamEnded(A, { kind: "complete", tokens: 30, ms: 2, by: BALANCE });
    health.streamEnded(A, { kind: "client_left", tokens: 100, ms: 1, by: BALANCE });
    expect(health.report(catalog)[0]).toMatchObject({
      firstTokenMs: 110,
      tokensPerSecond: 50,
      served: 3,
      failed: 1,
    });
  });

  test("after a reload, what the catalog lacks is forgotten, and the rest is kept", () => {
    attempts(FAILED, FAILED, FAILED);
    for (let count = 0; count < 3; count++) health.observe(route("b"), FAILED);
    health.keep(catalogOf([model("x/one", [A])]));
    expect([health.usable(A), health.usable(route("b"))]).toEqual([false, true]);
    health.keep(catalogOf([model("x/two", [A_OTHER])]));
    expect(health.usable(A)).toBe(true);
  });
});
