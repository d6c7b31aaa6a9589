import { afterAll, describe, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/** Names that agents and people use for models without knowing their ids. */

const model = (id: string, name: string, more = "") =>
  `  - { id: ${id}, context_length: 2000, max_output_tokens: 1000, price: { input: 1, output: 10 }, routes: [{ host: h, model: ${name}${more} }] }`;

const { events, whole } = chatText();
const host = await startFakeHost((request) => (request.json().stream === true ? sse(events) : json(whole)));
const gateway = await open(`
catalog: public
hosts:
  - { id: h, base_url: "${host.url}/v1", speaks: [chat.completions] }
models:
${model("maker/big-4.5", "big")}
  - { id: maker/small-4-5, aliases: [tiny, big-9], context_length: 2000, max_output_tokens: 1000, price: { input: 1, output: 10 }, routes: [{ host: h, model: small }] }
${model("one/twin", "twin-1")}
${model("two/twin", "twin-2")}
${model("maker/gift", "gift", ", free: true")}
auto: { quick: [maker/small-4-5], free: [maker/gift] }
`);
afterAll(() => closeAll(gateway, host));

const served: [name: string, id: string][] = [
  ["maker/big-4.5", "maker/big-4.5"],
  ["big-4.5", "maker/big-4.5"],
  ["big-4-5", "maker/big-4.5"],
  ["big-4-5-20260131", "maker/big-4.5"],
  ["big-4.5[1m]", "maker/big-4.5"],
  ["maker/big-4.5-2026-01-31", "maker/big-4.5"],
  ["tiny", "maker/small-4-5"],
  ["big-9", "maker/small-4-5"],
  ["auto:quick", "maker/small-4-5"],
  ["maker/big-4.5:nitro", "maker/big-4.5"],
  ["big-4-5-20260131:floor", "maker/big-4.5"],
  ["tiny:floor", "maker/small-4-5"],
  ["gateway/auto:quick:nitro", "maker/small-4-5"],
  ["gift:free", "maker/gift"],
  ["auto:free", "maker/gift"],
];

describe("a name that fits one id", () => {
  test.each(served)(
    "%s is %s, on each surface, in the receipt and in the list of models",
    async (name, id) => {
      const { key } = await gateway.key(1, { allowed_models: [id] });
      const messages = [{ role: "user", content: "Hello" }];
      const bodies: [path: string, body: object][] = [
        ["/v1/chat/completions", { messages, max_tokens: 10 }],
        ["/v1/responses", { input: "Hello", max_output_tokens: 20 }],
        ["/v1/messages", { messages, max_tokens: 10, stream: true }],
      ];
      for (const [path, body] of bodies) {
        const reply = await gateway.send("POST", path, { bearer: key, json: { model: name, ...body } });
        expect(reply.status).toBe(200);
        const receipt = await gateway.receipt(reply, key);
        expect(receipt.json).toMatchObject({ model_requested: name, model: id });
      }
      const count = await gateway.send("POST", "/v1/messages/count_tokens", {
        bearer: key,
        json: { model: name, messages },
      });
      expect(count.status).toBe(200);
      const listed = await gateway.send("GET", `/v1/models/${encodeURIComponent(name)}`);
      expect(listed.status).toBe(200);
    },
  );

  test("goes for the models that follow the first one, too", async () => {
    const { key } = await gateway.key(1);
    const reply = await gateway.chat(key, { model: "tiny", models: ["tiny", "big-4.5"] });
    expect(reply.status).toBe(200);
    const unknown = await gateway.chat(key, { model: "tiny", models: ["tiny", "twin"] });
    expect(unknown.json.error).toMatchObject({ code: "unknown_model", param: "model" });
  });
});

const refusals: [because: string, model: string, limits: object, code: string, says: string][] = [
  ["two have the name", "twin", {}, "unknown_model", "one/twin, two/twin"],
  ["another version has another date", "small-4-5-x", {}, "unknown_model", "maker/small-4-5"],
  ["the author is another", "other/big-4.5", {}, "unknown_model", "maker/big-4.5"],
  ["the key may call another", "big-4.5", { allowed_models: ["one/twin"] }, "invalid_request", "one/twin"],
];
test.each(refusals)("it is refused where %s", async (_, name, limits, code, says) => {
  const { key } = await gateway.key(1, limits);
  const reply = await gateway.chat(key, { model: name });
  expect(reply.json.error.code).toBe(code);
  expect(reply.json.error.message).toContain(says);
});

describe("a public catalogue", () => {
  test.each(["/v1/catalog", "/v1/models", "/v1/models/maker/gift"])(
    "%s is read without a key",
    async (path) => {
      expect((await gateway.send("GET", path)).status).toBe(200);
      const wrong = await gateway.send("GET", path, { bearer: `or-live-${"1".repeat(32)}` });
      expect(wrong.json.error.code).toBe("invalid_api_key");
    },
  );
});
