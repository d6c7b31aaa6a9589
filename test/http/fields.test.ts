import { afterAll, describe, expect, test } from "bun:test";
import { accepts } from "../../src/http/fields.ts";
import { ADMIN_TOKEN, TestGateway } from "./test-gateway.ts";

/** What an error says of a body or a query that is not as declared: the field, what it must be, what it is. */
const gateway = new TestGateway();
const owner = (await gateway.setUp()).recovery_secret;
afterAll(() => gateway.stop());

const NAME = "a name of 1 to 64 letters, digits, dots, dashes or underscores";
const USD = "an amount in USD of 0 or more with at most 9 decimals";

describe("a body", () => {
  const budget = { name: "a", window: "day", cap_usd: 1 };
  const wrong: [string, unknown, string | null, string][] = [
    ["none", undefined, "name", `\`name\` is missing; it must be ${NAME}.`],
    ["no object", [budget], null, "The body must be a JSON object."],
    ["no JSON", "{name: a}", null, "The body is not valid JSON."],
    [
      "a member that is not known",
      { ...budget, cap: 2 },
      "cap",
      "`cap` is not a field of this request, which takes: name, cap_usd, window, per.",
    ],
    ["a text for a number", { ...budget, cap_usd: "1" }, "cap_usd", `\`cap_usd\` must be ${USD}; it is "1".`],
    ["less than the least", { ...budget, cap_usd: -1 }, "cap_usd", `\`cap_usd\` must be ${USD}; it is -1.`],
    [
      "ten decimals",
      { ...budget, cap_usd: 1e-10 },
      "cap_usd",
      `\`cap_usd\` must be ${USD}, at most 8,000,000; it is 1e-10.`,
    ],
    [
      "none of a few",
      { ...budget, window: "year" },
      "window",
      '`window` must be one of day, week, month, total; it is "year".',
    ],
    ["null", { ...budget, name: null }, "name", `\`name\` must be ${NAME}; it is null.`],
    ["a list", { ...budget, name: ["a", "b"] }, "name", `\`name\` must be ${NAME}; it is a list of 2.`],
    ["an object", { ...budget, name: {} }, "name", `\`name\` must be ${NAME}; it is an object.`],
    [
      "a long text, of which only the beginning is repeated",
      { ...budget, name: "x".repeat(65) },
      "name",
      `\`name\` must be ${NAME}; it is "${"x".repeat(64)}"…, of 65 characters.`,
    ],
  ];
  test.each(wrong)("%s", async (_, body, param, message) => {
    const { status, json } = await gateway.send("POST", "/v1/budgets", { bearer: owner, body });
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", param]);
    expect(json.error.message).toStartWith(`${message} See `);
  });
});

describe("a query", () => {
  const wrong: [string, string, string][] = [
    ["/v1/keys?limit=0", "limit", '`limit` must be a whole number from 1 to 1000; it is "0".'],
    ["/v1/receipts?limit=1.5", "limit", '`limit` must be a whole number from 1 to 100; it is "1.5".'],
    [
      "/v1/receipts?state=lost",
      "state",
      '`state` must be one of settled, written_off, failed, cancelled, recovered; it is "lost".',
    ],
    [
      "/v1/usage?period=year",
      "period",
      '`period` must be one of hour, day, today, yesterday, week, month; it is "year".',
    ],
    ["/v1/models?offset=-1", "offset", '`offset` must be a whole number from 0 to 999999999; it is "-1".'],
    [
      "/admin/usage?order=name",
      "order",
      '`order` must be one of cost, growth, requests, tokens, loss; it is "name".',
    ],
  ];
  test.each(wrong)("%s", async (path, param, message) => {
    const bearer = path.startsWith("/admin/") ? ADMIN_TOKEN : owner;
    const { status, json } = await gateway.send("GET", path, { bearer });
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", param]);
    expect(json.error.message).toStartWith(`${message} See `);
  });
});

test("a caller without a credential, or with one of another kind, gets an error about that alone, whatever else is wrong", async () => {
  const { key } = await gateway.setUp();
  const body = { cap_usd: "much" };
  const none = await gateway.send("POST", "/v1/budgets", { body });
  expect([none.status, none.json.error.code]).toEqual([401, "missing_api_key"]);
  const wrong = await gateway.send("POST", "/v1/budgets", { bearer: key, body });
  expect(wrong.json.error).toMatchObject({ code: "invalid_request", param: null });
  expect(wrong.json.error.message).toStartWith("An API key cannot see or change budgets.");
});

describe("a media type that is asked for", () => {
  const withAccept = (accept: string) =>
    accepts(new Request("http://gateway.test", { headers: { accept } }), "application/jose");
  test.each([
    ["application/jose", true],
    ["text/html, Application/JOSE ; q=0.5", true],
    ["application/jose;q=0", false],
    ["application/json, */*", false],
  ])("%s", (accept, is) => expect(withAccept(accept)).toBe(is));

  // Some kilobytes of spaces, from anybody with a key, once took a third of a second.
  test("is found in the time that the header's length takes", () => {
    for (let n = 0; n < 100; n++) expect(withAccept(`a${" ".repeat(15_000)}b, application/jose`)).toBe(true);
  });
});
