import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { TSchema } from "@sinclair/typebox";
import type { Credential } from "../../src/api/about.ts";
import { controlEndpoints } from "../../src/http/app.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { handshake } from "../fakes/frames.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import { RawClient, whole } from "../http/raw-client.ts";
import { ADMIN, simpleConfig } from "../process/gateway.ts";
import { Random } from "../sim/random.ts";
import { type Found, inParallel, unlessItHangs } from "./cases.ts";
import { mutated, spoilt } from "./mutate.ts";

/** What a client sends on a connection. Words in angle brackets stand for this run's secrets and ids. */
export interface RequestCase {
  /** In base64. */
  readonly bytes: string;
  /** Where the bytes are parted on their way. */
  readonly cuts: readonly number[];
  /** The client leaves as soon as it has sent them, instead of waiting for an answer. */
  readonly leaves: boolean;
  /** The bytes follow the handshake of a WebSocket. */
  readonly isSocket?: boolean;
}

export function requestCases(seed: number, count: number): RequestCase[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => drawn(random));
}

function drawn(random: Random): RequestCase {
  const wellFormed = request(random);
  const bytes = random.chance(0.5) ? mutated(wellFormed, random) : wellFormed;
  return {
    bytes: bytes.toString("base64"),
    cuts: Array.from({ length: random.below(4) }, () => random.below(bytes.length + 1)).sort((a, b) => a - b),
    leaves: random.chance(0.1),
  };
}

const CHAT = {
  model: "test/model",
  max_tokens: 20,
  temperature: 1,
  messages: [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "Hello" },
        { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "42" },
  ],
  tools: [
    {
      type: "function",
      function: { name: "f", description: "d", parameters: { type: "object", properties: {} } },
    },
  ],
};
const RESPONSES = {
  model: "test/model",
  max_output_tokens: 20,
  instructions: "Be brief.",
  input: [
    {
      role: "user",
      content: [
        { type: "input_text", text: "Hello" },
        { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjQK" },
      ],
    },
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "c", output: "42" },
  ],
  tools: [{ type: "function", name: "f", parameters: { type: "object", properties: {} } }],
};
const MESSAGES = {
  model: "test/model",
  max_tokens: 20,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "Hello" },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "x" } },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "t", signature: "s" },
        { type: "tool_use", id: "t", name: "f", input: {} },
      ],
    },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "42" }] }],
    },
  ],
  tools: [{ name: "f", input_schema: { type: "object" } }],
};

/** What generates, and pages. */
const SEEDS: readonly [method: string, path: string, bearer: string, body?: object | undefined][] = [
  ["POST", "/v1/chat/completions", "<payer>", CHAT],
  [
    "POST",
    "/v1/chat/completions",
    "<payer>",
    { ...CHAT, stream: true, stream_options: { include_usage: true } },
  ],
  ["POST", "/v1/responses", "<payer>", RESPONSES],
  ["POST", "/v1/responses", "<payer>", { ...RESPONSES, stream: true }],
  ["POST", "/v1/messages", "<payer>", MESSAGES],
  ["POST", "/v1/messages", "<payer>", { ...MESSAGES, stream: true }],
  ["POST", "/v1/messages/count_tokens", "<payer>", MESSAGES],
  ["POST", "/v1/chat/completions", "<poor>", CHAT],
  ["GET", "/metrics", ""],
  ["GET", "/openapi.json", ""],
  ["GET", "/status", ""],
  ["GET", "/docs/errors", ""],
  ["OPTIONS", "/v1/chat/completions", ""],
  ["HEAD", "/v1/models", "<payer>"],
  ["GET", "/readyz", ""],
];

/** `payer` has credit; `other` and its owner may lose theirs on the way. */
const CREDENTIALS: Readonly<Record<Credential, readonly string[]>> = {
  none: ["", "<payer>"],
  key: ["<payer>", "<other>"],
  owner: ["<owner>", "<session>"],
  session: ["<session>"],
  admin: ["<admin>"],
};

