import { afterAll, describe, expect, test } from "bun:test";
import type { Reply } from "../process/gateway.ts";
import { open } from "./open.ts";

/** `POST /v1/messages/count_tokens`: no host is asked, so there is none. */
const gateway = await open(`
hosts:
  - { id: h, base_url: "http://127.0.0.1:1/v1", speaks: [chat.completions] }
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 0, output: 10 }
    routes: [{ host: h, model: one }]
  - id: test/other
    context_length: 1000
    max_output_tokens: 100
    routes: [{ host: h, model: two, free: true }]
auto: { both: [test/model, test/other] }
`);
afterAll(() => gateway.close());

const count = (bearer: string, model: unknown): Promise<Reply> =>
  gateway.send("POST", "/v1/messages/count_tokens", {
    bearer,
    json: { model, messages: [{ role: "user", content: "Hello there, gateway" }] },
  });

const ONE = { allowed_models: ["test/model"] };

describe("counting tokens", () => {
  const counted: [because: string, model: string, limits: object][] = [
    ["for a model of the catalog, without credit", "test/model", {}],
    ["for an automatic route", "gateway/auto:both", {}],
    ["for a free model", "test/other:free", {}],
    ["for any free model", "gateway/auto:free", {}],
    ["for the model that the key may call", "test/model", ONE],
    ["for an automatic route that may pick it", "gateway/auto:both", ONE],
    ["for what the key may call when it is free", "test/other:free", { allowed_models: ["test/other:free"] }],
  ];
  test.each(counted)("is done %s", async (_, model, limits) => {
    const { status, json } = await count((await gateway.key(0, limits)).key, model);
    expect(status).toBe(200);
    expect(json.input_tokens).toBeWithin(4, 30);
  });

  const refusals: [
    because: string,
    model: unknown,
    limits: object,
    answer: [number, string],
    says: string,
  ][] = [
    ["of a model that is not in the catalog", "test/modle", {}, [404, "unknown_model"], "`test/model`"],
    [
      "of an automatic route that nobody made",
      "gateway/auto:x",
      {},
      [404, "unknown_model"],
      "gateway/auto:both",
    ],
    ["of no free model", "test/none:free", {}, [404, "unknown_model"], "test/none"],
    ["of no model at all", undefined, {}, [400, "invalid_request"], "`model`"],
    ["of a model that the key may not call", "test/other", ONE, [400, "invalid_request"], "test/model"],
    [
      "of a free model that the key may not call",
      "test/other:free",
      ONE,
      [400, "invalid_request"],
      "test/model",
    ],
    [
      "of an automatic route that may pick nothing",
      "gateway/auto:both",
      { allowed_models: ["test/third"] },
      [503, "auto_unresolvable"],
      "not allowed on this key",
    ],
  ];
  test.each(refusals)("is refused as a generation is: %s", async (_, model, limits, answer, says) => {
    const { key } = await gateway.key(1, limits);
    const { status, json } = await count(key, model);
    expect([status, json.error.code]).toEqual(answer);
    expect(json.type).toBe("error");
    expect(json.error.message).toContain(says);
    const generation = await gateway.send("POST", "/v1/messages", {
      bearer: key,
      json: { model, max_tokens: 10, messages: [{ role: "user", content: "Hello there, gateway" }] },
    });
    expect([generation.status, generation.json.error.code]).toEqual(answer);
  });

  test("is refused on a suspended balance, whose reason is named", async () => {
    const { key, balance_id } = await gateway.key(0);
    await gateway.admin(`/admin/accounts/${balance_id}/suspend`, { reason: "sanctions" });
    const { status, json } = await count(key, "test/model");
    expect([status, json.error.code]).toEqual([403, "account_suspended"]);
    expect(json.error.message).toContain("sanctions");
  });

  test("is refused to a key that was revoked", async () => {
    const { id, key } = await gateway.key(0);
    await gateway.send("DELETE", `/v1/keys/${id}`, { bearer: key });
    const { status, json } = await count(key, "test/model");
    expect([status, json.error.code]).toEqual([401, "invalid_api_key"]);
  });
});
