import { describe, expect, test } from "bun:test";
import type { Balance } from "../../../src/customers/keys/key.ts";
import { OPERATOR } from "../../../src/customers/keys/root.ts";
import {
  joinRun,
  NO_OTHERS,
  type RunSpec,
  readRunSpec,
  revisedRun,
  type StoredRun,
} from "../../../src/customers/keys/run.ts";
import { AgentRun, Runs } from "../../../src/customers/keys/runs.ts";
import type { EpochMs } from "../../../src/units/clock.ts";
import { HOUR_MS } from "../../../src/units/clock.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import type { BalanceId, KeyId } from "../../../src/units/id.ts";
import type { NanoUsd } from "../../../src/units/usd.ts";
import { until } from "../../fakes/until.ts";

const after = (hours: number) => (NOW + hours * HOUR_MS) as EpochMs;
const NOW = Date.UTC(2026, 10, 23) as EpochMs;
const usd = (amount: number) => (amount * 1e9) as NanoUsd;
const BALANCE: BalanceId = "bal_1";
const STARTER: KeyId = "key_1";
const known: StoredRun = {
  name: "job",
  cap: usd(1),
  calls: 9,
  startedAt: NOW,
  startedBy: STARTER,
  usedAt: NOW,
  revision: 0,
};
const join = (text: string, at: EpochMs, run: StoredRun | null = known, others = NO_OTHERS, by = STARTER) => {
  const spec = readRunSpec(text);
  if (refused(spec)) throw new Error(spec.message);
  return joinRun({ spec, by, at }, run, others);
};

test.each([
  ["job", { name: "job", cap: null, calls: null }],
  ["a.B_9-z; usd=0.50; calls=40", { name: "a.B_9-z", cap: usd(0.5), calls: 40 }],
  [" job ;calls = 1; usd=000.000000001", { name: "job", cap: 1, calls: 1 }],
])("`%s` names a run and its limits", (text, spec) => {
  expect(readRunSpec(text)).toEqual(spec as never);
});

test("what was read before its owner's last change does not undo that, and the run need not be read again", () => {
  const changed: StoredRun = { ...known, cap: usd(5), revision: 2 };
  const run = new AgentRun(BALANCE, changed, async () => {});
  run.has(known);
  expect(run.limits).toEqual({ cap: usd(5), calls: 9 });
});

describe("a run that is known", () => {
  test.each([
    ["job", usd(1), 9, false],
    ["job; usd=2; calls=10", usd(1), 9, false],
    ["job; usd=0.5", usd(0.5), 9, true],
    ["job; calls=3; usd=4", usd(1), 3, true],
  ])("named as `%s` has the stricter of both limits", (text, cap, calls, hasNewLimits) => {
    expect(join(text, after(0.5))).toMatchObject({ run: { cap, calls, startedAt: NOW }, hasNewLimits });
  });

  test.each([
    ["job", true],
    ["job; usd=1; calls=9", true],
    ["job; usd=2", true],
    ["job; usd=0.5", false],
    ["job; calls=8", false],
  ])("named as `%s` by another key is joined as it is: %p", (text, isJoined) => {
    const change = join(text, after(0.5), known, NO_OTHERS, "key_2");
    if (isJoined) expect(change).toMatchObject({ run: { ...known }, isWritten: false });
    else expect(change).toMatchObject({ code: "invalid_request", details: { param: "x-gateway-run" } });
  });

  test("that has ended is another key's to start again, and to limit", () => {
    const run = { startedBy: "key_2", startedAt: after(25), calls: 2, cap: null };
    expect(join("job; calls=2", after(25), known, NO_OTHERS, "key_2")).toMatchObject({ run });
  });

  test("that its owner has ended starts again at once, and never in the millisecond of the one before", () => {
    const balance = {} as Balance;
    const ended = revisedRun("job", NOW, "end", OPERATOR)(known, balance) as StoredRun;
    expect(join("job", NOW, ended)).toMatchObject({
      run: { startedAt: NOW + 1, cap: null, revision: 0 },
    });
    expect(revisedRun("job", NOW, { calls: 1 }, OPERATOR)(ended, balance)).toMatchObject({
      code: "invalid_request",
    });
  });

  test("is written when it is tightened, or was not for an hour", () => {
    expect(join("job", after(0.5))).toMatchObject({ isWritten: false, run: { usedAt: NOW } });
    expect(join("job", after(1))).toMatchObject({ isWritten: true, run: { usedAt: after(1) } });
  });

  test.each([
    ["a day after its last request goes on", after(24), known, NOW],
    ["an hour later has ended, and another begins", after(25), known, after(25)],
    [
      "a month after its first has ended, whenever its last was",
      after(31 * 24),
      { ...known, usedAt: after(31 * 24 - 1) },
      after(31 * 24),
    ],
  ])("%s", (_what, at, run, startedAt) => {
    expect(join("job; usd=5", at, run)).toMatchObject({
      run: { startedAt, cap: startedAt === NOW ? usd(1) : usd(5) },
    });
  });
});

