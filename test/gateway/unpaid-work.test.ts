import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { RawClient } from "../http/raw-client.ts";
import type { Reply } from "../process/gateway.ts";
import { type Made, type OpenGateway, open } from "./open.ts";

/**
 * Each thing that requests without credit can use is used up, over real sockets, while somebody who pays is served
 * without an error: docs/unpaid-work.md.
 */
let gateway: OpenGateway;
let owner: Made;
beforeAll(async () => {
  gateway = await open("trusted_proxies: [127.0.0.0/8]\nlog: off\n");
  owner = await gateway.key(1_000);
  await gateway.send("PATCH", `/v1/keys/${owner.id}`, {
    bearer: owner.recovery_secret,
    json: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null },
  });
});
afterAll(() => gateway.close());

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
async function freeKey(): Promise<Made> {
  const network = networks++;
  const made = await gateway.send("POST", "/v1/keys", {
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
  ask: (n: number) => Promise<Reply>,
): Promise<{ allowed: number; refused: Reply }> {
  for (let n = 0; n <= most; n += 20) {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(n + at)));
    const refused = answers.find(({ status }) => status === 429);
    if (refused !== undefined) {
      const allowed = n + answers.filter(({ status }) => status !== 429).length;
      return { allowed, refused };
    }
  }
  throw new Error(`nothing was refused ${most} times`);
}

test("requests of one balance, whatever limits its owner gives its keys", async () => {
  const { id, key, recovery_secret } = await freeKey();
  const raised = { bearer: recovery_secret, json: { rpm_limit: 1_000_000 } };
  expect((await gateway.send("PATCH", `/v1/keys/${id}`, raised)).status).toBe(200);
  const ask = () => gateway.chat(key, { model: "sim/echo" });
  const { allowed, refused } = await untilRefused(1_000, ask);
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
  while (clients.filter(({ text }) => text.includes("HTTP/1.1 429")).length < 50) await Bun.sleep(5);
  await payOnce();
  for (const client of clients) client.leave();
});

describe("set-ups", () => {
  const create = (address: string) => gateway.send("POST", "/v1/keys", from(address));
  test("from one address", async () => {
    const { allowed, refused } = await untilRefused(100, () => create("192.0.2.1"));
    expect([allowed, ...refusal(refused)]).toEqual([60, ...RATE_LIMITED]);
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

test("free requests", async () => {
  const { key } = await freeKey();
  const ask = () => gateway.chat(key, { model: "gateway/auto:free" });
  const { allowed, refused } = await untilRefused(100, ask);
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
  while (clients.filter(({ text }) => text.includes("HTTP/1.1 429")).length < 9) await Bun.sleep(5);
  await payOnce();
  for (const client of clients) client.leave();
});
