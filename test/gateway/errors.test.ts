import { afterAll, describe, expect, test } from "bun:test";
import { deflateSync } from "node:zlib";
import { ERROR_CODES, ERRORS, type ErrorCode } from "../../src/units/errors/codes.ts";
import { json, silence, sse, status } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import type { Reply } from "../process/gateway.ts";
import { ADMIN } from "../process/gateway.ts";
import { type Made, open } from "./open.ts";

/** Every row of the specification's errors table, produced by its real cause. */

const { events, whole } = chatText();
const host = await startFakeHost((request) => {
  const { model, stream } = request.json();
  if (model === "broken") return status(500);
  if (model === "silent") return silence();
  if (model === "breaking") return sse(events.slice(0, 3), { end: "cut" });
  if (model === "small")
    return json({ error: { message: "maximum context length is 10", code: "context_length_exceeded" } }, 400);
  return stream === true ? sse(events) : json(whole);
});
const model = (id: string, name: string, more = "") =>
  `  - { id: ${id}, name: x, context_length: 2000, max_output_tokens: 1000, price: { input: 1, output: 10 }, routes: [{ host: h, model: ${name} ${more} }] }`;
const gateway = await open(`
contact: mailto:ops@example.com
hosts:
  - { id: h, base_url: "${host.url}/v1", speaks: [chat.completions] }
models:
${model("test/model", "fine")}
${model("test/broken", "broken")}
${model("test/silent", "silent")}
${model("test/breaking", "breaking")}
${model("test/small", "small")}
${model("test/twin", "fine")}
${model("other/twin", "fine")}
${model("test/free", "fine", ", free: true")}
  - { id: test/both, name: x, context_length: 2000, max_output_tokens: 1000, price: { input: 1, output: 10 }, routes: [{ host: h, model: fine }, { host: h, model: fine, free: true }] }
${model("test/unverified", "broken", ", free: true")}
  - { id: test/unpriced, name: x, context_length: 2000, max_output_tokens: 1000, routes: [{ host: h, model: fine }] }
auto:
  broken: [test/unpriced, test/broken]
  skips: [test/unpriced]
  free: [test/free]
open_tier: { requests_per_day: 2, accountless_requests_per_day: 2, rpm: 100 }
generation: { first_token_ms: 300, max_hosts: 3 }
`);
// Once a prompt was counted, the words that count are loaded, and 300 ms are enough for each of the rows.
const { key } = await gateway.key(1);
const count = { model: "test/model", messages: [{ role: "user", content: "Hi" }] };
await gateway.send("POST", "/v1/messages/count_tokens", { bearer: key, json: count });
const page = await (await fetch(`${gateway.url}/docs/errors`)).text();
const anchors = new Set([...page.matchAll(/\bid="([a-z_]+)"/g)].map(([, id]) => id!));
afterAll(() => closeAll(gateway, host));

const suspended = async (reason: string): Promise<Reply> => {
  const { key, balance_id } = await gateway.key(1);
  await gateway.admin(`/admin/accounts/${balance_id}/suspend`, { reason });
  const refused = await gateway.chat(key);
  await gateway.admin(`/admin/accounts/${balance_id}/unsuspend`, {});
  expect((await gateway.chat(key)).status).toBe(200);
  return refused;
};

const FREE = { model: "gateway/auto:free" };

interface Row {
  readonly code: ErrorCode;
  readonly because: string;
  readonly cause: () => Promise<Reply>;
  readonly says?: readonly (string | RegExp)[];
  readonly param?: string;
  /** Waiting does not fix it: official clients do not repeat the request by themselves. */
  readonly notSoon?: true;
}