/** An endpoint of the gateway's own table, with what its document says that it takes. */
function control(random: Random): (typeof SEEDS)[number] {
  const { method, path, about } = random.pick(random.chance(0.05) ? CONTROL : HARMLESS);
  const credential = about.who.length === 0 ? "none" : random.pick(about.who);
  const query = Object.keys(about.query ?? {})
    .filter(() => random.chance(0.5))
    .map((name) => `${name}=${random.pick(TEXTS)}`);
  const named = path.replaceAll(/:\w+/g, () => random.pick(IDS));
  const bearer = random.chance(0.9) ? random.pick(CREDENTIALS[credential]) : "<payer>";
  const body = about.body === undefined ? undefined : (sample(about.body, random) as object);
  return [method, query.length === 0 ? named : `${named}?${query.join("&")}`, bearer, body];
}

const CONTROL = controlEndpoints();
/** Others end keys, sessions and accounts that the rest of the cases use. */
const HARMLESS = CONTROL.filter(
  ({ method, path }) => method !== "DELETE" && !/recovery|rotate|revoke|suspend|logout|detach/.test(path),
);
const IDS = ["<other_id>", "<other_balance>", "<account>", "rcpt_1", "b", "test/model", "x"];
const TEXTS = [
  "<other_balance>",
  "<other_id>",
  "kim@example.com",
  "x",
  "1",
  "0.5",
  "day",
  "abuse",
  "2026-01-01T00:00:00Z",
  "all",
];

/** A value of the schema, about as a client would write it. */
function sample(schema: TSchema, random: Random): unknown {
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.anyOf)) return sample(random.pick(schema.anyOf as TSchema[]), random);
  switch (schema.type) {
    case "object":
      return Object.fromEntries(
        Object.entries((schema.properties ?? {}) as Record<string, TSchema>)
          .filter(([name]) => schema.required?.includes(name) || random.chance(0.5))
          .map(([name, member]) => [name, sample(member, random)]),
      );
    case "array":
      return [sample((schema.items ?? {}) as TSchema, random)];
    case "string":
      return random.pick(TEXTS);
    case "boolean":
      return random.chance(0.5);
    case "null":
      return null;
    default:
      return random.pick([1, 5, 0.5, 0]);
  }
}

