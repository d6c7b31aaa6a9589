import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { hopping } from "../fakes/hopping.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import { browserMissing, endVisits, Visitor } from "./browser.ts";

/** An answer that two models wrote: the host went on by itself. */
const ANSWER = hopping(
  [
    { model: "first", words: ["Hello"], input: 100, output: 5 },
    { model: "next", words: [" there"], input: 130, output: 3 },
  ],
  { requested: "first" },
).whole;

describe.skipIf(browserMissing)("the receipt of an answer by several models", () => {
  let host: FakeHost;
  let gateway: OpenGateway;

  beforeAll(async () => {
    host = await startFakeHost(() => json(ANSWER));
    gateway = await open(`
hosts: [{ id: native, base_url: "${host.url}/v1", speaks: [messages], fallbacks: native }]
models:
  - { id: test/first, context_length: 100000, max_output_tokens: 4000, price: { input: 5, output: 25 }, routes: [{ host: native, model: first }] }
  - { id: test/next, context_length: 100000, max_output_tokens: 4000, price: { input: 2, output: 10 }, routes: [{ host: native, model: next }] }
`);
  });
  afterAll(async () => {
    await endVisits();
    await closeAll(gateway, host);
  });

  test("shows its owner what each of them cost", async () => {
    const { key, recovery_secret: secret } = await gateway.key(1);
    const { headers } = await gateway.send("POST", "/v1/messages", {
      bearer: key,
      json: {
        model: "test/first",
        max_tokens: 100,
        messages: [{ role: "user", content: "Hello" }],
        fallbacks: [{ model: "test/next" }],
      },
    });
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.recover(secret);
    await visitor.goto(`/dashboard#/receipts/${headers.get("x-gateway-receipt")}`);
    const cost = visitor.page.locator("section.card", { has: visitor.heading("Cost") });
    await cost.getByText("test/first").first().waitFor();
    const amounts = await cost.locator("tbody tr td:last-child").allTextContents();
    expect(amounts).toEqual(["$0.0005", "$0.000125", "$0.00026", "$0.00003"]);
    await cost.getByText("$0.000915").waitFor();
    await visitor.page.getByText("the model declined, and the host went on with the next").waitFor();
  });
});
