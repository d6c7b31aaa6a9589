import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { FakeStripe, signedEvent } from "../fakes/stripe.ts";
import { until } from "../fakes/until.ts";
import { SocketClient } from "../fakes/web-socket.ts";
import { RawClient } from "../http/raw-client.ts";
import type { Reply } from "../process/gateway.ts";
import { type Made, open } from "./open.ts";

/**
 * Each thing that requests without credit can use is used up, over real sockets, while somebody who pays is served
 * without an error: docs/resource-limits.md.
 */
const CONFIG = "trusted_proxies: [127.0.0.0/8]\nlog: off\nsign_in: { mails_per_hour: 300 }\n";
const chain = hangingNode();
const stripe = new FakeStripe();
const gateway = await open(`${CONFIG}wallet: { rpc: { 8453: "${chain.url}" } }
receipts: { sign: true }
payments: { stripe: { secret_key: sk_test_1, webhook_secret: whsec_test, api_base: "${stripe.url}" } }
`);
const owner = await gateway.key(1_000);
await gateway.send("PATCH", `/v1/keys/${owner.id}`, {
  bearer: owner.recovery_secret,
  json: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null },
});
afterAll(async () => {
  chain.release();
  await gateway.close();
  await chain.stop();
  await stripe.close();
});

/** Who pays: a request, a large one, a count and a revoked key, again and again until the test is over. */
let paying: { stop(): Promise<number> };
beforeEach(() => {
  let over = false;
  let rounds = 0;
  const served = (async () => {
    for (; !over || rounds < 2; rounds++) await payOnce();
    return rounds;
  })();
  served.catch(() => {});
  paying = {
    stop: () => {
      over = true;
      return served;
    },
  };
});
afterEach(async () => expect(await paying.stop()).toBeGreaterThanOrEqual(2));

async function payOnce(): Promise<void> {
  const { key, recovery_secret } = owner;
  const statuses = [
    await gateway.chat(key, { model: "sim/echo" }),
    await gateway.chat(key, { model: "sim/echo", messages: [{ role: "user", content: PROSE }] }),
    await count(key, PROSE),
  ].map(({ status }) => status);
  const made = (await gateway.send("POST", "/v1/keys", { bearer: recovery_secret, json: {} })).json;
  statuses.push((await gateway.send("DELETE", `/v1/keys/${made.id}`, { bearer: recovery_secret })).status);
  statuses.push((await gateway.send("GET", "/v1/me", { bearer: made.key })).status);
  expect(statuses).toEqual([200, 200, 200, 200, 401]);
}

/** A chain's node that leaves everybody waiting. */
function hangingNode() {
  const released = Promise.withResolvers<void>();
  let [now, most] = [0, 0];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch() {
      most = Math.max(most, ++now);
      await Promise.race([released.promise, Bun.sleep(HANGS_MS)]);
      now -= 1;
      return new Response("busy", { status: 503 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    get most() {
      return most;
    },
    release: () => released.resolve(),
    stop: () => server.stop(true),
  };
}

/** Long enough for all to be asked meanwhile. */
const HANGS_MS = 500;
const MEGABYTES = "lorem ipsum ".repeat(780_000);
const PROSE = "The quick brown fox jumps over the lazy dog. ".repeat(2_000);
const count = (bearer: string, content: string, address?: string): Promise<Reply> =>
  gateway.send("POST", "/v1/messages/count_tokens", {
    bearer,
    json: { model: "sim/echo", messages: [{ role: "user", content }] },
    ...from(address),
  });
const from = (address?: string) => (address === undefined ? {} : { headers: { "x-forwarded-for": address } });

/** Balances without credit, from as many networks. */
let networks = 0;
async function freeKey(at = gateway): Promise<Made> {
  const network = networks++;
  const made = await at.send("POST", "/v1/keys", {
    headers: { "x-forwarded-for": `198.18.${network}.1` },
  });
  expect(made.status).toBe(201);
  return made.json;
}

const refusal = ({ status, json }: Reply) => [status, json.error?.code];
const RATE_LIMITED = [429, "rate_limited"];

/** Asks until it is refused, at most so often. */
async function untilRefused(
  most: number,
  send: (n: number) => Promise<Reply>,
): Promise<{ allowed: number; refused: Reply }> {
  for (let n = 0; n <= most; n += 20) {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => send(n + at)));
    const refused = answers.find(({ status }) => status === 429);
    if (refused !== undefined) {
      const allowed = n + answers.filter(({ status }) => status !== 429).length;
      return { allowed, refused };
    }
  }
  throw new Error(`nothing was refused ${most} times`);
}