function request(random: Random): Buffer {
  const [method, path, bearer, fields] = random.chance(0.5) ? random.pick(SEEDS) : control(random);
  const body =
    fields === undefined
      ? null
      : Buffer.from(JSON.stringify(random.chance(0.6) ? spoilt(fields, random) : fields));
  const head = [
    `${method} ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    ...(bearer === "" ? [] : [`Authorization: Bearer ${bearer}`]),
    ...(random.chance(0.2) ? [random.pick(FIELDS)] : []),
  ];
  if (body === null) return Buffer.from([...head, "", ""].join("\r\n"));
  const packed = random.chance(0.1);
  const sent = packed ? gzipSync(body) : body;
  if (packed) head.push("Content-Encoding: gzip");
  if (random.chance(0.7))
    return Buffer.concat([
      Buffer.from([...head, `Content-Length: ${sent.length}`, "", ""].join("\r\n")),
      sent,
    ]);
  const middle = random.below(sent.length + 1);
  const chunk = (bytes: Buffer) =>
    bytes.length === 0 ? [] : [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")];
  return Buffer.concat([
    Buffer.from([...head, "Transfer-Encoding: chunked", "", ""].join("\r\n")),
    ...chunk(sent.subarray(0, middle)),
    ...chunk(sent.subarray(middle)),
    Buffer.from("0\r\n\r\n"),
  ]);
}

const FIELDS = [
  "Origin: https://evil.example",
  "Cookie: __Host-session=x",
  "X-Forwarded-For: ::ffff:1.2.3.4, [2001:db8::1]:80, x",
  "X-Gateway-Balance: bal_x",
  "X-Gateway-Run: r; usd=1; calls=1",
  "Idempotency-Key: k",
  "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  "Expect: 100-continue",
  "Upgrade: websocket",
  "Anthropic-Version: 2023-06-01",
  "Range: bytes=0-1",
  "If-None-Match: *",
  "Accept-Encoding: gzip",
];

/**
 * Sends each case to a whole gateway, and returns what went wrong: a 500, a fault in the log, an answer that
 * never comes, money or memory that is held or missing at the end.
 */
export async function fuzzRequests(
  cases: readonly RequestCase[],
  progress: (done: number) => void = () => {},
): Promise<Found<RequestCase>[]> {
  const found: Found<RequestCase>[] = [];
  for (let from = 0; from < cases.length; from += WORLD_CASES) {
    const some = cases.slice(from, from + WORLD_CASES);
    const world = await World.open();
    const wrong: Found<RequestCase>[] = [];
    let done = 0;
    await inParallel(some, AT_ONCE, async (one) => {
      const what = await unlessItHangs(world.wrongWith(one));
      if (what !== null) wrong.push({ case: one, wrong: what });
      progress(from + ++done);
    });
    const left = await world.close();
    found.push(...wrong);
    if (left.length > 0 && wrong.length === 0) found.push(...(await blamed(some, left)));
  }
  return found;
}

const WORLD_CASES = 2_500;
const AT_ONCE = 16;

/** Which half of the cases leaves the same behind, and so on; the smallest lot that does, if none alone does. */
async function blamed(cases: readonly RequestCase[], left: readonly string[]): Promise<Found<RequestCase>[]> {
  if (cases.length === 1) return [{ case: cases[0]!, wrong: left.join("; ") }];
  const middle = Math.ceil(cases.length / 2);
  for (const half of [cases.slice(0, middle), cases.slice(middle)]) {
    const world = await World.open();
    for (const one of half) await unlessItHangs(world.wrongWith(one));
    const still = await world.close();
    if (still.length > 0) return blamed(half, still);
  }
  return [{ case: cases[0]!, wrong: `some of ${cases.length} together: ${left.join("; ")}` }];
}

class World {
  private constructor(
    private readonly gateway: OpenGateway,
    private readonly host: FakeHost,
    private readonly words: readonly (readonly [word: string, stands: string])[],
  ) {}

  static async open(): Promise<World> {
    const text = chatText();
    const host = await startFakeHost((incoming) =>
      incoming.text().includes('"stream":true') ? sse(text.events) : json(text.whole),
    );
    const gateway = await open(simpleConfig([host.port]));
    const limitless = { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null };
    const [payer, other, poor] = [
      await gateway.key(1_000, limitless),
      await gateway.key(5),
      await gateway.key(0),
    ];
    const { session, account_id } = await signedIn(gateway);
    return new World(gateway, host, [
      ["<payer>", payer.key],
      ["<poor>", poor.key],
      ["<other>", other.key],
      ["<owner>", other.recovery_secret],
      ["<other_id>", other.id],
      ["<other_balance>", other.balance_id],
      ["<session>", session],
      ["<account>", account_id],
      ["<admin>", ADMIN],
    ]);
  }

  async wrongWith({ bytes: base64, cuts, leaves, isSocket = false }: RequestCase): Promise<string | null> {
    const bytes = this.worded(Buffer.from(base64, "base64"));
    const client = new RawClient(Number(new URL(this.gateway.url).port));
    if (isSocket) await this.upgraded(client);
    let from = 0;
    for (const to of [...cuts, bytes.length]) {
      if (!(await client.write(bytes.subarray(from, to)))) break;
      from = to;
    }
    if (leaves) {
      client.leave();
      return null;
    }
    const text = isSocket ? await answersOf(client) : await answerTo(bytes, client);
    client.leave();
    const failed = /HTTP\/1\.1 500|"code":"internal_error"/.exec(text);
    return failed === null ? null : `a 500: ${text.slice(0, 600)}`;
  }

  private async upgraded(client: RawClient): Promise<void> {
    const [, key] = this.words.find(([word]) => word === "<payer>")!;
    await client.write(handshake(key));
    await client.until((text) => text.includes("\r\n\r\n"));
  }

  /** What is wrong after all of it. */
  async close(): Promise<string[]> {
    const { gateway, host } = this;
    const wrong = gateway.logged.filter((line) => line.includes('"fault"'));
    const isQuiet = async () => (await gateway.admin("/admin/ledger/audit")).json.held_nano === "0";
    const quiet = until(isQuiet).then(
      () => true,
      () => false,
    );
    if (!(await quiet)) wrong.push("money is held for ever");
    // Connections end a little after their clients have left.
    await until(async () => (await gateway.admin("/metrics")).text.includes("gateway_websockets 0")).catch(
      () => {},
    );
    const audit = (await gateway.admin("/admin/ledger/audit")).json;
    if (audit.ok !== true) wrong.push(`the books have drifted: ${JSON.stringify(audit)}`);
    const metrics = (await gateway.admin("/metrics")).text;
    for (const [, name, value] of metrics.matchAll(HELD))
      if (Number(value) !== 0) wrong.push(`${name} is ${value}`);
    await gateway.close();
    await host.close();
    return wrong;
  }

  /** Cuts stay where they were drawn: they are anywhere. */
  private worded(bytes: Buffer): Buffer {
    let text = bytes.toString("latin1");
    for (const [word, stands] of this.words) text = text.replaceAll(word, stands);
    return Buffer.from(text, "latin1");
  }
}

/** An account of its own, by the mail in the outbox. */
async function signedIn(gateway: OpenGateway): Promise<{ session: string; account_id: string }> {
  await gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } });
  const outbox = join(gateway.gateway.folder.path, "outbox");
  const mail = readFileSync(join(outbox, readdirSync(outbox)[0]!), "utf8");
  const token = /#signin=(\S+)/.exec(mail)![1]!;
  return (await gateway.send("POST", "/v1/auth/email/verify", { json: { token } })).json;
}

/** All of the answer to what is whole; otherwise what comes until the server would wait for the rest. */
async function answerTo(bytes: Buffer, client: RawClient): Promise<string> {
  const hasAll = (text: string) => client.closed || isAnswered(text, bytes);
  const answered = client.until(hasAll).catch(() => client.text);
  if (isWhole(bytes)) return answered;
  return Promise.race([answered, Bun.sleep(REST_MS).then(() => client.text)]);
}

/** Until the connection ends, or nothing more seems to come: turns take no time here. */
async function answersOf(client: RawClient): Promise<string> {
  for (let length = -1; !client.closed && client.text.length !== length; ) {
    length = client.text.length;
    await Promise.race([client.end(), Bun.sleep(SOCKET_REST_MS)]);
  }
  return client.text;
}

const SOCKET_REST_MS = 100;

/** Nothing is judged by it. */
const REST_MS = 100;

function isAnswered(text: string, request: Buffer): boolean {
  const final = text.replace(/^(HTTP\/1\.1 1\d\d [^\r]*\r\n(?:[^\r]+\r\n)*\r\n)+/, "");
  const head = /^HTTP\/1\.1 (\d+)[\s\S]*?\r\n\r\n/.exec(final);
  if (head === null) return false;
  return (
    head[1] === "204" || head[1] === "304" || request.subarray(0, 5).toString() === "HEAD " || whole(final)
  );
}

/** Whether the bytes are one request at least, as every server would read it. */
function isWhole(bytes: Buffer): boolean {
  const text = bytes.toString("latin1");
  const head =
    /^(GET|POST|PATCH|DELETE|OPTIONS|HEAD) \/[!-~]* HTTP\/1\.1\r\n((?:[A-Za-z-]+: [ -~]*\r\n)*)\r\n/.exec(
      text,
    );
  if (head === null) return false;
  const fields = head[2]!.toLowerCase();
  if (/^(upgrade|expect|connection|trailer):/m.test(fields)) return false;
  const lengths = [...fields.matchAll(/^content-length: (.*)\r$/gm)].map(([, length]) => length!);
  const codings = [...fields.matchAll(/^transfer-encoding: (.*)\r$/gm)].map(([, coding]) => coding!);
  const rest = text.slice(head[0].length);
  if (codings.length === 0 && lengths.length === 0) return true;
  if (lengths.length === 1 && codings.length === 0)
    return /^\d{1,9}$/.test(lengths[0]!) && rest.length >= Number(lengths[0]);
  return lengths.length === 0 && codings.join() === "chunked" && hasAllChunks(rest);
}

function hasAllChunks(text: string): boolean {
  for (let at = 0; ; ) {
    const size = /^([0-9a-f]{1,6})\r\n/.exec(text.slice(at, at + 10));
    if (size === null) return false;
    const length = Number.parseInt(size[1]!, 16);
    at += size[0].length;
    if (text.slice(at + length, at + length + 2) !== "\r\n") return false;
    if (length === 0) return true;
    at += length + 2;
  }
}

/** Gauges of what requests hold while they run. */
const HELD =
  /^(gateway_open_holds|gateway_body_bytes|gateway_bodies_waiting|gateway_host_in_flight|gateway_host_waiting|gateway_websockets|gateway_websocket_bytes)(?:\{[^}]*\})? (\d+)$/gm;
