import { describe, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { rounds } from "../rounds.ts";
import { gatedGateways } from "./gated.ts";
import type { OpenGateway } from "./open.ts";

/**
 * What is promised of budgets that cap each value of a tag, whatever the store and however many gateways. Each request
 * holds exactly $0.001, and costs as much.
 */
export function testTagCaps(count: number, store: () => Promise<string>): void {
  const { whole } = chatText(["ok"], { input: 0, output: 100 });
  const { gateways, any, send, raced, expectNoDrift, ...gated } = gatedGateways(count, store, () =>
    json(whole),
  );
  const call = (bearer: string, tags: string | null, content?: string, gateway?: OpenGateway) =>
    gated.call(bearer, tags === null ? {} : { "x-gateway-tags": tags }, content, gateway);
  /** A key of which each user may spend $`cap` in the window. */
  const keyFor = async (cap_usd: number, window = "day") => {
    const owner = await any().key(1_000);
    const by = owner.recovery_secret;
    const made = await send("POST", "/v1/budgets", by, { name: "each", cap_usd, window, per: "tag:user" });
    expect(made.status).toBe(201);
    const { key } = (await send("POST", "/v1/keys", by, { budget: "each" })).json;
    return { key: key as string, by };
  };

  test(`of ${REQUESTS} concurrent calls of one end user, ten are served where a day has room for ten`, async () => {
    const { key, by } = await keyFor(WORTH * 10);
    expect(await raced(REQUESTS, (content) => call(key, "user=alice", content))).toEqual({
      "200 ": 10,
      "429 budget_exhausted": REQUESTS - 10,
    });
    // Another user has all of the cap.
    expect((await call(key, "user=bob")).status).toBe(200);
    await until(async () => {
      const { used_usd, values } = (await send("GET", "/v1/budgets/each", by)).json;
      return used_usd === rounded(WORTH * 11) && values.length === 2;
    });
    expect((await send("GET", "/v1/budgets/each", by)).json).toMatchObject({
      per: "tag:user",
      values: [
        { value: "alice", used_usd: rounded(WORTH * 10) },
        { value: "bob", used_usd: WORTH },
      ],
    });
    const { values } = (await send("GET", "/v1/budgets/each?value=bob", by)).json;
    expect(values).toEqual([{ value: "bob", used_usd: WORTH }]);
    await expectNoDrift();
  }, 180_000);

  test("a refusal names the budget, the value, the cap and what is used, and the window's end", async () => {
    const { key } = await keyFor(WORTH);
    const [gateway] = gateways;
    expect((await call(key, "user=carol; feature=x", "Hello", gateway)).status).toBe(200);
    const { status, json, headers } = await call(key, "user=carol", "Hello", gateway);
    expect([status, json.error.code]).toEqual([429, "budget_exhausted"]);
    expect(json.error.message).toContain(
      "The budget `each` for `user=carol` caps spending at $0.001: $0.001 is used, and $0.00 is held",
    );
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(headers.get("x-should-retry")).toBe("false");
  });

  test.each([
    ["no tags", null],
    ["another tag", "customer=acme"],
  ])("a request with %s is refused, because nothing would cap it", async (_what, tags) => {
    const { key } = await keyFor(1);
    const { status, json } = await call(key, tags);
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", "x-gateway-tags"]);
    expect(json.error.message).toContain("budget `each`, which caps each value of the tag `user`");
  });

  test("a cap that is lowered or raised binds the next request of each value", async () => {
    const { key, by } = await keyFor(WORTH * 5);
    const statuses = async (times: number, user = "user=dave") => {
      const found: number[] = [];
      for (let n = 0; n < times; n++) found.push((await call(key, user)).status);
      return found;
    };
    expect(await statuses(3)).toEqual([200, 200, 200]);
    await send("PATCH", "/v1/budgets/each", by, { cap_usd: WORTH * 2 });
    expect(await statuses(count + 1)).toEqual(Array(count + 1).fill(429));
    expect(await statuses(3, "user=erin")).toEqual([200, 200, 429]);
    await send("PATCH", "/v1/budgets/each", by, { cap_usd: WORTH * 4 });
    expect(await statuses(2)).toEqual([200, 429]);
  });

  describe("what is refused of a budget", () => {
    test.each([
      ["a tag's name that is none", { per: "tag:User" }, "per"],
      ["anything but a tag", { per: "user" }, "per"],
      ["an empty name", { per: "tag:" }, "per"],
    ])("%s", async (_what, more, param) => {
      const { by } = await keyFor(1);
      const { status, json } = await send("POST", "/v1/budgets", by, {
        name: "other",
        cap_usd: 1,
        window: "day",
        ...more,
      });
      expect([status, json.error.param]).toEqual([400, param]);
    });

    test.each([
      ["another window, in which no value was counted", { window: "month" }, "window"],
      ["another tag", { per: "tag:customer" }, "per"],
    ])("%s", async (_what, change, param) => {
      const { by } = await keyFor(1);
      const { status, json } = await send("PATCH", "/v1/budgets/each", by, change);
      expect([status, json.error.param]).toEqual([400, param]);
    });
  });
}

const REQUESTS = rounds(200, 1_000);
/** What each request holds and costs, in USD. */
const WORTH = 0.001;
const rounded = (usd: number) => Math.round(usd * 1e9) / 1e9;