const ROWS: readonly Row[] = [
  {
    code: "missing_api_key",
    because: "no bearer token",
    cause: () => gateway.send("POST", "/v1/chat/completions", { json: {} }),
  },
  {
    code: "missing_api_key",
    because: "x-api-key where it is not read",
    cause: () =>
      gateway.send("POST", "/v1/chat/completions", { json: {}, headers: { "x-api-key": "or-live-x" } }),
    says: ["Authorization: Bearer"],
  },
  {
    code: "invalid_api_key",
    because: "unknown",
    cause: () => gateway.chat(`or-live-${"1".repeat(32)}`),
    says: ["or-live-", "POST /v1/keys", "Incorrect API key provided"],
  },
  {
    code: "invalid_api_key",
    because: "revoked",
    async cause() {
      const { id, key } = await gateway.key(1);
      expect((await gateway.chat(key)).status).toBe(200);
      await gateway.send("DELETE", `/v1/keys/${id}`, { bearer: key });
      return gateway.chat(key);
    },
  },
  {
    code: "invalid_api_key",
    because: "the recovery secret in the place of the key",
    cause: async () => gateway.chat((await gateway.key(1)).recovery_secret),
    says: ["This is a recovery secret", "or-live-", "POST /v1/keys"],
  },
  {
    code: "invalid_api_key",
    because: "the recovery link in the place of the key",
    cause: async () => gateway.chat((await gateway.key(1)).recovery_url),
    says: ["This is a recovery link", "or-live-", "POST /v1/keys"],
  },
  {
    code: "invalid_api_key",
    because: "the id of a key in the place of the key",
    cause: async () => gateway.chat((await gateway.key(1)).id),
    says: ["This is the id of a key", "or-live-", "POST /v1/keys"],
  },
  {
    code: "invalid_api_key",
    because: "the prefix of a key in the place of the key",
    cause: async () => gateway.chat((await gateway.key(1)).prefix),
    says: ["This is the beginning of a key", "or-live-", "POST /v1/keys"],
  },
  {
    code: "insufficient_credit",
    because: "no credit",
    cause: async () => gateway.chat((await gateway.key(0)).key),
    says: [
      "$0.00",
      "worst case",
      /balance `bal_\w+`/,
      "(ops@example.com)",
      "/dashboard",
      "`test/free:free` needs no credit",
    ],
  },
  {
    code: "insufficient_credit",
    because: "no credit, for a model that has a free route",
    cause: async () => gateway.chat((await gateway.key(0)).key, { model: "test/both" }),
    says: ["`test/both:free` needs no credit"],
  },
  {
    code: "unknown_model",
    because: "a typo",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "test/modle" }),
    says: ["test/model", "/v1/catalog"],
    param: "model",
  },
  {
    code: "unknown_model",
    because: "no author, and a name that two have",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "twin" }),
    says: ["test/twin", "other/twin"],
    param: "model",
  },
  {
    code: "model_unavailable",
    because: "its host fails",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "test/broken" }),
    says: ["1 host was tried", "test/model"],
  },
  {
    code: "model_unavailable",
    because: "no price",
    param: "model",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "test/unpriced" }),
    notSoon: true,
  },
  {
    code: "auto_unresolvable",
    because: "nothing to try",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "gateway/auto:skips" }),
    says: ["test/unpriced", "price"],
    notSoon: true,
  },
  {
    code: "auto_unresolvable",
    because: "all that was tried failed",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "gateway/auto:broken" }),
    says: ["test/broken"],
  },
  {
    code: "no_free_route",
    because: "not verified",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "test/unverified:free" }),
    says: ["not switched", "nothing was charged"],
  },
  {
    code: "no_free_route",
    because: "the model has none",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "test/model:free" }),
    says: ["not switched", "adding credit does not help"],
    notSoon: true,
  },
  {
    code: "free_quota_exceeded",
    because: "the third of two, from another key of the balance, with credit",
    async cause() {
      const made = await gateway.key(1);
      for (let used = 0; used < 2; used++) expect((await gateway.chat(made.key, FREE)).status).toBe(200);
      const other = await gateway.send("POST", "/v1/keys", { bearer: made.recovery_secret, json: {} });
      return gateway.chat(other.json.key, FREE);
    },
    says: ["00:00 UTC"],
  },
  {
    code: "rate_limited",
    because: "rpm",
    async cause() {
      const { key } = await gateway.key(1, { rpm_limit: 1 });
      expect((await gateway.chat(key)).status).toBe(200);
      return gateway.chat(key);
    },
    says: ["rpm_limit", "1 requests", "/dashboard"],
  },
  {
    code: "rate_limited",
    because: "tpm, alone above it",
    cause: async () => gateway.chat((await gateway.key(1, { tpm_limit: 50 })).key),
    says: ["tpm_limit", "waiting will not help", "Set max_tokens to at most 28"],
    notSoon: true,
  },
  {
    code: "budget_exhausted",
    because: "the daily cap",
    cause: async () => gateway.chat((await gateway.key(1, { daily_limit_usd: 0.0001 })).key),
    says: ["daily_limit_usd", "$0.0001"],
  },
  {
    code: "budget_exhausted",
    because: "the monthly cap",
    cause: async () => gateway.chat((await gateway.key(1, { monthly_limit_usd: 0.0001 })).key),
    says: ["monthly_limit_usd"],
  },
  {
    code: "budget_exhausted",
    because: "a named budget",
    async cause() {
      const made = await gateway.key(1);
      const owner = { bearer: made.recovery_secret };
      await gateway.send("POST", "/v1/budgets", {
        ...owner,
        json: { name: "team", cap_usd: 0.0002, window: "day" },
      });
      await gateway.send("PATCH", `/v1/keys/${made.id}`, { ...owner, json: { budget: "team" } });
      return gateway.chat(made.key);
    },
    says: ["`team`", "$0.0002", "is used"],
  },
  {
    code: "budget_exhausted",
    because: "a named budget without an end",
    async cause() {
      const made = await gateway.key(1);
      const owner = { bearer: made.recovery_secret };
      await gateway.send("POST", "/v1/budgets", {
        ...owner,
        json: { name: "once", cap_usd: 0.0002, window: "total" },
      });
      await gateway.send("PATCH", `/v1/keys/${made.id}`, { ...owner, json: { budget: "once" } });
      return gateway.chat(made.key);
    },
    says: ["`once`"],
    notSoon: true,
  },
  {
    code: "context_too_long",
    because: "counted here",
    cause: async () =>
      gateway.chat((await gateway.key(1)).key, {
        messages: [{ role: "user", content: "word ".repeat(5_000) }],
      }),
    says: [/prompt is too long: 50\d\d tokens > 2000/, "This model's maximum context length is 2000 tokens"],
  },
  {
    code: "context_too_long",
    because: "counted here, for every candidate that could serve",
    cause: async () =>
      gateway.chat((await gateway.key(1)).key, {
        model: "gateway/auto:broken",
        messages: [{ role: "user", content: "word ".repeat(5_000) }],
      }),
    says: [/\b50\d\d tokens/, "is 2000 tokens (test/broken)"],
  },
  {
    code: "context_too_long",
    because: "the host says so",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "test/small" }),
    says: ["prompt is too long", "this model's maximum context length is", "maximum context length is 10"],
  },
  {
    code: "payload_too_large",
    because: "10 MB and a byte",
    cause: async () =>
      gateway.send("POST", "/v1/chat/completions", {
        bearer: (await gateway.key(1)).key,
        bytes: "x".repeat(10_485_761),
      }),
  },
  {
    code: "upstream_error",
    because: "a stream breaks",
    cause: async () =>
      streamError(await gateway.chat((await gateway.key(1)).key, { model: "test/breaking", stream: true })),
  },
  {
    code: "request_timeout",
    because: "a silent host",
    cause: async () => gateway.chat((await gateway.key(1)).key, { model: "test/silent" }),
  },
  {
    code: "invalid_request",
    because: "no messages",
    cause: async () => gateway.chat((await gateway.key(1)).key, { messages: [] }),
    says: ["`messages` must be a non-empty array"],
    param: "messages",
  },
  ...["models", "provider", "route", "fallbacks"].flatMap((override) =>
    [{}, null].map(
      (value): Row => ({
        code: "invalid_request",
        because: `${override} on the Open Tier, though it is ${JSON.stringify(value)}`,
        cause: async () => gateway.chat((await gateway.key(1)).key, { ...FREE, [override]: value }),
        says: [override],
        param: override,
      }),
    ),
  ),
  {
    code: "invalid_request",
    because: "a model that the key may not call",
    cause: async () => gateway.chat((await gateway.key(1, { allowed_models: ["test/broken"] })).key),
    says: ["It may call: test/broken."],
    param: "model",
  },
  {
    code: "invalid_request",
    because: "a key that may only call what nobody published",
    cause: async () => gateway.chat((await gateway.key(1, { allowed_models: ["test/modle"] })).key),
    says: ["test/modle (not in the catalog)"],
    param: "model",
  },
  {
    code: "unsupported_endpoint",
    because: "embeddings",
    cause: async () =>
      gateway.send("POST", "/v1/embeddings", { bearer: (await gateway.key(1)).key, json: {} }),
    says: ["/v1/chat/completions", "/v1/responses", "/v1/messages"],
  },
  {
    code: "unsupported_endpoint",
    because: "a base address that lacks /v1",
    cause: async () =>
      gateway.send("POST", "/chat/completions", { bearer: (await gateway.key(1)).key, json: {} }),
    says: ["`/chat/completions` is not served, but `/v1/chat/completions` is", "base URL end in `/v1`"],
  },
  {
    code: "unsupported_endpoint",
    because: "a slash at the end",
    cause: async () =>
      gateway.send("POST", "/v1/chat/completions/", { bearer: (await gateway.key(1)).key, json: {} }),
    says: ["`/v1/chat/completions/` is not served, but `/v1/chat/completions` is", "leave out the slash"],
  },
  {
    code: "unsupported_endpoint",
    because: "a base address with a slash at its end",
    cause: async () =>
      gateway.send("POST", "/v1//chat/completions", { bearer: (await gateway.key(1)).key, json: {} }),
    says: ["base URL end in `/v1`, without a slash at its end"],
  },
  ...[
    ["the endpoint", "/v1/chat/completions/chat/completions"],
    ["another service's prefix", "/api/v1/chat/completions"],
  ].map(
    ([what, path]): Row => ({
      code: "unsupported_endpoint",
      because: `a base address with ${what} in it`,
      cause: async () => gateway.send("POST", path!, { bearer: (await gateway.key(1)).key, json: {} }),
      says: [`\`${path}\` is not served, but \`/v1/chat/completions\` is`, "base URL end in `/v1`"],
    }),
  ),
  {
    code: "account_suspended",
    because: "a chargeback",
    cause: () => suspended("chargeback"),
    says: ["chargeback", "(ops@example.com)"],
  },
  {
    code: "account_suspended",
    because: "sanctions",
    cause: () => suspended("sanctions"),
    says: ["sanctions", "(ops@example.com)"],
  },
  {
    code: "account_suspended",
    because: "acceptable use",
    cause: () => suspended("acceptable_use"),
    says: ["acceptable", "(ops@example.com)"],
  },
];