describe("where a balance has all the runs that it may have", () => {
  const full = (usedAt: EpochMs) => ({ most: 3, quietest: { name: "old", usedAt } });

  test("the one that was quiet for longest ends for a new one", () => {
    expect(join("new", after(2), null, full(NOW))).toMatchObject({ ends: "old", run: { name: "new" } });
  });

  test("but not one that may have been used within the hour", () => {
    expect(join("new", after(1.9), null, full(NOW))).toMatchObject({
      code: "rate_limited",
      details: { retryAfterS: 60, shouldRetry: false, param: "x-gateway-run" },
    });
  });

  test("one that it has goes on", () => {
    expect(join("job", after(1), known, full(NOW))).toMatchObject({ ends: null });
  });
});

describe("what open streams of a run may spend follows what it is tightened to", () => {
  const start = async () => {
    const stored = new Map<string, StoredRun>();
    const runs = new Runs({
      run: async (_, name) => stored.get(name) ?? null,
      async changeRun(_, name, _most, decide) {
        const change = decide(stored.get(name) ?? null, NO_OTHERS);
        if (!refused(change)) stored.set(name, change.run);
        return change;
      },
      async reviseRun(_, name, decide) {
        const run = decide(stored.get(name) ?? null, {} as Balance);
        if (!refused(run)) stored.set(name, run);
        return run;
      },
    });
    const named = async (text: string) => {
      const request = { spec: readRunSpec(text) as RunSpec, by: STARTER, at: NOW };
      const run = await runs.join(BALANCE, request, async () => 100_000);
      if (refused(run)) throw new Error(run.message);
      return run;
    };
    return { runs, named };
  };

  test.each<[string, (at: Awaited<ReturnType<typeof start>>) => unknown]>([
    ["once everything was forgotten", ({ runs }) => runs.forgetAll()],
    [
      "once too many others were used",
      ({ named }) => Promise.all(Array.from({ length: 20_000 }, (_, index) => named(`other-${index}`))),
    ],
  ])("%s", async (_when, forget) => {
    const at = await start();
    const open = await at.named("job; usd=1");
    await forget(at);
    expect(open.limits).toBeNull();
    open.reread();
    await until(() => open.limits !== null);
    await at.named("job");
    await at.named("job; usd=0.5");
    expect(open.limits).toEqual({ cap: usd(0.5), calls: null });
    at.runs.changed(`${BALANCE}/job`);
    expect(open.limits).toBeNull();
  });

  test("also where its owner sets higher limits, and lower ones again", async () => {
    const { runs, named } = await start();
    const open = await named("job; usd=1");
    for (const cap of [2, 0.5, null]) {
      const limits = { cap: cap === null ? null : usd(cap) };
      expect(await runs.revise(BALANCE, "job", NOW, limits, OPERATOR)).toMatchObject(limits);
      await until(() => open.limits !== null);
      expect(open.limits).toEqual({ ...limits, calls: null });
      expect((await named("job")).limits).toEqual({ ...limits, calls: null });
    }
  });

  test("what was read before an owner's change does not undo it", async () => {
    const { named } = await start();
    const open = await named("job; usd=1");
    open.has({ ...known, cap: usd(2), calls: null, revision: 1 });
    open.has({ ...known, cap: usd(1), calls: null, revision: 0 });
    expect(open.limits).toEqual({ cap: usd(2), calls: null });
  });

  test("one that its owner ended keeps its limits for what is open, and the next request starts another", async () => {
    const { runs, named } = await start();
    const open = await named("job; usd=1");
    await runs.revise(BALANCE, "job", NOW, "end", OPERATOR);
    const next = await named("job; usd=3");
    expect(next).not.toBe(open);
    open.reread();
    await until(() => open.limits !== null);
    expect([open.limits?.cap, next.limits?.cap]).toEqual([usd(1), usd(3)]);
  });
});

describe("requests that lower the limits of one run at once", () => {
  const start = (by: KeyId) => {
    let stored: StoredRun | null = null;
    let changes = 0;
    const runs = new Runs({
      run: async () => stored,
      async changeRun(_, _name, _most, decide) {
        await Bun.sleep(0);
        const change = decide(stored, NO_OTHERS);
        if (refused(change)) return change;
        changes += change.isWritten ? 1 : 0;
        stored = change.run;
        return change;
      },
      reviseRun: () => Promise.reject(new Error("nobody revises it")),
    });
    const named = (text: string, who = by) =>
      runs.join(BALANCE, { spec: readRunSpec(text) as RunSpec, by: who, at: NOW }, async () => 100_000);
    return { named, changes: () => changes, limits: () => stored };
  };

  test("are few changes of the store, and each finds them at least as low as its own", async () => {
    const { named, changes, limits } = start(STARTER);
    const lowered = Array.from({ length: 50 }, (_, n) => 1_000 - n);
    const found = await Promise.all(
      lowered.map(async (calls) => {
        const run = await named(`job; calls=${calls}`);
        if (refused(run)) throw new Error(run.message);
        return run.limits!.calls! <= calls;
      }),
    );
    expect(found).toEqual(lowered.map(() => true));
    expect(limits()).toMatchObject({ calls: 951 });
    expect(changes()).toBeLessThan(4);
  });

  test("of a key that did not start it, only those are refused that would lower them", async () => {
    const { named } = start(STARTER);
    await named("job; calls=100");
    const answers = await Promise.all([200, 50, 150].map((calls) => named(`job; calls=${calls}`, "key_2")));
    expect(answers.map((answer) => refused(answer))).toEqual([false, true, false]);
  });
});
