import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sse } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { type Made, type OpenGateway, open } from "./open.ts";

const configOf = (first: FakeHost, second: FakeHost, paused: readonly string[]): string => `
hosts:
  - { id: first, base_url: "${first.url}", speaks: [chat.completions], paused: ${paused.includes("first")} }
  - { id: second, base_url: "${second.url}", speaks: [chat.completions], paused: ${paused.includes("second")} }
models:
  - id: test/model
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 1, output: 1 }
    routes: [{ host: first, model: m }, { host: second, model: m }, { host: first, model: m, free: true }]
  - id: test/other
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 1, output: 1 }
    routes: [{ host: second, model: o }]
auto: { fast: [test/model], free: [test/model] }
`;

describe("a host that the operator pauses", () => {
  let gateway: OpenGateway;
  let [first, second]: FakeHost[] = [];
  let customer: Made;
  const pause = async (...hosts: string[]) => {
    gateway.folder.configure(configOf(first!, second!, hosts));
    expect((await gateway.admin("/admin/reload", {})).json).toEqual({ reloaded: true, needs_restart: [] });
  };
  const chat = (model: string) => gateway.chat(customer.key, { model, stream: true });
  const states = async () =>
    (await gateway.admin("/admin/hosts")).json.data.map((host: { state: string }) => host.state);

  beforeAll(async () => {
    first = await startFakeHost(() => sse(chatText().events));
    second = await startFakeHost(() => sse(chatText().events));
    gateway = await open(configOf(first, second, []));
    customer = await gateway.key(1);
  });
  afterAll(async () => {
    await gateway.close();
    await first!.close();
    await second!.close();
  });

  test("is given no request from the reload on, and its models' other hosts serve", async () => {
    expect((await chat("test/model")).status).toBe(200);
    await pause("first");
    const before = first!.requests.length;
    expect((await chat("test/model")).status).toBe(200);
    expect((await chat("gateway/auto:fast")).status).toBe(200);
    expect([first!.requests.length, await states()]).toEqual([before, ["paused", "available"]]);
    expect((await gateway.send("GET", "/status")).text).not.toContain("<h3>first</h3>");
  });

  test("serves no free request either", async () => {
    const { status, json } = await chat("gateway/auto:free");
    expect([status, json.error.code]).toEqual([503, "no_free_route"]);
  });

  test("a model whose hosts are all paused says so, and is in the catalog as not available", async () => {
    await pause("first", "second");
    const { status, json } = await chat("test/model");
    expect([status, json.error.code]).toEqual([503, "model_unavailable"]);
    expect(json.error.message).toContain("the operator has paused all of them");
    const auto = await chat("gateway/auto:fast");
    expect(auto.json.error.message).toContain("test/model (its hosts are paused)");
    const { data } = (await gateway.send("GET", "/v1/catalog", { bearer: customer.key })).json;
    expect(data).toMatchObject([
      { id: "test/model", available: false, price: { input: 1 } },
      { id: "test/other", available: false },
    ]);
  });

  test("serves again once it is paused no longer", async () => {
    await pause();
    const before = first!.requests.length;
    expect((await chat("test/model")).status).toBe(200);
    expect(first!.requests.length).toBeGreaterThan(before);
    expect(await states()).toEqual(["available", "unused"]);
  });
});