test("the bytes of large bodies: a balance has one of the largest read a minute", async () => {
  const { id, key, recovery_secret } = await freeKey();
  const raised = { bearer: recovery_secret, json: { tpm_limit: null } };
  expect((await gateway.send("PATCH", `/v1/keys/${id}`, raised)).status).toBe(200);
  const json = { model: "sim/echo", max_tokens: 10, messages: [{ role: "user", content: MEGABYTES }] };
  const send = () =>
    gateway.send("POST", "/v1/chat/completions", { bearer: key, json, ...from("198.51.200.1") });
  const first = await send();
  expect([first.status, first.json.error.code]).toEqual([402, "insufficient_credit"]);
  const second = await send();
  expect(refusal(second)).toEqual(RATE_LIMITED);
  expect(second.json.error.message).toContain("large bodies");
});

test("requests to any endpoint, and changes: what ends a key is never too much", async () => {
  const { id, key, recovery_secret } = await freeKey();
  const me = () => gateway.send("GET", "/v1/me", { bearer: key });
  const { allowed, refused } = await untilRefused(1_000, me);
  expect(allowed).toBeWithin(580, 640);
  expect(refusal(refused)).toEqual(RATE_LIMITED);
  const disguised = await gateway.send("GET", "/v1/me?/revoke", { bearer: key });
  expect(refusal(disguised)).toEqual(RATE_LIMITED);
  const change = { bearer: recovery_secret, json: { name: "mine" } };
  expect(refusal(await gateway.send("PATCH", `/v1/keys/${id}`, change))).toEqual(RATE_LIMITED);
  expect((await gateway.send("DELETE", `/v1/keys/${id}`, { bearer: recovery_secret })).status).toBe(200);
});

test("requests to any endpoint: signing out is never too much", async () => {
  const send = (path: string, json: object) => gateway.send("POST", path, { json, ...from("198.51.203.1") });
  const wallet = privateKeyToAccount(generatePrivateKey());
  const { message } = (await send("/v1/auth/wallet", { address: wallet.address, chain_id: 1 })).json;
  const signature = await wallet.signMessage({ message });
  const { session: bearer } = (await send("/v1/auth/wallet/verify", { message, signature })).json;
  const keys = () => gateway.send("GET", "/v1/keys", { bearer });
  await untilRefused(1_000, keys);
  expect((await gateway.send("POST", "/v1/auth/logout", { bearer })).status).toBe(204);
});

test("changes of keys count for five, because each is synced to the disk", async () => {
  const { id, recovery_secret: bearer } = await freeKey();
  const change = (n: number) =>
    gateway.send("PATCH", `/v1/keys/${id}`, { bearer, json: { name: `n${n}` }, ...from("198.51.202.1") });
  const { allowed, refused } = await untilRefused(200, change);
  expect(allowed).toBeWithin(115, 135);
  expect(refusal(refused)).toEqual(RATE_LIMITED);
});

test("what ends a key is never too much, once: ending it again is a change like others", async () => {
  const { id, recovery_secret: bearer } = await freeKey();
  const end = (n: number) => {
    const [method, path] = n % 2 === 0 ? ["DELETE", `/v1/keys/${id}`] : ["POST", `/v1/keys/${id}/revoke`];
    return gateway.send(method!, path!, { bearer, ...from("198.51.204.1") });
  };
  expect((await end(0)).status).toBe(200);
  const { allowed, refused } = await untilRefused(200, end);
  expect(allowed).toBeWithin(115, 135);
  expect(refusal(refused)).toEqual(RATE_LIMITED);
});

