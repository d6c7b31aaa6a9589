import { afterAll, beforeAll, expect, test } from "bun:test";
import { privateKeyToAccount } from "viem/accounts";
import { MailServer } from "../fakes/mail-server.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import type { Reply } from "../process/gateway.ts";
import { describeOnPostgres } from "./fixture.ts";

/** What one gateway promises about accounts, kept by two that share a database and never ask each other. */
describeOnPostgres("accounts on two gateways", (cluster) => {
  let server: MailServer;
  let gateways: [OpenGateway, OpenGateway];

  beforeAll(async () => {
    server = await MailServer.start();
    const store = await cluster.database();
    const config = `store: ${store}\nsmtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }\n`;
    gateways = [await open(config), await open(config)];
  });
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway.close();
    await server?.stop();
  });

  const atBoth = (path: string, options: (at: 0 | 1) => Parameters<OpenGateway["send"]>[2]) =>
    Promise.all(([0, 1] as const).map((at) => gateways[at].send("POST", path, options(at))));
  const codes = (replies: readonly Reply[]) =>
    replies.map(({ status, json }) => (status < 400 ? String(status) : json.error.code)).toSorted();
  const taken = new Set<string>();
  /** The token in the first unused mail to the address. */
  const tokenOf = async (email: string, subject = ""): Promise<string> => {
    for (let number = 1; ; number++) {
      const { to, text } = await server.mail(number);
      if (to[0] !== email || !text.includes(`Subject: ${subject}`)) continue;
      const token = /#signin=(or-link-\w+)/.exec(text)![1]!;
      if (taken.has(token)) continue;
      taken.add(token);
      return token;
    }
  };
  async function signIn(email: string, at: 0 | 1 = 0): Promise<{ session: string; account_id: string }> {
    await gateways[at].send("POST", "/v1/auth/email", { json: { email } });
    const token = await tokenOf(email, "Your sign-in link");
    return (await gateways[at].send("POST", "/v1/auth/email/verify", { json: { token } })).json;
  }

  test("of two claims of one balance at once, one wins", async () => {
    for (let round = 0; round < 5; round++) {
      const { key } = await gateways[0].key(0);
      const claims = await atBoth("/v1/me/claim", (at) => ({
        bearer: key,
        json: { email: `r${round}.${at}@example.com` },
      }));
      expect(codes(claims)).toEqual(["200", "invalid_request"]);
      const won = claims.find(({ status }) => status === 200)!.json;
      for (const gateway of gateways) {
        expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.account.id).toBe(won.account_id);
      }
    }
  });

  test("two claims for one new address at once make one account", async () => {
    const made = [await gateways[0].key(0), await gateways[1].key(0)];
    const email = "twice@example.com";
    const claims = await atBoth("/v1/me/claim", (at) => ({ bearer: made[at]!.key, json: { email } }));
    expect(codes(claims)).toEqual(["200", "200"]);
    expect(claims[0]!.json.account_id).toBe(claims[1]!.json.account_id);
  });

  test("a link and a signed message work once, wherever they are used", async () => {
    await gateways[0].send("POST", "/v1/auth/email", { json: { email: "once@example.com" } });
    const token = await tokenOf("once@example.com");
    expect(codes(await atBoth("/v1/auth/email/verify", () => ({ json: { token } })))).toEqual([
      "200",
      "invalid_request",
    ]);
    const wallet = privateKeyToAccount(`0x${"42".repeat(32)}`);
    const body = { address: wallet.address, chain_id: 1 };
    const { message } = (await gateways[1].send("POST", "/v1/auth/wallet", { json: body })).json;
    const signature = await wallet.signMessage({ message });
    const entered = await atBoth("/v1/auth/wallet/verify", () => ({ json: { message, signature } }));
    expect(codes(entered)).toEqual(["200", "invalid_request"]);
  });

  test("a session is everywhere at once, and gone everywhere at once; so is a suspension", async () => {
    const { session, account_id } = await signIn("both@example.com");
    const made = await gateways[1].send("POST", "/v1/keys", { bearer: session });
    const free = (at: 0 | 1) => gateways[at].chat(made.json.key, { model: "gateway/auto:free" });
    expect([(await free(0)).status, (await free(1)).status]).toEqual([200, 200]);
    await gateways[0].admin(`/admin/accounts/${account_id}/suspend`, { reason: "sanctions" });
    expect((await free(1)).json.error.code).toBe("account_suspended");
    await gateways[1].send("POST", "/v1/auth/logout", { bearer: session });
    expect((await gateways[0].send("GET", "/v1/me", { bearer: session })).status).toBe(401);
  });

  test("a balance that is taken over draws on its account's allowance everywhere", async () => {
    const { key } = await gateways[0].key(0);
    await gateways[0].send("POST", "/v1/me/claim", { bearer: key, json: { email: "late@example.com" } });
    const limit = async (at: 0 | 1) =>
      (await gateways[at].send("GET", "/v1/me", { bearer: key })).json.open_tier.limit;
    expect([await limit(0), await limit(1)]).toEqual([20, 20]);
    const token = await tokenOf("late@example.com");
    await gateways[0].send("POST", "/v1/auth/email/verify", { json: { token } });
    expect([await limit(0), await limit(1)]).toEqual([50, 50]);
  });
  test("a claim that is undone or detached on one gateway holds at the next request of the other", async () => {
    for (const how of ["recovery", "operator"]) {
      const { id, key, balance_id, recovery_secret } = await gateways[0].key(0);
      const email = `${how}@example.com`;
      await gateways[0].send("POST", "/v1/me/claim", { bearer: key, json: { email } });
      const token = await tokenOf(email);
      const entered = await gateways[1].send("POST", "/v1/auth/email/verify", { json: { token } });
      const { session, account_id } = entered.json;
      const seen = async (at: 0 | 1) => [
        (await gateways[at].send("GET", "/v1/me", { bearer: key })).json.open_tier.limit,
        (await gateways[at].send("GET", `/v1/keys/${id}`, { bearer: session })).status,
      ];
      expect([await seen(0), await seen(1)]).toEqual([
        [50, 200],
        [50, 200],
      ]);
      const headers = { "x-gateway-balance": balance_id };
      const post = async (at: 0 | 1, path: string, bearer: string, more = {}) =>
        (await gateways[at].send("POST", path, { bearer, ...more })).json;
      const spare = (await post(0, "/v1/keys", recovery_secret)).key;
      const made = (await post(0, "/v1/keys", session, { headers })).key;
      const issued = (await post(1, "/v1/me/recovery", session, { headers })).recovery_secret;
      const byIssued = await post(0, "/v1/keys", issued);
      const rotated = (await post(1, `/v1/keys/${byIssued.id}/rotate`, byIssued.key)).key;
      const work = (at: 0 | 1, bearers: readonly string[]) =>
        Promise.all(
          bearers.map(async (bearer) => (await gateways[at].send("GET", "/v1/me", { bearer })).status),
        );
      const ofClaim = [made, byIssued.key, rotated];
      const all = [...ofClaim, key, spare];
      for (const at of [0, 1] as const) expect(await work(at, all)).toEqual(all.map(() => 200));
      const revokes = { revoke_keys: how === "recovery" };
      const undone =
        how === "recovery"
          ? await gateways[0].send("DELETE", "/v1/me/claim", { bearer: recovery_secret, json: revokes })
          : await gateways[0].admin(`/admin/accounts/${account_id}/detach`, { balance_id, ...revokes });
      expect([undone.status, undone.json.live_keys.length]).toEqual([200, how === "recovery" ? 0 : 2]);
      for (const at of [1, 0] as const) {
        expect(await work(at, ofClaim)).toEqual([401, 401, 401]);
        const left = how === "recovery" ? 401 : 200;
        expect(await work(at, [key, spare])).toEqual([left, left]);
        expect(await work(at, [issued, recovery_secret])).toEqual([401, 200]);
      }
      const own = (await post(1, "/v1/keys", recovery_secret)).key;
      const again = await gateways[1].send("POST", "/v1/me/claim", { bearer: own, json: { email } });
      expect([again.status, again.json.error.code]).toEqual([400, "invalid_request"]);
      if (how === "recovery") continue;
      expect([await seen(1), await seen(0)]).toEqual([
        [20, 400],
        [20, 400],
      ]);
    }
  });

  test("a confirmation that races a withdrawal is one or the other", async () => {
    for (let round = 0; round < 5; round++) {
      const { key, balance_id, recovery_secret } = await gateways[0].key(0);
      const email = `race${round}@example.com`;
      await gateways[0].send("POST", "/v1/me/claim", { bearer: key, json: { email } });
      const { session } = await signIn(email);
      const [confirmed, withdrawn] = await Promise.all([
        gateways[0].send("POST", `/v1/me/claims/${balance_id}`, { bearer: session }),
        gateways[1].send("DELETE", "/v1/me/claim", { bearer: recovery_secret }),
      ]);
      // Withdrawn first, there is nothing to confirm; confirmed first, it is undone.
      expect(withdrawn.status).toBe(200);
      expect([200, 400]).toContain(confirmed.status);
      expect((await gateways[0].send("GET", "/v1/me", { bearer: key })).json.account).toBeNull();
      const named = { bearer: session, headers: { "x-gateway-balance": balance_id } };
      expect((await gateways[0].send("GET", "/v1/me", named)).status).toBe(400);
    }
  });
  test("what its owner ends on one gateway has ended at the next request of the other", async () => {
    const { session, account_id } = await signIn("ends@example.com");
    const other = (await signIn("ends@example.com", 1)).session;
    const { key } = (await gateways[1].send("POST", "/v1/keys", { bearer: session })).json;
    const send = async (at: 0 | 1, bearer: string) =>
      (await gateways[at].send("GET", "/v1/me", { bearer })).status;
    const first = (await gateways[0].send("POST", "/v1/me/recovery", { bearer: session })).json;
    const second = (await gateways[1].send("POST", "/v1/me/recovery", { bearer: first.recovery_secret }))
      .json;
    expect([await send(0, first.recovery_secret), await send(0, second.recovery_secret)]).toEqual([401, 200]);

    const { data } = (await gateways[1].send("GET", "/v1/auth/sessions", { bearer: session })).json;
    const { id } = data.find((one: { current: boolean }) => !one.current);
    await gateways[0].send("DELETE", `/v1/auth/sessions/${id}`, { bearer: session });
    expect(await send(1, other)).toBe(401);

    expect([await send(0, key), await send(1, key)]).toEqual([200, 200]);
    const json = { confirm: account_id };
    expect((await gateways[1].send("DELETE", "/v1/me", { bearer: session, json })).status).toBe(200);
    for (const bearer of [key, session, second.recovery_secret]) {
      expect([await send(0, bearer), await send(1, bearer)]).toEqual([401, 401]);
    }
    expect((await signIn("ends@example.com")).account_id).not.toBe(account_id);
    await gateways[1].send("DELETE", "/v1/auth/sessions", {
      bearer: (await signIn("ends@example.com")).session,
    });
  });

  test("of two that replace a recovery secret by itself at once, one wins; a session's undo right stays", async () => {
    for (let round = 0; round < 5; round++) {
      const { recovery_secret } = await gateways[0].key(0);
      const both = await atBoth("/v1/me/recovery", () => ({ bearer: recovery_secret }));
      expect(codes(both)).toEqual(["200", "invalid_api_key"]);
      const won = both.find(({ status }) => status === 200)!.json.recovery_secret;
      expect((await gateways[0].send("GET", "/v1/me", { bearer: won })).status).toBe(200);
    }
    const { key, balance_id, recovery_secret } = await gateways[0].key(0);
    await gateways[0].send("POST", "/v1/me/claim", { bearer: key, json: { email: "thief@example.com" } });
    const token = await tokenOf("thief@example.com");
    const { session } = (await gateways[1].send("POST", "/v1/auth/email/verify", { json: { token } })).json;
    const headers = { "x-gateway-balance": balance_id };
    await gateways[1].send("POST", "/v1/me/recovery", { bearer: session, headers });
    const undone = await gateways[0].send("DELETE", "/v1/me/claim", { bearer: recovery_secret });
    expect(undone.json).toMatchObject({ balance_id, withdrawn: true });
    expect((await gateways[1].send("GET", "/v1/me", { bearer: recovery_secret })).json.account).toBeNull();
  });
});
