import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { WrongTokens } from "../../src/http/admin/wrong-tokens.ts";
import { againstForging } from "../../src/http/authentication.ts";
import type { HttpExchange } from "../../src/http/exchange.ts";
import { UntrustedProxies } from "../../src/http/untrusted-proxies.ts";
import { AddressThrottle, throttlesOf } from "../../src/ledger/limits/address.ts";
import { refuse, refused } from "../../src/units/errors/refusal.ts";
import { ManualClock } from "../fakes/clock.ts";
import { ADMIN_TOKEN, networks, TestGateway } from "./test-gateway.ts";

let gateway: TestGateway;
beforeEach(() => {
  gateway = new TestGateway();
});
afterEach(() => gateway.stop());

/** As the trusted proxy saw it. */
const from = (address: string) => ({ "x-forwarded-for": address });
const wrong = (turn: number) => `or-rec-${String(turn).replaceAll("0", "z").padStart(44, "1")}`;

describe("wrong recovery secrets", () => {
  test("of one network are answered 429 after the 60th of an hour, and the right one is taken all the while", async () => {
    const { recovery_secret: right } = await gateway.setUp();
    const headers = from("192.0.2.1");
    const me = async (bearer: string) => (await gateway.send("GET", "/v1/me", { bearer, headers })).status;
    for (let turn = 0; turn < 60; turn++) expect(await me(wrong(turn))).toBe(401);
    const refusal = await gateway.send("GET", "/v1/me", { bearer: wrong(60), headers });
    expect([refusal.status, refusal.json.error.code]).toEqual([429, "rate_limited"]);
    expect(refusal.headers.has("retry-after")).toBe(true);
    expect(await me(right)).toBe(200);
    const keys = await gateway.send("GET", "/v1/keys", { bearer: right, headers });
    const revoked = await gateway.send("DELETE", `/v1/keys/${keys.json.data[0].id}`, {
      bearer: right,
      headers,
    });
    expect([revoked.status, revoked.json.state]).toEqual([200, "revoked"]);
    expect(
      (await gateway.send("GET", "/v1/me", { bearer: wrong(61), headers: from("192.0.2.2") })).status,
    ).toBe(401);
  });

  test("of all the /64 of one /48 count together, too", async () => {
    const codes: number[] = [];
    for (let turn = 0; turn < 300; turn++) {
      const headers = from(`2001:db8:1:${(turn % 50).toString(16)}::1`);
      codes.push((await gateway.send("GET", "/v1/me", { bearer: wrong(turn), headers })).status);
    }
    expect(codes.filter((code) => code === 401)).toHaveLength(240);
    const elsewhere = from("2001:db8:2::1");
    expect((await gateway.send("GET", "/v1/me", { bearer: wrong(0), headers: elsewhere })).status).toBe(401);
  });
});

describe("what costs nothing to ask for", () => {
  test("keys are made for one /64 as for an address, and for a /48 as for four of its /64", async () => {
    gateway.settings.accountlessKeysPerAddressPerHour = 5;
    const setUp = async (address: string) =>
      (await gateway.send("POST", "/v1/keys", { headers: from(address) })).status;
    const made = async (addresses: string[]) => {
      const codes = await Promise.all(addresses.map(setUp));
      return codes.filter((code) => code === 201).length;
    };
    const ofOne = Array.from({ length: 10 }, (_, turn) => `2001:db8:1:1::${turn}`);
    expect(await made(ofOne)).toBe(5);
    const ofMany = Array.from({ length: 100 }, (_, turn) => `2001:db8:1:${(turn % 20) + 2}::1`);
    expect(await made(ofMany)).toBe(15);
    expect(await made(["2001:db8:2::1", "192.0.2.1"])).toBe(2);
    expect(await made(Array.from({ length: 8 }, () => "::ffff:192.0.2.9"))).toBe(5);
    expect(await made(["192.0.2.9", "::ffff:c000:209", "0:0:0:0:0:ffff:c000:0209"])).toBe(0);
  });

  test("sign-in mails, too", async () => {
    const codes: number[] = [];
    for (let turn = 0; turn < 250; turn++) {
      const headers = from(`2001:db8:1:${(turn % 50).toString(16)}::1`);
      const body = { email: `somebody-${turn}@example.com` };
      codes.push((await gateway.send("POST", "/v1/auth/email", { body, headers })).status);
    }
    expect(codes.filter((code) => code === 202)).toHaveLength(240);
  });
});