test("requests with a body of nothing but values count by its size", async () => {
  const { key } = await freeKey();
  const zeros = Array(30_000).fill(0);
  const send = () => gateway.chat(key, { model: "sim/echo", zeros });
  const { allowed, refused } = await untilRefused(400, send);
  expect(allowed).toBeWithin(70, 105);
  expect(refusal(refused)).toEqual(RATE_LIMITED);
});

test("requests of one balance, whatever limits its owner gives its keys", async () => {
  const { id, key, recovery_secret } = await freeKey();
  const raised = { bearer: recovery_secret, json: { rpm_limit: 1_000_000 } };
  expect((await gateway.send("PATCH", `/v1/keys/${id}`, raised)).status).toBe(200);
  const send = () => gateway.chat(key, { model: "sim/echo" });
  const { allowed, refused } = await untilRefused(1_000, send);
  expect(allowed).toBeWithin(580, 640);
  expect(refusal(refused)).toEqual(RATE_LIMITED);
  expect(refused.json.error.message).toContain("without credit");
});

test("the counting thread: letters without a space are counted for so long, and then estimated", async () => {
  const { key } = await freeKey();
  const letters = Array.from({ length: 900_000 }, (_, n) =>
    String.fromCharCode(97 + ((n * n * 7 + n) % 26)),
  ).join("");
  const counts: number[] = [];
  const estimate = letters.length / 4;
  while (Math.abs((counts.at(-1) ?? 0) - estimate) > 100) {
    expect(counts.length).toBeLessThan(13);
    const counted = await count(key, letters, "198.51.100.1");
    if (counted.status !== 200) expect(refusal(counted)).toEqual(RATE_LIMITED);
    if (counted.status !== 200) break;
    counts.push(counted.json.input_tokens);
  }
  expect(counts[0]).not.toBe(counts.at(-1));
});

test("the room for large bodies: ten megabytes that hardly come, from sixty networks", async () => {
  const keys = await Promise.all(Array.from({ length: 20 }, freeKey));
  const port = Number(new URL(gateway.url).port);
  const clients = await Promise.all(
    keys.flatMap(({ key }, n) =>
      Array.from({ length: 3 }, async () => {
        const client = new RawClient(port);
        const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\n`;
        await client.write(`${head}x-forwarded-for: 203.0.${n}.1\r\ncontent-length: 10400000\r\n\r\nxxx`);
        return client;
      }),
    ),
  );
  await until(() => clients.filter(({ text }) => text.includes("HTTP/1.1 429")).length >= 50);
  await payOnce();
  for (const client of clients) client.leave();
});

test("the line before a host: others than the sender that fills it are served", async () => {
  let isHanging = false;
  const host = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: () =>
      isHanging
        ? new Promise<Response>(() => {})
        : Response.json({
            id: "c",
            object: "chat.completion",
            created: 1,
            model: "m",
            choices: [
              {
                index: 0,
                finish_reason: "stop",
                message: { role: "assistant", content: "ping", refusal: null },
              },
            ],
            usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          }),
  });
  const crowded = await open(`
hosts:
  - { id: slow, base_url: "http://127.0.0.1:${host.port}/v1", speaks: [chat.completions], max_concurrent: 1 }
  - { id: sim, base_url: simulated, speaks: [chat.completions, responses, messages] }
models:
  - id: test/free
    context_length: 10000
    max_output_tokens: 100
    routes: [{ host: slow, model: m, free: true }]
  - id: sim/echo
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 1 }
    routes: [{ host: sim, model: echo }]
trusted_proxies: [127.0.0.0/8]
open_tier: { accountless_requests_per_day: 200, rpm: null }
log: off
`);
  try {
    const pays = await crowded.key(10);
    isHanging = true;
    const keys = await Promise.all(
      Array.from({ length: 24 }, async (_, n) => {
        const address = `198.18.${n}.1`;
        const { json } = await crowded.send("POST", "/v1/keys", from(address));
        return { key: json.key as string, address };
      }),
    );
    const body = JSON.stringify({ model: "test/free:free", messages: [{ role: "user", content: "hi" }] });
    // Raw sockets: this process's `fetch` would queue most of them.
    const clients = keys.flatMap(({ key, address }) =>
      Array.from({ length: 48 }, () => {
        const client = new RawClient(Number(new URL(crowded.url).port));
        const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\n`;
        const fields = `x-forwarded-for: ${address}\r\ncontent-length: ${body.length}`;
        void client.write(`${head}${fields}\r\n\r\n${body}`);
        return client;
      }),
    );
    const answers = () => clients.flatMap(({ text }) => (text === "" ? [] : [text.slice(9, 12)]));
    await until(() => answers().length >= 100);
    expect(new Set(answers())).toEqual(new Set(["503"]));
    expect((await crowded.chat(pays.key, { model: "sim/echo" })).status).toBe(200);
    for (const client of clients) client.leave();
  } finally {
    await host.stop(true);
    await crowded.close();
  }
});