/** The error inside a stream, as if it were a reply of its own. */
function streamError(reply: Reply): Reply {
  const data = reply.text.split("\n").find((line) => line.startsWith('data: {"error"'));
  return { ...reply, status: ERRORS.upstream_error.status, json: JSON.parse(data!.slice("data: ".length)) };
}

describe("each error of the table, by its cause", () => {
  for (const row of ROWS) {
    test(`${row.code}: ${row.because}`, async () => {
      const reply = await row.cause();
      const { error } = reply.json;
      expect(error.code).toBe(row.code);
      expect(reply.status).toBe(ERRORS[row.code].status);
      expect(error.type).toBe(ERRORS[row.code].type);
      expect(error.param).toBe(row.param ?? (row.code === "context_too_long" ? error.param : null));
      for (const text of row.says ?? [])
        expect(error.message).toMatch(text instanceof RegExp ? text : literal(text));
      const link = error.message.split(" ").at(-1);
      expect(link).toBe(`${gateway.url}/docs/errors#${row.code}`);
      expect(anchors).toContain(row.code);
      expect(reply.headers.get("x-gateway-receipt")).toStartWith("rcpt_");
      const isRetried = reply.headers.get("x-should-retry") !== "false";
      if (row.notSoon) expect(isRetried).toBe(false);
      if (reply.status < 500 && reply.status !== 429) expect(isRetried).toBe(false);
      // Codex gives up at once after these where it is not said how long to wait.
      if (reply.status === 429 || reply.status === 503 || row.notSoon)
        expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(error.type).not.toBe("overloaded_error");
      if (row.code === "insufficient_credit") expect(reply.headers.get("x-gateway-balance-usd")).toBe("0");
    });
  }

  test("no code of the table is without a cause here, but for the one that must not happen", () => {
    const caused = new Set(ROWS.map(({ code }) => code));
    expect(ERROR_CODES.filter((code) => !caused.has(code))).toEqual(["internal_error"]);
  });

  test("the receipt of a refused request can be read by its key", async () => {
    const { key } = await gateway.key(0);
    const refused = await gateway.chat(key);
    const receipt = await gateway.receipt(refused, key);
    expect(receipt.json).toMatchObject({ state: "refused", error_code: "insufficient_credit", cost_usd: 0 });
  });

  let mistaken: Made | null = null;
  const MESSAGES = '"messages":[{"role":"user","content":"Hi"}]';
  test.each<[string, string, string | null, boolean]>([
    ["a list without messages", '{"model":"test/model","stream":true,"messages":[]}', "test/model", true],
    [
      "a bad ceiling, reported last",
      `{"max_tokens":-1,${MESSAGES},"stream":false,"model":"test/model"}`,
      "test/model",
      false,
    ],
    [
      "a field given twice",
      `{"model":"test/model","stream":true,"n":1,"n":2,${MESSAGES}}`,
      "test/model",
      true,
    ],
    ["a costly service", `{"model":"test/model","service_tier":"priority",${MESSAGES}}`, "test/model", false],
    [
      "a list of models alone",
      `{"models":["test/model","test/broken"],"max_tokens":0,${MESSAGES}}`,
      "test/model",
      false,
    ],
    ["a name with signs", `{"model":"test/\\u00e9\\"","n":0,${MESSAGES}}`, 'test/é"', false],
    ["a body that breaks off", '{"model":"test/model","stream":true,"messages":[{"ro', "test/model", true],
    ["a stream that is no answer", `{"model":"test/model","stream":"yes",${MESSAGES}}`, "test/model", false],
    ["a number for a model", `{"model":7,"stream":true,${MESSAGES}}`, null, true],
    ["a name that breaks off", '{"stream":true,"model":"test/mo', null, true],
    ["a long name", `{"model":"${"x".repeat(100_000)}","n":0,${MESSAGES}}`, "x".repeat(200), false],
    ["a byte order mark before it", `\ufeff{"model":"test/model","n":0,${MESSAGES}}`, "test/model", false],
    ["no object", '["model","test/model"]', null, false],
    ["nothing", "", null, false],
  ])(
    "the receipt of a request with one mistake says what it asked for: %s",
    async (_, bytes, model, stream) => {
      mistaken ??= await gateway.key(0);
      const { key } = mistaken;
      const refused = await gateway.send("POST", "/v1/chat/completions", { bearer: key, bytes });
      expect(refused.json.error.code).toBe("invalid_request");
      const receipt = await gateway.receipt(refused, key);
      expect(receipt.json).toMatchObject({ state: "refused", model_requested: model, stream });
    },
  );

  test("the receipt of a request that was refused unread says that its model is not known", async () => {
    const { key } = await gateway.key(1, { rpm_limit: 1 });
    await gateway.chat(key);
    const refused = await gateway.chat(key);
    expect(refused.json.error.code).toBe("rate_limited");
    const receipt = await gateway.receipt(refused, key);
    expect(receipt.json).toMatchObject({
      state: "refused",
      model_requested: null,
      error_code: "rate_limited",
    });
  });

  test("a model's name as long as a body is neither repeated nor kept whole", async () => {
    const { key } = await gateway.key(0);
    const refused = await gateway.chat(key, { model: `test/${"x".repeat(1_000_000)}` });
    expect(refused.json.error.code).toBe("unknown_model");
    expect(refused.text.length).toBeLessThan(1_000);
    const receipt = await gateway.receipt(refused, key);
    expect(receipt.text.length).toBeLessThan(2_000);
  });

  test("on /v1/messages the body has a type of its own, for Anthropic's clients", async () => {
    const { key } = await gateway.key(0);
    const reply = await gateway.send("POST", "/v1/messages", { bearer: key, json: { model: "test/model" } });
    expect(reply.json).toMatchObject({
      type: "error",
      error: { code: "invalid_request", param: "messages" },
    });
  });
});

