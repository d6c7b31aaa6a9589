import { beforeEach, describe, expect, test } from "bun:test";
import type { Route } from "../../src/catalog/catalog.ts";
import { Health, type Lesson } from "../../src/routing/health.ts";
import { ManualClock } from "../fakes/clock.ts";
import { catalogOf, model, route } from "./world.ts";

const A = route("a");
const A_OTHER = { ...A, model: "another" };
const SERVED: Lesson = { kind: "served", firstTokenMs: 100, promptTokens: 10 };
const FAILED: Lesson = { kind: "failed", wholeHost: false, restMs: null };
const UNREACHABLE: Lesson = { kind: "failed", wholeHost: true, restMs: null };
const NOTHING: Lesson = { kind: "nothing" };
const asked = (restMs: number): Lesson => ({ kind: "failed", wholeHost: false, restMs });

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

const attempts = (...lessons: Lesson[]): void => {
  for (const lesson of lessons) {
    enter(A);
    health.observe(A, lesson);
  }
};
const FIRST_REST_MS = 1_000;

describe("a circuit", () => {
  test("opens after three failures in a row, and not before", () => {
    attempts(FAILED, FAILED, SERVED, FAILED, FAILED);
    expect(health.usable(A)).toBe(true);
    attempts(FAILED);
    expect(health.restMs(A)).toBe(FIRST_REST_MS);
  });

  test("what a host thinks of a request, and clients that leave, never count", () => {
    attempts(FAILED, FAILED, ...Array<Lesson>(50).fill(NOTHING));
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

  test("a probe that is never heard of again does not keep the host out for ever", () => {
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
    attempts(...Array<Lesson>(100).fill(FAILED));
    expect(health.restMs(A)).toBe(FIRST_REST_MS);
  });

  test("obeys the rest that a host asks for, at once, within two minutes", () => {
    attempts(asked(7_000));
    expect(health.restMs(A)).toBe(7_000);
    attempts(asked(3_600_000));
    expect(health.restMs(A)).toBe(120_000);
  });

  test("an answer that was on its way does not end a rest that the host asked for; a probe after it does", () => {
    attempts(asked(7_000));
    health.observe(A, SERVED);
    expect(health.restMs(A)).toBe(7_000);
    clock.advance(7_000);
    attempts(SERVED);
    expect(health.report(catalogOf([model("a/m", [A])]))[0]!.state).toBe("closed");
  });

  test("streams that break after they began count by themselves", () => {
    const broken = { kind: "host_failed", tokens: 5, ms: 10 } as const;
    const whole = { kind: "complete", tokens: 5, ms: 10 } as const;
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
    attempts(
      SERVED,
      { kind: "served", firstTokenMs: 200, promptTokens: 10 },
      { kind: "served", firstTokenMs: null, promptTokens: 10 },
      FAILED,
    );
    health.streamEnded(A, { kind: "complete", tokens: 100, ms: 2_000 });
    health.streamEnded(A, { kind: "complete", tokens: 3, ms: 1 });
    health.streamEnded(A, { kind: "client_left", tokens: 100, ms: 1 });
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