test("the journal: what is refused writes nothing to it", async () => {
  const { key, balance_id } = await freeKey();
  await Promise.all(Array.from({ length: 50 }, () => gateway.chat(key, { model: "sim/echo" })));
  const json = { model: "gateway/auto:free", max_tokens: 10, messages: [{ role: "user", content: "hi" }] };
  const free = await gateway.send("POST", "/v1/chat/completions", {
    bearer: key,
    json,
    ...from("198.51.201.1"),
  });
  expect(free.status).toBe(200);
  const folder = join(gateway.folder.path, "data");
  const journal = readdirSync(folder)
    .filter((name) => name.startsWith("journal-"))
    .map((name) => readFileSync(join(folder, name), "latin1"))
    .join("");
  const lines = journal.split("\n").filter((line) => line.includes(balance_id));
  // The hold and the end of the one that was served.
  expect(lines.length).toBeWithin(1, 4);
});

test("receipts of refused requests: the latest are kept, and those of who pays apart", async () => {
  // From a network that has not used up its requests.
  const elsewhere = from("198.18.77.1");
  const receipt = async ({ headers }: Reply, bearer: string) => {
    const path = `/v1/receipts/${headers.get("x-gateway-receipt")}`;
    return (await gateway.send("GET", path, { bearer, ...elsewhere })).status;
  };
  const paid = await gateway.chat(owner.key, { model: "no/model" });
  const { key, recovery_secret } = await freeKey();
  const send = (bearer: string, address: string) =>
    gateway.send("POST", "/v1/chat/completions", {
      bearer,
      json: { model: "no/model", messages: [{ role: "user", content: "Hello" }] },
      ...from(address),
    });
  const first = await send(key, "198.18.77.1");
  expect(await receipt(first, recovery_secret)).toBe(200);
  const other = (await freeKey()).key;
  for (let n = 0; n < 5_100; n += 100)
    await Promise.all(Array.from({ length: 100 }, () => send(other, `198.19.${n / 100}.1`)));
  expect(await receipt(first, recovery_secret)).toBe(400);
  expect(await receipt(paid, owner.key)).toBe(200);
});

describe("set-ups", () => {
  const create = (address: string) => gateway.send("POST", "/v1/keys", from(address));
  test("from one address", async () => {
    const { allowed, refused } = await untilRefused(100, () => create("192.0.2.1"));
    expect([allowed, ...refusal(refused)]).toEqual([60, ...RATE_LIMITED]);
  });
  test("from ever other address of one /24", async () => {
    const { allowed, refused } = await untilRefused(1_100, (n) => create(`192.1.1.${n % 255}`));
    expect([allowed, ...refusal(refused)]).toEqual([960, ...RATE_LIMITED]);
  });
  test("from ever other /64 of one /48", async () => {
    const { allowed, refused } = await untilRefused(400, (n) => create(`2001:db8:7:${n.toString(16)}::1`));
    expect([allowed, ...refusal(refused)]).toEqual([240, ...RATE_LIMITED]);
  });
});

test("wrong recovery secrets, from the owner's own address", async () => {
  const wrong = `or-rec-${"z".repeat(44)}`;
  const { refused } = await untilRefused(100, () => gateway.send("GET", "/v1/keys", { bearer: wrong }));
  expect(refusal(refused)).toEqual(RATE_LIMITED);
  expect((await gateway.send("GET", "/v1/keys", { bearer: owner.recovery_secret })).status).toBe(200);
});