test.each([
  ["gzip", Bun.gzipSync],
  ["zstd", Bun.zstdCompressSync],
] as const)(
  "a body packed with %s is served if its header says so, else refused with the reason",
  async (coding, pack) => {
    const { key } = await gateway.key(1);
    const body = { model: "test/model", messages: [{ role: "user", content: "Hi" }], max_tokens: 20 };
    const bytes = pack(Buffer.from(JSON.stringify(body)));
    const packed = { bearer: key, bytes, headers: { "content-encoding": coding } };
    expect((await gateway.send("POST", "/v1/chat/completions", packed)).status).toBe(200);
    for (const twice of [
      { ...packed, headers: {} },
      { ...packed, bytes: pack(bytes as Uint8Array<ArrayBuffer>) },
    ]) {
      const reply = await gateway.send("POST", "/v1/chat/completions", twice);
      expect([reply.status, reply.json.error.code]).toEqual([400, "invalid_request"]);
      expect(reply.json.error.message).toContain("compressed");
    }
  },
);

test("a body packed with deflate is refused by its header", async () => {
  const { key } = await gateway.key(0);
  const packed = { bearer: key, bytes: deflateSync("{}"), headers: { "content-encoding": "deflate" } };
  const reply = await gateway.send("POST", "/v1/chat/completions", packed);
  expect([reply.status, reply.json.error.param]).toEqual([400, "Content-Encoding"]);
});

