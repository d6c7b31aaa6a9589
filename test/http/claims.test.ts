import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { ManualClock } from "../fakes/clock.ts";
import { ADMIN_TOKEN, TestGateway } from "./test-gateway.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const VICTIM = "kim@example.com";

let gateway: TestGateway;
let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
  gateway = new TestGateway({ clock });
});
afterEach(() => gateway.stop());

type Sent = Awaited<ReturnType<TestGateway["send"]>>;
const summary = ({ status, json }: Sent) =>
  status < 400 ? String(status) : `${status} ${json.error.code} ${json.error.param}`;
const requestLink = (email = VICTIM) => gateway.send("POST", "/v1/auth/email", { body: { email } });
const verify = (token: string) => gateway.send("POST", "/v1/auth/email/verify", { body: { token } });
const tokens = (to: string, about: RegExp) =>
  gateway.mails
    .filter((mail) => mail.to === to && about.test(mail.subject))
    .map(({ text }) => /#signin=(\S+)/.exec(text)![1]!);
const me = async (bearer: string, headers: Record<string, string> = {}) =>
  (await gateway.send("GET", "/v1/me", { bearer, headers })).json;
const claim = (bearer: string, email = VICTIM, more: object = {}) =>
  gateway.send("POST", "/v1/me/claim", { bearer, body: { email, ...more } });
const undo = (bearer: string) => gateway.send("DELETE", "/v1/me/claim", { bearer });

async function signIn(email = VICTIM): Promise<string> {
  await requestLink(email);
  return (await verify(tokens(email, /sign-in/).at(-1)!)).json.session;
}

async function signedBy(wallet = privateKeyToAccount(generatePrivateKey())) {
  const body = { address: wallet.address, chain_id: 1 };
  const { message } = (await gateway.send("POST", "/v1/auth/wallet", { body })).json;
  return { message, signature: await wallet.signMessage({ message }) };
}

/** Claims with a throw-away wallet and signs in with it. */
async function takeOver(bearer: string): Promise<{ session: string; account_id: string; claimed: Sent }> {
  const wallet = privateKeyToAccount(generatePrivateKey());
  const body = { wallet: await signedBy(wallet) };
  const claimed = await gateway.send("POST", "/v1/me/claim", { bearer, body });
  const entered = await gateway.send("POST", "/v1/auth/wallet/verify", { body: await signedBy(wallet) });
  return { ...entered.json, claimed };
}

describe("a stranger's balance", () => {
  test("never becomes somebody's by an ordinary link, and its claim is mailed whatever else was", async () => {
    for (let turn = 0; turn < 5; turn++) await requestLink();
    const stranger = await gateway.setUp();
    expect(summary(await claim(stranger.key))).toBe("200");
    expect(tokens(VICTIM, /claimed/).length).toBe(1);
    const { session } = (await verify(tokens(VICTIM, /sign-in/)[0]!)).json;
    const { balance_id, account } = await me(session);
    expect(account.balances).toEqual([balance_id]);
    expect(balance_id).not.toBe(stranger.balance_id);
    expect(summary(await gateway.send("GET", `/v1/keys/${stranger.id}`, { bearer: session }))).toBe(
      "400 invalid_request id",
    );
  });

  test("is reviewed with what tells it from one's own, and confirmed inside; confirming twice is once", async () => {
    const { key, balance_id } = await gateway.setUp();
    const setUpAt = clock.now();
    await gateway.send("POST", "/admin/credits", {
      bearer: ADMIN_TOKEN,
      body: { balance_id, amount_usd: 5, idempotency_key: "a" },
    });
    clock.advance(MINUTE);
    await claim(key);
    const session = await signIn();
    const waiting = () => gateway.send("GET", "/v1/me/claims", { bearer: session });
    const iso = (ms: number) => new Date(ms).toISOString();
    expect((await waiting()).json.data).toEqual([
      {
        balance_id,
        claimed_at: iso(clock.now()),
        expires_at: iso(clock.now() + 7 * DAY),
        balance_usd: 5,
        balance_created_at: iso(setUpAt),
      },
    ]);
    const confirm = () => gateway.send("POST", `/v1/me/claims/${balance_id}`, { bearer: session });
    expect([summary(await confirm()), summary(await confirm())]).toEqual(["200", "200"]);
    expect((await waiting()).json.data).toEqual([]);
    expect((await me(session, { "x-gateway-balance": balance_id })).balance_usd).toBe(5);
    expect(summary(await gateway.send("GET", "/v1/me/claims", { bearer: key }))).toBe(
      "400 invalid_request null",
    );
  });

  test("a link says whom it signs in and what it takes over, as often as one asks, and is not used up", async () => {
    const { key, balance_id } = await gateway.setUp();
    await claim(key);
    await requestLink();
    const preview = async (token: string) =>
      gateway.send("POST", "/v1/auth/email/preview", { body: { token } });
    const [claims, ordinary] = [tokens(VICTIM, /claimed/)[0]!, tokens(VICTIM, /sign-in/)[0]!];
    const expires_at = new Date(clock.now() + 15 * MINUTE).toISOString();
    for (let turn = 0; turn < 2; turn++) {
      expect((await preview(claims)).json).toEqual({
        email: "k***@example.com",
        claimed_balance_id: balance_id,
        expires_at,
      });
      expect((await preview(ordinary)).json.claimed_balance_id).toBeNull();
    }
    expect(summary(await verify(claims))).toBe("200");
    expect(summary(await preview(claims))).toBe("400 invalid_request token");
    clock.advance(15 * MINUTE);
    expect(summary(await preview(ordinary))).toBe("400 invalid_request token");
  });
});

describe("who may claim", () => {
  test("not a key that the owner made, whatever it was rotated to, by neither way", async () => {
    const { recovery_secret, balance_id } = await gateway.setUp();
    const body = { daily_limit_usd: 0.01 };
    const made = (await gateway.send("POST", "/v1/keys", { bearer: recovery_secret, body })).json;
    const rotated = (await gateway.send("POST", `/v1/keys/${made.id}/rotate`, { bearer: made.key })).json;
    for (const { key } of [made, rotated]) {
      const { claimed, session } = await takeOver(key);
      expect(summary(claimed)).toBe("400 invalid_request null");
      expect(claimed.json.error.message).toContain("made by the owner");
      expect((await me(session)).account.balances).not.toContain(balance_id);
      expect(summary(await claim(key))).toBe("400 invalid_request null");
    }
    expect((await me(recovery_secret)).account).toBeNull();
  });

  test("the key made at set-up, and what it was rotated to with either credential", async () => {
    const first = await gateway.setUp();
    const second = (await gateway.send("POST", `/v1/keys/${first.id}/rotate`, { bearer: first.key })).json;
    const third = (
      await gateway.send("POST", `/v1/keys/${second.id}/rotate`, { bearer: first.recovery_secret })
    ).json;
    expect(summary(await claim(second.key))).toBe("401 invalid_api_key null");
    expect(summary(await claim(third.key))).toBe("200");
  });

  test("an account's own balance has nobody who could", async () => {
    const bearer = await signIn();
    const { key } = (await gateway.send("POST", "/v1/keys", { bearer })).json;
    expect(summary(await claim(key, "lee@example.com"))).toBe("400 invalid_request null");
  });
});

describe("taking a claim back", () => {
  test("the recovery secret withdraws one that waits, whose link then only signs in", async () => {
    const { key, balance_id, recovery_secret } = await gateway.setUp();
    await claim(key, "mistyped@example.com");
    expect((await undo(recovery_secret)).json).toMatchObject({ balance_id, withdrawn: true });
    expect((await me(key)).account).toBeNull();
    const { session } = (await verify(tokens("mistyped@example.com", /claimed/)[0]!)).json;
    expect((await me(session)).account.balances).not.toContain(balance_id);
    expect(summary(await claim(key, VICTIM, { recovery_secret }))).toBe("200");
  });

  test("the recovery secret undoes one that took effect for seven days, and the session has nothing of it", async () => {
    const { id, key, balance_id, recovery_secret } = await gateway.setUp();
    const thief = await takeOver(key);
    const named = { "x-gateway-balance": balance_id };
    const asThief = (method: string, path: string) =>
      gateway.send(method, path, { bearer: thief.session, headers: named });
    expect(summary(await asThief("GET", `/v1/keys/${id}`))).toBe("200");
    expect((await me(recovery_secret)).account.undo_until).toBe(
      new Date(clock.now() + 7 * DAY).toISOString(),
    );
    clock.advance(7 * DAY - 1);
    expect((await undo(recovery_secret)).json).toMatchObject({ balance_id, withdrawn: true });
    for (const [method, path] of [
      ["GET", "/v1/me"],
      ["POST", "/v1/keys"],
      ["GET", `/v1/keys/${id}`],
    ] as const) {
      expect(summary(await asThief(method, path))).toBe("400 invalid_request x-gateway-balance");
    }
    expect(summary(await gateway.send("GET", `/v1/keys/${id}`, { bearer: thief.session }))).toBe(
      "400 invalid_request id",
    );
    expect((await me(thief.session)).account.balances).not.toContain(balance_id);
    expect((await me(key)).account).toBeNull();
    expect(summary(await undo(recovery_secret))).toBe("400 invalid_request null");
    expect(summary(await claim(key, VICTIM, { recovery_secret }))).toBe("200");
  });

  test("ends the keys that the account's sessions made meanwhile, and no others", async () => {
    for (const how of ["undo", "detach"]) {
      const { id, key, balance_id, recovery_secret } = await gateway.setUp();
      const spare = (await gateway.send("POST", "/v1/keys", { bearer: recovery_secret })).json;
      const { session, account_id } = await takeOver(key);
      const headers = { "x-gateway-balance": balance_id };
      const asThief = async (path: string) =>
        (await gateway.send("POST", path, { bearer: session, headers })).json;
      const minted = await asThief("/v1/keys");
      const rotated = await asThief(`/v1/keys/${id}/rotate`);
      const itself = `/v1/keys/${minted.id}/rotate`;
      const next = (await gateway.send("POST", itself, { bearer: minted.key })).json;
      const owners = (await gateway.send("POST", "/v1/keys", { bearer: recovery_secret })).json;
      const made = [minted, rotated, next, owners];
      for (const { key } of made) expect((await me(key)).balance_id).toBe(balance_id);
      if (how === "undo") await undo(recovery_secret);
      else {
        const path = `/admin/accounts/${account_id}/detach`;
        await gateway.send("POST", path, { bearer: ADMIN_TOKEN, body: { balance_id } });
      }
      const status = async (bearer: string) => (await gateway.send("GET", "/v1/me", { bearer })).status;
      for (const { key } of [minted, rotated, next]) expect(await status(key)).toBe(401);
      for (const bearer of [key, spare.key, owners.key]) expect(await status(bearer)).toBe(200);
      const { data } = (await gateway.send("GET", "/v1/keys", { bearer: recovery_secret })).json;
      const live = data.filter((one: { state: string }) => one.state !== "revoked");
      expect(live.map((one: { id: string }) => one.id).sort()).toEqual([id, spare.id, owners.id].sort());
    }
  });

  test("after seven days only the operator does, who may do so at any time, and for one that waits too", async () => {
    const { key, balance_id, recovery_secret } = await gateway.setUp();
    const { session, account_id } = await takeOver(key);
    const detach = (account = account_id, balance = balance_id as string) =>
      gateway.send("POST", `/admin/accounts/${account}/detach`, {
        bearer: ADMIN_TOKEN,
        body: { balance_id: balance },
      });
    clock.advance(7 * DAY);
    expect(summary(await undo(recovery_secret))).toBe("400 invalid_request null");
    expect((await me(recovery_secret)).account.undo_until).toBeUndefined();
    expect((await detach()).json).toMatchObject({ account_id, balance_id, detached: true });
    expect((await me(session)).account.balances).not.toContain(balance_id);
    expect((await me(recovery_secret)).account).toBeNull();
    const waiting = (await claim(key, VICTIM, { recovery_secret })).json.account_id;
    expect(summary(await detach(account_id))).toBe("400 invalid_request balance_id");
    expect(summary(await detach(waiting))).toBe("200");
    expect((await me(key)).account).toBeNull();
    const own = (await me(session)).balance_id;
    expect(summary(await detach(account_id, own))).toBe("400 invalid_request balance_id");
    expect(summary(await detach(account_id, "bal_none"))).toBe("400 invalid_request balance_id");
  });

  test("is no way out of a suspension, except by the operator's word", async () => {
    const { key, balance_id, recovery_secret } = await gateway.setUp();
    const { account_id } = await takeOver(key);
    const admin = (what: string, body: object) =>
      gateway.send("POST", `/admin/accounts/${account_id}/${what}`, { bearer: ADMIN_TOKEN, body });
    await admin("suspend", { reason: "sanctions" });
    expect(summary(await undo(recovery_secret))).toBe("403 account_suspended null");
    expect(summary(await admin("detach", { balance_id }))).toBe("200");
    expect((await me(key)).suspended).toBeNull();
  });

  test("an account from before, with a claimed balance alone, gets one of its own", async () => {
    const { key, balance_id, recovery_secret } = await gateway.setUp();
    const { session } = await takeOver(key);
    gateway.db.run("DELETE FROM balances WHERE setup_key IS NULL");
    expect((await me(session)).balance_id).toBe(balance_id);
    expect(summary(await undo(recovery_secret))).toBe("200");
    const { account, balance_id: own } = await me(session);
    expect(account.balances).toEqual([own]);
    expect(own).not.toBe(balance_id);
  });

  test("takes the recovery secret, and nothing else", async () => {
    const { key } = await gateway.setUp();
    await claim(key);
    const session = await signIn("lee@example.com");
    for (const bearer of [key, session]) expect(summary(await undo(bearer))).toBe("400 invalid_request null");
    expect(summary(await undo(`or-rec-${"1".repeat(44)}`))).toBe("401 invalid_api_key null");
    expect(summary(await gateway.send("DELETE", "/v1/me/claim"))).toBe("401 missing_api_key null");
  });
});