test("wrong admin tokens", async () => {
  const wrong = (n: number) =>
    gateway.send("GET", "/admin/balances", { bearer: `wrong-token-${n}-of-many`, ...from("192.0.2.77") });
  // Together, because answers wait.
  const replies = await Promise.all(Array.from({ length: 61 }, (_, n) => wrong(n)));
  const refused = replies.filter(({ status }) => status === 429);
  expect([refused.length, ...refusal(refused[0]!)]).toEqual([1, ...RATE_LIMITED]);
  expect((await gateway.admin("/admin/balances")).status).toBe(200);
});

test("keys of balances without credit", async () => {
  const balances = await Promise.all([freeKey(), freeKey()]);
  const make = (n: number) =>
    gateway.send("POST", "/v1/keys", {
      bearer: balances[n % 2]!.recovery_secret,
      json: {},
      ...from("192.0.2.9"),
    });
  const { allowed, refused } = await untilRefused(200, make);
  expect([allowed, ...refusal(refused)]).toEqual([120, ...RATE_LIMITED]);
});

test("mails, and messages for wallets to sign", async () => {
  const mail = (n: number) =>
    gateway.send("POST", "/v1/auth/email", { json: { email: `a${n}@example.com` }, ...from("192.0.2.20") });
  expect(refusal((await untilRefused(200, mail)).refused)).toEqual(RATE_LIMITED);
  const address = `0x${"1".repeat(40)}`;
  const message = () =>
    gateway.send("POST", "/v1/auth/wallet", { json: { address, chain_id: 1 }, ...from("192.0.2.20") });
  expect(refusal((await untilRefused(300, message)).refused)).toEqual(RATE_LIMITED);
});

test("mails for all together: who has signed in before still gets one", async () => {
  const outbox = join(gateway.folder.path, "data/outbox");
  const mailsTo = (email: string) =>
    readdirSync(outbox).filter((name) => readFileSync(join(outbox, name), "utf8").includes(`To: ${email}\n`));
  const send = (email: string, address: string) =>
    gateway.send("POST", "/v1/auth/email", { json: { email }, ...from(address) });
  await send("owner@example.com", "192.0.2.30");
  const mail = readFileSync(join(outbox, mailsTo("owner@example.com")[0]!), "utf8");
  const token = /#signin=(\S+)/.exec(mail)![1];
  expect((await gateway.send("POST", "/v1/auth/email/verify", { json: { token } })).status).toBe(200);
  for (let network = 0; network < 6; network++) {
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) => send(`b${n}@${network}.example.com`, `192.0.${network + 10}.1`)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  }
  expect(gateway.logged.filter((line) => line.includes("mails_per_hour"))).toHaveLength(1);
  expect((await send("stranger@example.com", "192.0.99.1")).status).toBe(202);
  expect((await send("owner@example.com", "192.0.99.1")).status).toBe(202);
  // Only the latest fifty are kept.
  await until(() => mailsTo("owner@example.com").length === 1);
  expect(mailsTo("stranger@example.com")).toEqual([]);
});

test("claims for all together: who has credit still makes one", async () => {
  const claim = ({ key }: Made, n: number) => {
    const json = { email: `c${n}@example.com` };
    return gateway.send("POST", "/v1/me/claim", { bearer: key, json, ...from(`192.3.${n % 10}.1`) });
  };
  const stranger = async (n: number): Promise<Reply> =>
    claim((await gateway.send("POST", "/v1/keys", from(`192.4.${n % 10}.1`))).json, n);
  const { refused } = await untilRefused(300, stranger);
  expect(refusal(refused)).toEqual(RATE_LIMITED);
  expect(refused.json.error.message).toContain("More claims of balances without credit");
  expect((await claim(await gateway.key(1), 400)).status).toBe(200);
});

test("nodes that are asked about wallets: so many questions at once", async () => {
  const address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
  const signIn = async (n: number) => {
    const network = from(`192.2.${n}.1`);
    const send = (path: string, json: object) => gateway.send("POST", path, { json, ...network });
    const { message } = (await send("/v1/auth/wallet", { address, chain_id: 8453 })).json;
    return send("/v1/auth/wallet/verify", { message, signature: `0x${"cd".repeat(90)}` });
  };
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => signIn(n)));
  expect(chain.most).toBeWithin(1, 17);
  for (const { status, json } of answers) {
    expect(status).toBeOneOf([400, 503]);
    expect(json.error.message).toContain("did not answer");
  }
});