describe("bad input: an error with a receipt, nothing held, and the server goes on", () => {
  const valid = '"messages":[{"role":"user","content":"Hi"}]';
  const deep = (levels: number) =>
    `{"model":"test/model","messages":${"[".repeat(levels)}${"]".repeat(levels)}}`;
  const members = (count: number) => Array.from({ length: count }, (_, at) => `"k${at}":1`).join(",");
  test.each<[string, string | Uint8Array, string | null]>([
    ["no JSON", "hello", null],
    ["half of it", '{"model":"test/model",', null],
    ["an array", "[]", null],
    ["null", "null", null],
    ["nothing", "", null],
    ["a number for a model", `{"model":7,${valid}}`, "model"],
    ["no model", `{${valid}}`, "model"],
    ["an object for messages", '{"model":"test/model","messages":{}}', "messages"],
    ["a string among messages", '{"model":"test/model","messages":["Hi"]}', "messages[0]"],
    ["a string for stream", `{"model":"test/model","stream":"yes",${valid}}`, "stream"],
    ["a negative ceiling", `{"model":"test/model","max_tokens":-1,${valid}}`, "max_tokens"],
    ["a fraction for a ceiling", `{"model":"test/model","max_tokens":1.5,${valid}}`, "max_tokens"],
    ["a huge n", `{"model":"test/model","n":1e9,${valid}}`, "n"],
    ["model twice", `{"model":"test/model","model":"test/broken",${valid}}`, "model"],
    ["model, escaped, twice", `{"model":"test/model","mod\\u0065l":"test/broken",${valid}}`, "model"],
    ["max_tokens twice", `{"model":"test/model","max_tokens":1,"max_tokens":9000,${valid}}`, "max_tokens"],
    [
      "a paid search, hidden behind a second one",
      `{"model":"test/model","web_search_options":{},"web_search_options":null,${valid}}`,
      "web_search_options",
    ],
    ["a spoken answer, hidden so", `{"model":"test/model","audio":{},"audio":null,${valid}}`, "audio"],
    ["10,000 levels", deep(10_000), null],
    ["800,000 members", `{"model":"test/model",${valid},"metadata":{${members(800_000)}}}`, null],
    ["250,001 elements", `{"model":"test/model",${valid},"metadata":[${"12345,".repeat(250_000)}1]}`, null],
    ["bytes that are not UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d), null],
  ])("%s", async (_name, bytes, param) => {
    const { key } = await funded();
    const reply = await gateway.send("POST", "/v1/chat/completions", { bearer: key, bytes });
    expect(reply.status).toBe(400);
    expect(reply.json.error).toMatchObject({ code: "invalid_request", param });
    expect(reply.headers.get("x-gateway-receipt")).toStartWith("rcpt_");
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.held_usd).toBe(0);
    expect((await gateway.chat(key)).status).toBe(200);
  });

  test.each([
    ["one byte below 10 MB", 10_485_759, 400],
    ["10 MB", 10_485_760, 400],
    ["one byte more", 10_485_761, 413],
  ])("a body of %s", async (_name, size, status) => {
    const { key } = await funded();
    const filler = "x".repeat(size - '{"filler":""}'.length);
    for (const chunked of [false, true]) {
      const bytes = new TextEncoder().encode(`{"filler":"${filler}"}`);
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: chunked ? oneChunk(bytes) : bytes,
      });
      expect(response.status).toBe(status);
      const { error } = (await response.json()) as { error: { code: string } };
      expect(error.code).toBe(status === 413 ? "payload_too_large" : "invalid_request");
    }
  });

  test.each([
    ["GET", "/v1/chat/completions", "invalid_request"],
    ["DELETE", "/v1/messages", "invalid_request"],
    ["POST", "/v1/nothing", "unsupported_endpoint"],
    ["POST", "/v1/audio/speech", "unsupported_endpoint"],
  ])("%s %s", async (method, path, code) => {
    const reply = await gateway.send(method, path, { bearer: (await funded()).key });
    expect(reply.json.error.code).toBe(code);
    expect(reply.headers.get("x-gateway-receipt")).toStartWith("rcpt_");
  });

  let shared: Promise<Made> | null = null;
  function funded(): Promise<Made> {
    shared ??= gateway.key(5, { rpm_limit: null, tpm_limit: null });
    return shared;
  }
});

test("the books are right after all of it, and the log contains no secret", async () => {
  expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({
    ok: true,
    drift_nano: "0",
    held_nano: "0",
  });
  expect(gateway.logged.join("\n")).not.toMatch(/or-live-|or-rec-/);
  expect(gateway.logged.join("\n")).not.toContain(ADMIN);
  expect(gateway.logged.filter((line) => line.includes('"fault"'))).toEqual([]);
});

const literal = (text: string): RegExp => new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));

/** A body of unknown length. */
const oneChunk = (bytes: Uint8Array): ReadableStream =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
