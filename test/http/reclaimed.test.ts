import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { ManualClock } from "../fakes/clock.ts";
import { ADMIN_TOKEN, TestGateway } from "./test-gateway.ts";

const DAY = 86_400_000;

let gateway: TestGateway;
let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
  gateway = new TestGateway({ clock });
});
afterEach(() => gateway.stop());

type SetUp = Awaited<ReturnType<TestGateway["setUp"]>>;
type Options = Parameters<TestGateway["send"]>[2];
const send = (method: string, path: string, options?: Options) => gateway.send(method, path, options);
const summary = ({ status, json }: Awaited<ReturnType<typeof send>>) =>
  status < 400 ? String(status) : `${status} ${json.error.code} ${json.error.param}`;
const status = async (bearer: string) => (await send("GET", "/v1/me", { bearer })).status;
const undo = (bearer: string, body?: object) =>
  send("DELETE", "/v1/me/claim", { bearer, ...(body === undefined ? {} : { body }) });
const detach = (account: string, balance_id: string, more: object = {}) =>
  send("POST", `/admin/accounts/${account}/detach`, {
    bearer: ADMIN_TOKEN,
    body: { balance_id, ...more },
  });

async function signed(wallet: ReturnType<typeof privateKeyToAccount>) {
  const body = { address: wallet.address, chain_id: 1 };
  const { message } = (await send("POST", "/v1/auth/wallet", { body })).json;
  return { message, signature: await wallet.signMessage({ message }) };
}

const claimByWallet = async (
  bearer: string,
  more: object = {},
  wallet = privateKeyToAccount(generatePrivateKey()),
) => send("POST", "/v1/me/claim", { bearer, body: { wallet: await signed(wallet), ...more } });

const claimByEmail = (bearer: string, more: object = {}) =>
  send("POST", "/v1/me/claim", { bearer, body: { email: "kim@example.com", ...more } });

/** Somebody with the set-up key claims by a wallet of theirs, signs in, and replaces the recovery secret. */
async function takeOver({ key, balance_id }: SetUp) {
  const wallet = privateKeyToAccount(generatePrivateKey());
  await claimByWallet(key, {}, wallet);
  const entered = await send("POST", "/v1/auth/wallet/verify", { body: await signed(wallet) });
  const { session, account_id } = entered.json;
  const headers = { "x-gateway-balance": balance_id };
  const replaced = await send("POST", "/v1/me/recovery", { bearer: session, headers });
  return { session, account_id, headers, recovery: replaced.json.recovery_secret as string };
}

const keyMade = async (bearer: string, headers: Record<string, string> = {}) =>
  (await send("POST", "/v1/keys", { bearer, headers })).json;
const rotated = async (id: string, bearer: string, headers: Record<string, string> = {}) =>
  (await send("POST", `/v1/keys/${id}/rotate`, { bearer, headers })).json;