test("sums of usage: a balance has four computed at a time", async () => {
  const { key } = await freeKey();
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => gateway.send("GET", "/v1/usage?period=day", { bearer: key })),
  );
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  expect((await gateway.send("GET", "/v1/usage?period=day", { bearer: owner.key })).status).toBe(200);
});

test("pages and unknown keys are answered from memory", async () => {
  const paths = ["/docs/errors", "/status", "/openapi.json", "/v1/models", "/nowhere"];
  const answers = await Promise.all(
    Array.from({ length: 500 }, (_, n) =>
      fetch(gateway.url + paths[n % paths.length], {
        headers: { authorization: `Bearer or-live-${"z".repeat(32)}` },
      }),
    ),
  );
  expect(Math.max(...answers.map(({ status }) => status))).toBeLessThan(500);
});

test("the keys that receipts are signed with are listed from memory", async () => {
  const answers = await Promise.all(
    Array.from({ length: 500 }, () => gateway.send("GET", "/.well-known/jwks.json")),
  );
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  expect(answers[0]).toMatchObject({ status: 200, json: { keys: [{ kty: "OKP" }] } });
});

test("Stripe's events: of large ones that Stripe has not signed, a network has 60 looked at an hour", async () => {
  const deliver = (body: string, signature: string, address: string) =>
    gateway.send("POST", "/webhooks/stripe", {
      bytes: body,
      headers: { "stripe-signature": signature, "x-forwarded-for": address },
    });
  const { allowed, refused } = await untilRefused(100, () =>
    deliver("x".repeat(200_000), "t=1,v1=00", "192.0.2.40"),
  );
  expect([allowed, ...refusal(refused)]).toEqual([60, ...RATE_LIMITED]);
  const sent = (more: object) =>
    signedEvent("payout.paid", { id: "po_1", ...more }, { secret: "whsec_test", at: Date.now() });
  const [small, large] = [await sent({}), await sent({ more: "x".repeat(200_000) })];
  expect((await deliver(small.body, small.signature, "192.0.2.40")).status).toBe(200);
  expect((await deliver(large.body, large.signature, "192.0.2.41")).status).toBe(200);
});

test("card orders: a balance has four pages open, and Stripe is asked sixteen times at once", async () => {
  const payer = async (): Promise<Made> => {
    const made = await freeKey();
    const saved = { bearer: made.recovery_secret, json: { key: made.key } };
    expect((await gateway.send("POST", "/v1/me/saved", saved)).status).toBe(200);
    return made;
  };
  const order = ({ recovery_secret }: Made, headers: Record<string, string> = {}) =>
    gateway.send("POST", "/v1/credits", {
      bearer: recovery_secret,
      json: { rail: "card", amount_usd: 1 },
      headers,
    });
  const one = await payer();
  const first = { "idempotency-key": "first" };
  const orders = [await order(one, first)];
  while (orders.length < 5) orders.push(await order(one));
  expect(orders.map(({ status }) => status)).toEqual([201, 201, 201, 201, 429]);
  expect(orders[4]!.json.error.message).toContain("4 card payments");
  expect((await order(one, first)).json.id).toBe(orders[0]!.json.id);
  const payers = await Promise.all(Array.from({ length: 24 }, payer));
  const gate = Promise.withResolvers<void>();
  stripe.gate = gate.promise;
  const statuses: number[] = [];
  const sent = payers.map(async (who) => statuses.push((await order(who)).status));
  await until(() => statuses.length === 8);
  await payOnce();
  gate.resolve();
  await Promise.all(sent);
  expect(stripe.most).toBe(16);
  expect(statuses).toEqual([...Array(8).fill(429), ...Array(16).fill(201)]);
});

