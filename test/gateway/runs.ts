import { describe, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { rounds } from "../rounds.ts";
import { gatedGateways } from "./gated.ts";
import type { OpenGateway } from "./open.ts";

/**
 * What is promised of runs, whatever the store and however many gateways. Each request holds exactly $0.001,
 * and costs $0.00001.
 */
export function testRuns(count: number, store: () => Promise<string>): void {
  const { whole, events } = chatText(["ok"], { input: 10, output: 1 });
  const { gateways, any, send, raced, expectNoDrift, ...gated } = gatedGateways(count, store, (request) =>
    request.json().stream === true ? sse(events) : json(whole),
  );
  const call = (bearer: string, run: string, content?: string, gateway?: OpenGateway) =>
    gated.call(bearer, { "x-gateway-run": run }, content, gateway);
  const useOf = async (bearer: string, run: string) =>
    (await any().send("GET", `/v1/usage?run=${run}`, { bearer })).json;

  describe(`${REQUESTS} concurrent calls of a run with room for ten`, () => {
    test.each([
      ["by its calls", "calls=10"],
      ["by its cap", "usd=0.01"],
    ])(
      "%s: 10 are served, all others get 429, drift 0",
      async (_what, limit) => {
        const { key } = await any().key(100);
        // The first to arrive sets the limits, so all name them.
        expect(await raced(REQUESTS, (content) => call(key, `fleet; ${limit}`, content))).toEqual({
          "200 ": 10,
          "429 budget_exhausted": REQUESTS - 10,
        });
        await until(async () => (await useOf(key, "fleet")).run.used_calls === 10);
        await expectNoDrift();
      },
      180_000,
    );
  });

  test("the first request sets the limits, others of its key can only lower them, and an id alone joins", async () => {
    const { key } = await any().key(1);
    const statuses = async (...runs: string[]) => {
      const found: number[] = [];
      for (const run of runs) found.push((await call(key, run)).status);
      return found;
    };
    expect(await statuses("one; calls=3", "one;calls=9", "one", "one")).toEqual([200, 200, 200, 429]);
    expect(await statuses("two", "two;calls=2;usd=1", "two", "two;calls=8")).toEqual([200, 200, 429, 429]);
    expect(await statuses("three; usd=0.0010; calls=9", "three;usd=0.5", "four")).toEqual([200, 429, 200]);
  });

  test("a refusal names the run, its limit, and what is used and open; and that a retry does not help", async () => {
    const { key } = await any().key(1);
    // What another has spent arrives once it is shipped.
    const [gateway] = gateways;
    await call(key, "agent-7; calls=1; usd=0.5", "Hello", gateway);
    const calls = await call(key, "agent-7", "Hello", gateway);
    expect(calls.json.error.message).toContain(
      "The run `agent-7` may have 1 call: 1 used, 0 open. Start a new run",
    );
    expect(calls.headers.get("x-should-retry")).toBe("false");
    // Codex would wait for as long as it says.
    expect(calls.headers.get("retry-after")).toBeNull();
    await call(key, "agent-8; usd=0.001", "Hello", gateway);
    const money = await call(key, "agent-8", "Hello", gateway);
    expect(money.json.error).toMatchObject({ code: "budget_exhausted", type: "rate_limit_error" });
    expect(money.json.error.message).toContain(
      "The run `agent-8` caps spending at $0.001: $0.00001 is used, and $0.00 is held by open requests.",
    );
    expect(money.headers.get("x-should-retry")).toBe("false");
    expect(money.headers.get("retry-after")).toBeNull();
  });

  test("receipts name the run, and its usage can be asked for by the key", async () => {
    const { key } = await any().key(1);
    const { headers } = await call(key, "report; usd=0.5; calls=40");
    await call(key, "report");
    await call(key, "other");
    await any().chat(key);
    await until(async () => {
      const path = `/v1/receipts/${headers.get("x-gateway-receipt")}`;
      return (await any().send("GET", path, { bearer: key })).json.run === "report";
    });
    await until(async () => (await useOf(key, "report")).run.used_calls === 2);
    const { stretches, run } = await useOf(key, "report");
    expect(stretches).toMatchObject([{ requests: 2, cost_usd: 0.00002 }]);
    expect(run).toMatchObject({
      id: "report",
      cap_usd: 0.5,
      used_usd: 0.00002,
      held_usd: 0,
      calls: 40,
      used_calls: 2,
      open_calls: 0,
    });
    expect((await useOf(key, "none")).run).toBeUndefined();
  });

  test("a sibling joins a run, cannot lower its limits, and sees its own part of it; a rotation is the key itself", async () => {
    const owner = await any().key(1);
    const sibling = (await send("POST", "/v1/keys", owner.recovery_secret, {})).json.key;
    expect((await call(owner.key, "team; calls=9; usd=0.5")).status).toBe(200);
    for (const lower of ["team; calls=1", "team; usd=0.1"]) {
      const { status, json, headers } = await call(sibling, lower);
      expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", "x-gateway-run"]);
      expect(json.error.message).toContain("which another key started");
      expect(headers.get("retry-after")).toBeNull();
    }
    for (const joined of ["team", "team; calls=9; usd=0.5", "team; calls=10"])
      expect((await call(sibling, joined)).status).toBe(200);
    await until(async () => (await useOf(owner.recovery_secret, "team")).run.used_calls === 4);
    const its = await useOf(sibling, "team");
    expect([its.run, its.stretches]).toMatchObject([undefined, [{ requests: 3 }]]);
    expect((await useOf(owner.key, "team")).run).toMatchObject({ calls: 9, used_calls: 4 });
    const rotated = (await send("POST", `/v1/keys/${owner.id}/rotate`, owner.key)).json.key;
    expect((await call(rotated, "team; calls=5")).status).toBe(200);
    expect((await call(sibling, "team")).status).toBe(429);
    expect((await useOf(rotated, "team")).run).toMatchObject({ calls: 5 });
  });

  test("an owner sets a run's limits again, higher or lower, and ends it", async () => {
    const owner = await any().key(1);
    const by = owner.recovery_secret;
    const statuses = async (...runs: string[]) => {
      const found: number[] = [];
      for (const run of runs) found.push((await call(owner.key, run)).status);
      return found;
    };
    expect(await statuses("job; calls=1", "job")).toEqual([200, 429]);
    expect((await send("PATCH", "/v1/runs/job", by, { calls: 3 })).json).toMatchObject({
      id: "job",
      calls: 3,
    });
    expect(await statuses("job", "job", "job")).toEqual([200, 200, 429]);
    const none = { calls: null, cap_usd: 0.5 };
    expect((await send("PATCH", "/v1/runs/job", by, none)).json).toMatchObject(none);
    expect(await statuses("job", "job", "job")).toEqual([200, 200, 200]);
    await send("PATCH", "/v1/runs/job", by, { cap_usd: 0 });
    expect(await statuses(...Array(count + 1).fill("job"))).toEqual(Array(count + 1).fill(429));
    expect((await send("DELETE", "/v1/runs/job", by)).json).toEqual({ id: "job", ended: true });
    expect((await useOf(by, "job")).run).toBeUndefined();
    expect(await statuses("job; calls=2", "job", "job")).toEqual([200, 200, 429]);
    await until(async () => (await useOf(by, "job")).run.used_calls === 2);
    for (const [method, path, bearer, json] of [
      ["PATCH", "/v1/runs/none", by, { calls: 1 }],
      ["DELETE", "/v1/runs/none", by, undefined],
      ["PATCH", "/v1/runs/job", by, { calls: -1 }],
      ["PATCH", "/v1/runs/job", by, { usd: 1 }],
      ["PATCH", "/v1/runs/job", owner.key, { calls: 1 }],
      ["DELETE", "/v1/runs/job", owner.key, undefined],
    ] as const)
      expect((await send(method, path, bearer, json)).status).toBe(400);
  });

  test("runs of two balances by one id have nothing to do with each other", async () => {
    const [one, other] = [await any().key(1), await any().key(1)];
    await call(one.key, "same; calls=1");
    expect((await call(one.key, "same")).status).toBe(429);
    expect((await call(other.key, "same; calls=1")).status).toBe(200);
  });
}

const REQUESTS = rounds(200, 1_000);
