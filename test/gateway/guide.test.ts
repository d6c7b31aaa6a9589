import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type OpenGateway, open } from "./open.ts";

const PAYMENTS = `receipts: { sign: true }
payments:
  stripe: { secret_key: sk_test_1, webhook_secret: whsec_test, api_base: "http://127.0.0.1:1" }
`;

describe.each([
  ["with built-in defaults", ""],
  ["with payments and signed receipts", PAYMENTS],
])("/llms.txt %s", (_, config) => {
  let gateway: OpenGateway;
  beforeAll(async () => {
    gateway = await open(config);
  });
  afterAll(() => gateway.close());
  const text = async (path: string) => (await gateway.send("GET", path)).text;

  test("is named where an agent begins, and where it goes astray", async () => {
    expect(await text("/")).toContain(`${gateway.url}/llms.txt`);
    expect(await text("/v1/nowhere")).toContain("GET /llms.txt");
  });

  test("names no operation that is not served", async () => {
    const { paths } = (await gateway.send("GET", "/openapi.json")).json;
    const named = [...(await text("/llms.txt")).matchAll(/`(GET|POST|PATCH) (\S+?)`/g)];
    expect(named.length).toBeGreaterThan(8);
    for (const [, method, address] of named) {
      const path = address!.replace(gateway.url, "").replace("<id>", "{id}");
      expect([path, Object.keys(paths[path] ?? {})]).toEqual([
        path,
        expect.arrayContaining([method!.toLowerCase()]),
      ]);
    }
  });

  test("tells of payments and signatures only where they are", async () => {
    const guide = await text("/llms.txt");
    const signs = (await gateway.send("GET", "/.well-known/jwks.json")).status === 200;
    const paid = (await gateway.send("POST", "/v1/me/saved")).json.error.code === "missing_api_key";
    expect([guide.includes("jwks.json"), guide.includes("/v1/me/saved")]).toEqual([signs, paid]);
    expect([signs, paid]).toEqual([config !== "", config !== ""]);
  });
});

test("what the configuration lacks is named where it is needed", async () => {
  const gateway = await open("setup: { accountless_keys_per_address_per_hour: 0 }\n");
  const why = async (method: string, path: string) =>
    (await gateway.send(method, path)).json.error.message.split(" See ")[0];
  expect(await why("GET", "/v1/payments/options")).toBe(
    "`/v1/payments/options` is not served: this gateway takes no payments; its operator adds credit.",
  );
  expect(await why("GET", "/.well-known/jwks.json")).toContain("does not sign receipts");
  expect((await gateway.send("GET", "/llms.txt")).text).toContain("Keys are given out by the operator");
  await gateway.close();
});