describe("wrong admin tokens", () => {
  test("are reported, answered 429 after the 60th of an hour, and do not lock the operator out", async () => {
    const headers = from("192.0.2.1");
    const audit = async (bearer: string) =>
      (await gateway.send("GET", "/admin/ledger/audit", { bearer, headers })).status;
    for (let turn = 0; turn < 60; turn++) expect(await audit(`or-admin-wrong-${turn}`)).toBe(401);
    const refusal = await gateway.send("GET", "/admin/ledger/audit", { bearer: "or-admin-x", headers });
    expect([refusal.status, refusal.json.error.code]).toEqual([429, "rate_limited"]);
    // What the operator's page asks for with the token that was typed in.
    expect((await gateway.send("GET", "/admin/hosts", { bearer: "or-admin-y", headers })).status).toBe(429);
    expect((await gateway.send("GET", "/metrics", { bearer: "or-admin-y", headers })).status).toBe(429);
    expect(gateway.wrongAdminTokens).toEqual(Array(63).fill("192.0.2.1"));
    expect(await audit(ADMIN_TOKEN)).toBe(200);
  });

  test("are answered at once ten times, and then a second later, 16 at a time of a network; others' are not held back", async () => {
    const clock = new ManualClock();
    const tokens = new WrongTokens(clock, () => {});
    const notes = Array.from({ length: 30 }, () => tokens.note("192.0.2.1"));
    expect(notes.map((note) => note !== null)).toEqual([
      ...Array(10).fill(false),
      ...Array(16).fill(true),
      ...Array(4).fill(false),
    ]);
    expect(tokens.note("192.0.2.2")).toBeNull();
    let answered = 0;
    for (const note of notes) void note?.then(() => (answered += 1));
    clock.advance(999);
    await Promise.resolve();
    expect(answered).toBe(0);
    clock.advance(1);
    await Promise.all(notes);
    expect(answered).toBe(16);
    expect(tokens.note("192.0.2.1")).not.toBeNull();
    clock.advance(3_600_000);
    expect(tokens.note("192.0.2.1")).toBeNull();
  });

  test("are logged at once, and then once a minute with their number", () => {
    const clock = new ManualClock();
    const log: [string, number][] = [];
    const tokens = new WrongTokens(clock, (network, count) => log.push([network, count]));
    for (let turn = 0; turn < 1_500; turn++) tokens.note("192.0.2.1");
    expect(log).toEqual([["192.0.2.1", 1]]);
    clock.advance(60_000);
    expect(log.slice(1)).toEqual([["192.0.2.1", 1_499]]);
    clock.advance(120_000);
    tokens.note("192.0.2.2");
    expect(log.slice(2)).toEqual([["192.0.2.2", 1]]);
  });
});

describe("a proxy that is not trusted", () => {
  test("is noticed when it forwards an address, and a trusted one is not", async () => {
    await gateway.send("POST", "/v1/keys", { headers: from("192.0.2.1") });
    expect(gateway.untrustedProxies).toEqual([]);
    gateway.settings.trustedProxies = networks("10.0.0.0/8");
    await gateway.send("POST", "/v1/keys");
    expect(gateway.untrustedProxies).toEqual([]);
    await gateway.send("POST", "/v1/keys", { headers: from("192.0.2.1") });
    expect(gateway.untrustedProxies).toEqual(["127.0.0.1"]);
  });

  test("is reported once, as are the first eight", () => {
    const counted: string[] = [];
    const reported: string[] = [];
    const proxies = new UntrustedProxies(
      (address) => counted.push(address),
      (address) => reported.push(address),
    );
    for (let turn = 0; turn < 100; turn++) {
      const request = new Request("http://gateway.test/");
      // Its sender matters to a throttle, and to the log of changes.
      for (let time = 0; time < 2; time++) proxies.note(`192.0.2.${turn % 20}`, request);
    }
    expect(reported).toHaveLength(8);
    expect(counted).toHaveLength(40);
  });
});

const WRONG = refuse("invalid_request", "Wrong.");
function exchangeOf(): HttpExchange {
  const clock = new ManualClock();
  const deps = { throttles: throttlesOf(() => new AddressThrottle(clock)) };
  return { deps, blocks: () => ["192.0.2.1", "192.0.2.0/24"] } as unknown as HttpExchange;
}

describe("signatures, which may cost a question to a chain", () => {
  test("of many wrong ones at once, no more are checked than of as many one by one", async () => {
    const exchange = exchangeOf();
    let checked = 0;
    const outcomes = Array.from({ length: 200 }, () =>
      againstForging(exchange, async () => {
        checked += 1;
        await new Promise((resolve) => setImmediate(resolve));
        return WRONG;
      }),
    );
    const codes = (await Promise.all(outcomes)).map((outcome) =>
      refused(outcome) ? outcome.code : "opened",
    );
    expect(checked).toBe(60);
    expect(codes.filter((code) => code === "rate_limited")).toHaveLength(140);
  });

  test("those whose check fails count as wrong: a signer may choose what makes the chain fail", async () => {
    const exchange = exchangeOf();
    let checked = 0;
    const failing = () =>
      againstForging(exchange, () => {
        checked += 1;
        return Promise.reject(new Error("out of gas"));
      });
    for (let turn = 0; turn < 60; turn++) await expect(failing()).rejects.toThrow("out of gas");
    expect(await failing()).toMatchObject({ code: "rate_limited" });
    expect(checked).toBe(60);
  });

  test("right ones count for nothing", async () => {
    const exchange = exchangeOf();
    for (let turn = 0; turn < 200; turn++)
      expect(await againstForging(exchange, async () => "opened")).toBe("opened");
  });
});