describe.each(["undo", "detach"] as const)("%s of a claim", (how) => {
  const takeBack = ({ recovery_secret, balance_id }: SetUp, account: string, body?: object) =>
    how === "undo" ? undo(recovery_secret, body) : detach(account, balance_id, body);

  test("ends all that the account's own recovery secret has made, and what that was rotated to", async () => {
    const owner = await gateway.setUp();
    const spare = await keyMade(owner.recovery_secret);
    const thief = await takeOver(owner);
    const minted = await keyMade(thief.recovery);
    const next = await rotated(minted.id, minted.key);
    const again = await rotated(next.id, thief.recovery);
    const ofSetUp = await rotated(owner.id, thief.recovery);
    const afterwards = await rotated(ofSetUp.id, ofSetUp.key);
    const bySession = await keyMade(thief.session, thief.headers);
    const replaced = (await send("POST", "/v1/me/recovery", { bearer: thief.recovery })).json.recovery_secret;
    const byThat = await keyMade(replaced);
    for (const { key } of [again, afterwards, ofSetUp, bySession, byThat])
      expect(await status(key)).toBe(200);

    const taken = await takeBack(owner, thief.account_id);
    expect(taken.status).toBe(200);
    const made = [minted, next, again, ofSetUp, afterwards, bySession, byThat];
    for (const bearer of [...made.map(({ key }) => key), thief.recovery, replaced])
      expect(await status(bearer)).toBe(401);
    expect(taken.json.live_keys.map(({ id }: { id: string }) => id)).toEqual([spare.id]);
    expect(taken.json.has_more).toBe(false);
    // Replaced with the account's secret, the set-up key ended at once, and stays so.
    expect(await status(owner.key)).toBe(401);
    expect(await status(spare.key)).toBe(200);
    expect(await status((await keyMade(owner.recovery_secret)).key)).toBe(200);
    const listed = (await send("GET", "/v1/keys", { bearer: owner.recovery_secret })).json.data;
    expect(listed.filter(({ state }: { state: string }) => state !== "revoked").length).toBe(2);
  });

  test("leaves a balance that no key alone claims any more, by neither way", async () => {
    const owner = await gateway.setUp();
    const { account_id } = await takeOver(owner);
    await takeBack(owner, account_id);
    for (const claimed of [await claimByWallet(owner.key), await claimByEmail(owner.key)]) {
      expect(summary(claimed)).toBe("400 invalid_request recovery_secret");
      expect(claimed.json.error.message).toContain("`recovery_secret`");
    }
    expect((await send("GET", "/v1/me", { bearer: owner.key })).json).toMatchObject({
      account: null,
      reclaimed: true,
    });
  });

  test("leaves a balance that is claimed with the recovery secret next to any of its keys", async () => {
    const owner = await gateway.setUp();
    const thief = await takeOver(owner);
    await rotated(owner.id, thief.recovery);
    await takeBack(owner, thief.account_id);
    const { key } = await keyMade(owner.recovery_secret);
    for (const recovery_secret of [thief.recovery, `or-rec-${"1".repeat(44)}`]) {
      expect(summary(await claimByWallet(key, { recovery_secret }))).toBe(
        "400 invalid_request recovery_secret",
      );
    }
    expect(summary(await claimByWallet(key))).toBe("400 invalid_request null");
    const { recovery_secret } = owner;
    expect(summary(await claimByWallet(key, { recovery_secret }))).toBe("200");
    expect((await send("GET", "/v1/me", { bearer: key })).json).toMatchObject({
      account: { confirmed: true },
      reclaimed: false,
    });
    // The next claim is another root.
    const undone = await undo(recovery_secret);
    expect(undone.json.live_keys.map(({ id }: { id: string }) => id)).toHaveLength(1);
    expect(summary(await claimByWallet(key, { recovery_secret }))).toBe("200");
  });

  test("with `revoke_keys` ends all keys", async () => {
    const owner = await gateway.setUp();
    const spare = await keyMade(owner.recovery_secret);
    const { account_id } = await takeOver(owner);
    expect([await status(owner.key), await status(spare.key)]).toEqual([200, 200]);
    const taken = await takeBack(owner, account_id, { revoke_keys: true });
    expect(taken.json).toMatchObject({ live_keys: [], has_more: false });
    expect([await status(owner.key), await status(spare.key)]).toEqual([401, 401]);
    expect(await status((await keyMade(owner.recovery_secret)).key)).toBe(200);
  });

  test("whose body is not understood changes nothing", async () => {
    const owner = await gateway.setUp();
    const { account_id } = await takeOver(owner);
    expect(summary(await takeBack(owner, account_id, { revoke_keys: "yes" }))).toBe(
      "400 invalid_request revoke_keys",
    );
    expect((await send("GET", "/v1/me", { bearer: owner.key })).json.account.id).toBe(account_id);
  });
});

test("withdrawing a claim that waits takes the word of the key, too", async () => {
  const owner = await gateway.setUp();
  await claimByEmail(owner.key);
  expect((await undo(owner.recovery_secret)).json).toMatchObject({ withdrawn: true, has_more: false });
  expect(summary(await claimByEmail(owner.key))).toBe("400 invalid_request recovery_secret");
  const { recovery_secret } = owner;
  expect(summary(await claimByEmail(owner.key, { recovery_secret }))).toBe("200");
});

test("a claim that its address declines, or that lapses, leaves the key its word", async () => {
  const { key, balance_id } = await gateway.setUp();
  await claimByEmail(key);
  await send("POST", "/v1/auth/email", { body: { email: "kim@example.com" } });
  const token = /#signin=(\S+)/.exec(
    gateway.mails.findLast(({ subject }) => /sign-in/.test(subject))!.text,
  )![1]!;
  const { session } = (await send("POST", "/v1/auth/email/verify", { body: { token } })).json;
  expect(summary(await send("DELETE", `/v1/me/claims/${balance_id}`, { bearer: session }))).toBe("200");
  expect(summary(await claimByEmail(key))).toBe("200");
  clock.advance(7 * DAY);
  expect(summary(await claimByEmail(key))).toBe("200");
});

test("an account that is deleted within the week leaves its balance to the recovery secret", async () => {
  const owner = await gateway.setUp();
  const thief = await takeOver(owner);
  const { key } = await keyMade(thief.recovery);
  const body = { confirm: thief.account_id };
  expect(summary(await send("DELETE", "/v1/me", { bearer: thief.session, body }))).toBe("200");
  expect([await status(key), await status(thief.recovery)]).toEqual([401, 401]);
  expect(await status(owner.recovery_secret)).toBe(200);
  expect(summary(await claimByWallet(owner.key))).toBe("400 invalid_request recovery_secret");
});

test("however many keys a claim has made, the owner makes and rotates keys once it is undone", async () => {
  const owner = await gateway.setUp();
  const thief = await takeOver(owner);
  let made = 0;
  for (; made < 200 && (await keyMade(thief.session, thief.headers)).key !== undefined; made++);
  expect(made).toBe(100);
  expect(summary(await undo(owner.recovery_secret, { revoke_keys: true }))).toBe("200");
  const { id, key } = await keyMade(owner.recovery_secret);
  expect(await status(key)).toBe(200);
  expect(await status((await rotated(id, key)).key)).toBe(200);
});