test("connections that say nothing, or only the beginning of a head", async () => {
  const port = Number(new URL(gateway.url).port);
  const clients = Array.from({ length: 400 }, () => new RawClient(port));
  await Promise.all(clients.slice(200).map((client) => client.write("GET / HTTP/1.1\r\nho")));
  await payOnce();
  for (const client of clients) client.leave();
});

test("WebSockets: a balance has two, a network four, and what is refused on them counts as requests", async () => {
  // A gateway of its own: large messages of the other tests use up what may be read unpaid.
  const fresh = await open(CONFIG);
  const { key } = await freeKey(fresh);
  const opened = (bearer: string) =>
    SocketClient.open(fresh.url, bearer, { "x-forwarded-for": "198.19.0.1" }).catch(() => null);
  const own = [await opened(key), await opened(key), await opened(key)];
  expect(own.map((socket) => socket !== null)).toEqual([true, true, false]);
  const others = await Promise.all(
    [freeKey(fresh), freeKey(fresh), freeKey(fresh)].map(async (made) => opened((await made).key)),
  );
  expect(others.filter((socket) => socket !== null)).toHaveLength(2);
  const [small, large] = [own[0]!, own[1]!];
  const turns: string[] = [];
  for (let n = 0; n < 700 && turns.at(-1) !== "rate_limited"; n++) {
    small.send("{}");
    turns.push((await small.event()).error.code);
  }
  expect(turns.at(-1)).toBe("rate_limited");
  expect(turns.length).toBeGreaterThan(500);
  expect((await small.closed).code).toBe(1008);
  // Results of calls that nobody made, too, for which the conversation is looked through.
  const { key: caller } = await freeKey(fresh);
  const calling = await SocketClient.open(fresh.url, caller, { "x-forwarded-for": "198.19.100.1" });
  const { response } = await calling.end({ model: "sim/echo", generate: false, input: "Hi" });
  const input = [{ type: "function_call_output", call_id: "nobodys", output: "4" }];
  const orphan = { model: "sim/echo", stream_id: "b", previous_response_id: response.id, input };
  const orphans: string[] = [];
  for (let n = 0; n < 700 && orphans.at(-1) !== "rate_limited"; n++)
    orphans.push((await calling.end(orphan)).error.code);
  expect([orphans[0], orphans.at(-1)]).toEqual(["invalid_request", "rate_limited"]);
  expect((await calling.closed).code).toBe(1008);
  // So many of the largest messages a minute, of which nothing is read beyond that.
  const { key: again } = await freeKey(fresh);
  const sender = (await SocketClient.open(fresh.url, again, { "x-forwarded-for": "198.19.250.1" }))!;
  const codes: string[] = [];
  const largest = MEGABYTES.slice(0, 500_000);
  for (let n = 0; n < 30 && codes.at(-1) !== "rate_limited"; n++) {
    sender.create({ model: "test/none", input: largest });
    codes.push((await sender.event()).error.code);
  }
  expect(codes).toEqual([...Array(25).fill("unknown_model"), "rate_limited"]);
  expect((await sender.closed).code).toBe(1008);
  // Nor are connections opened for further ones.
  await expect(SocketClient.open(fresh.url, again, { "x-forwarded-for": "198.19.250.1" })).rejects.toThrow();
  for (const socket of [large, ...others]) socket?.close();
  await fresh.close();
});

test("free requests", async () => {
  const { key } = await freeKey();
  const json = { model: "gateway/auto:free", messages: [{ role: "user", content: "Hello" }] };
  const send = () =>
    gateway.send("POST", "/v1/chat/completions", { bearer: key, json, ...from("198.18.78.1") });
  const { allowed, refused } = await untilRefused(100, send);
  expect(allowed).toBeWithin(20, 21);
  expect(refused.status).toBe(429);
});

test("the room for large bodies of other endpoints", async () => {
  const port = Number(new URL(gateway.url).port);
  const clients = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const client = new RawClient(port);
      await client.write("POST /v1/auth/email HTTP/1.1\r\nhost: gateway\r\ncontent-length: 5000000\r\n\r\n{");
      return client;
    }),
  );
  await until(() => clients.filter(({ text }) => text.includes("HTTP/1.1 429")).length >= 9);
  await payOnce();
  for (const client of clients) client.leave();
});
