import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { privateKeyToAccount } from "viem/accounts";
import { ManualClock } from "../fakes/clock.ts";
import { ADMIN_TOKEN, TestGateway } from "./test-gateway.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const EMAIL = "kim@example.com";

let gateway: TestGateway;
let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
  gateway = new TestGateway({ clock });
});
afterEach(() => gateway.stop());

const requestLink = (email = EMAIL) => gateway.send("POST", "/v1/auth/email", { body: { email } });
const verify = (token: string, headers: Record<string, string> = {}) =>
  gateway.send("POST", "/v1/auth/email/verify", { body: { token }, headers });
const tokenOf = (mail = gateway.mails.at(-1)): string => /#signin=(\S+)/.exec(mail!.text)![1]!;
const me = async (bearer: string, headers: Record<string, string> = {}) =>
  (await gateway.send("GET", "/v1/me", { bearer, headers })).json;
const claim = (key: string, email = EMAIL) =>
  gateway.send("POST", "/v1/me/claim", { bearer: key, body: { email } });

/** The session of somebody who reads the mailbox. */
async function signIn(email = EMAIL): Promise<string> {
  await requestLink(email);
  return (await verify(tokenOf())).json.session;
}

const refusal = ({ status, json }: Awaited<ReturnType<typeof requestLink>>) =>
  status < 400 ? String(status) : `${status} ${json.error.code} ${json.error.param}`;

describe("signing in by email", () => {
  test("the mailed link makes a session of 30 days, on an account with a balance of its own", async () => {
    expect((await requestLink()).status).toBe(202);
    expect(gateway.mails[0]).toMatchObject({ to: EMAIL });
    expect(gateway.mails[0]!.text).toContain("http://gateway.test/dashboard#signin=or-link-");
    const { status, json } = await verify(tokenOf());
    expect(status).toBe(200);
    expect(json.session).toMatch(/^or-sess-[1-9A-HJ-NP-Za-km-z]{44}$/);
    expect(Date.parse(json.expires_at)).toBe(clock.now() + 30 * DAY);
    const { account, balance_id, key } = await me(json.session);
    expect(account).toEqual({ id: json.account_id, email: EMAIL, balances: [balance_id], claims: [] });
    expect(key).toBeNull();
    clock.advance(30 * DAY);
    expect(refusal(await gateway.send("GET", "/v1/me", { bearer: json.session }))).toBe(
      "401 invalid_api_key null",
    );
  });

  test("signing in again finds the same account", async () => {
    const [first, second] = [await me(await signIn()), await me(await signIn(" Kim@Example.COM "))];
    expect(second.account).toEqual(first.account);
    expect((await me(await signIn("other@example.com"))).account.id).not.toBe(first.account.id);
  });

  test("a link works once, for 15 minutes, and only if it was mailed", async () => {
    await requestLink();
    const token = tokenOf();
    const both = await Promise.all([verify(token), verify(token)]);
    expect(both.map(refusal).toSorted()).toEqual(["200", "400 invalid_request token"]);
    await requestLink();
    clock.advance(15 * MINUTE);
    expect(refusal(await verify(tokenOf()))).toBe("400 invalid_request token");
    expect(refusal(await verify(`or-link-${"1".repeat(44)}`))).toBe("400 invalid_request token");
  });

  test("asking says the same about an address that has an account and one that has none", async () => {
    await signIn();
    const [known, unknown] = [await requestLink(), await requestLink("nobody@example.com")];
    expect(known.text).toBe(unknown.text);
    expect(known.status).toBe(unknown.status);
    const [one, other] = gateway.mails
      .slice(-2)
      .map(({ subject, text }) => ({ subject, text: text.replace(/or-link-\w+/, "") }));
    expect(one!).toEqual(other!);
  });

  test("five links are on their way to a mailbox, not more", async () => {
    for (let turn = 0; turn < 7; turn++) expect((await requestLink()).status).toBe(202);
    expect(gateway.mails.length).toBe(5);
    await requestLink("other@example.com");
    expect(gateway.mails.length).toBe(6);
    clock.advance(15 * MINUTE);
    await requestLink();
    expect(gateway.mails.length).toBe(7);
  });

  test("a network address that asks without end has to wait", async () => {
    for (let turn = 0; turn < 60; turn++)
      expect((await requestLink(`a${turn}@example.com`)).status).toBe(202);
    const stopped = await requestLink("more@example.com");
    expect(refusal(stopped)).toBe("429 rate_limited null");
    expect(stopped.headers.get("retry-after")).toBe("3600");
  });

  test.each([
    "",
    "kim",
    "kim@",
    "@example.com",
    "a b@example.com",
    "kim@example.com\r\nBcc: x@example.com",
    "kim@127.0.0.1",
    "a@b@c..d",
    "Kim <kim@example.com>",
    `${"a".repeat(65)}@example.com`,
    "kim@exämple.com",
  ])("%p is no address", async (email) => {
    expect(refusal(await requestLink(email))).toBe("400 invalid_request email");
    expect(gateway.mails).toEqual([]);
  });

  test("logging out ends this session and no other", async () => {
    const [one, other] = [await signIn(), await signIn()];
    expect((await gateway.send("POST", "/v1/auth/logout", { bearer: one })).status).toBe(204);
    expect((await gateway.send("GET", "/v1/me", { bearer: one })).status).toBe(401);
    expect((await gateway.send("GET", "/v1/me", { bearer: other })).status).toBe(200);
  });
});

const OWN = { origin: "http://gateway.test" };

describe("the session in a cookie", () => {
  const cookieOf = ({ headers }: { headers: Headers }) => headers.get("set-cookie");
  const browserSession = async () => {
    await requestLink();
    return cookieOf(await verify(tokenOf(), OWN))!.split(";")[0]!;
  };

  test("is given to the gateway's own pages only", async () => {
    await requestLink();
    const set = cookieOf(await verify(tokenOf(), OWN));
    expect(set).toMatch(
      /^__Host-session=or-sess-\w{44}; Path=\/; Max-Age=2592000; Secure; HttpOnly; SameSite=Lax$/,
    );
    for (const headers of [
      {},
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: "http://gateway.test:81" },
    ]) {
      await requestLink();
      expect(cookieOf(await verify(tokenOf(), headers as Record<string, string>))).toBeNull();
    }
  });

  test("reads without, but changes only with the Origin of the gateway's own pages", async () => {
    const cookie = await browserSession();
    const send = (method: string, path: string, headers = {}) =>
      gateway.send(method, path, { headers: { cookie, ...headers } });
    expect((await send("GET", "/v1/me")).status).toBe(200);
    expect((await send("POST", "/v1/keys", OWN)).status).toBe(201);
    for (const headers of [
      {},
      { origin: "https://evil.example" },
      { origin: "null" },
      { host: "evil.example", origin: "http://evil.example" },
    ]) {
      expect(refusal(await send("POST", "/v1/keys", headers))).toBe("400 invalid_request Origin");
      expect(refusal(await send("POST", "/v1/auth/logout", headers))).toBe("400 invalid_request Origin");
    }
    const out = await send("POST", "/v1/auth/logout", OWN);
    expect(out.status).toBe(204);
    expect(cookieOf(out)).toStartWith("__Host-session=; Path=/; Max-Age=0;");
    expect((await send("GET", "/v1/me")).status).toBe(401);
  });

  test("does not make a key request of a generation, and yields to a bearer token", async () => {
    const cookie = await browserSession();
    const { key, id } = await gateway.setUp();
    const chat = await gateway.send("POST", "/v1/chat/completions", {
      headers: { cookie, ...OWN },
      body: {},
    });
    expect(refusal(chat)).toBe("401 missing_api_key null");
    expect((await me(key, { cookie })).key.id).toBe(id);
  });
});

describe("a session owns its account's balances", () => {
  test("keys are created with an account's limits, listed, changed, rotated with grace, revoked", async () => {
    const bearer = await signIn();
    const made = (await gateway.send("POST", "/v1/keys", { bearer })).json;
    expect(made.rpm_limit).toBe(300);
    expect(made.recovery_secret).toBeUndefined();
    expect((await me(made.key)).account).toMatchObject({ email: EMAIL, confirmed: true });
    const raised = await gateway.send("PATCH", `/v1/keys/${made.id}`, { bearer, body: { rpm_limit: 900 } });
    expect(raised.json.rpm_limit).toBe(900);
    const rotated = (await gateway.send("POST", `/v1/keys/${made.id}/rotate`, { bearer })).json;
    expect(Date.parse(rotated.old_key.expires_at)).toBe(clock.now() + DAY);
    expect((await gateway.send("GET", "/v1/me", { bearer: made.key })).status).toBe(200);
    await gateway.send("DELETE", `/v1/keys/${made.id}`, { bearer });
    expect((await gateway.send("GET", "/v1/me", { bearer: made.key })).status).toBe(401);
    const { data } = (await gateway.send("GET", "/v1/keys", { bearer })).json;
    expect(data.map(({ id, state }: { id: string; state: string }) => [id, state]).toSorted()).toEqual(
      [
        [made.id, "revoked"],
        [rotated.id, "active"],
      ].toSorted(),
    );
  });

  test("and nobody else's", async () => {
    const [mine, theirs] = [await signIn(), await signIn("other@example.com")];
    const { id } = (await gateway.send("POST", "/v1/keys", { bearer: theirs })).json;
    const tries: [string, string][] = [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/rotate"],
      ["POST", "/revoke"],
    ];
    for (const [method, rest] of tries) {
      const body = method === "GET" ? {} : { body: {} };
      expect(refusal(await gateway.send(method, `/v1/keys/${id}${rest}`, { bearer: mine, ...body }))).toBe(
        "400 invalid_request id",
      );
    }
    const { balance_id } = await me(theirs);
    const named = await gateway.send("GET", "/v1/me", {
      bearer: mine,
      headers: { "x-gateway-balance": balance_id },
    });
    expect(refusal(named)).toBe("400 invalid_request x-gateway-balance");
  });
});

describe("claiming by email", () => {
  test("the key works unchanged, and the mailed link brings its balance into the account", async () => {
    const { key, id, balance_id, recovery_secret } = await gateway.setUp();
    const before = await me(key);
    const claimed = await claim(key);
    expect(claimed.status).toBe(200);
    const { account_id } = claimed.json;
    expect(claimed.json).toEqual({ account_id, balance_id, email: EMAIL, confirmed: false });
    expect(await me(key)).toEqual({ ...before, account: { id: account_id, email: EMAIL, confirmed: false } });
    expect(gateway.mails[0]!.text).toContain(balance_id);
    const { session } = (await verify(tokenOf())).json;
    const { account, ...own } = await me(session);
    expect(account).toEqual({
      id: account_id,
      email: EMAIL,
      balances: [own.balance_id, balance_id],
      claims: [],
    });
    expect(own.balance_id).not.toBe(balance_id);
    expect((await gateway.send("GET", "/v1/keys", { bearer: session })).json.data[0].id).toBe(id);
    const undo_until = new Date(clock.now() + 7 * DAY).toISOString();
    expect((await me(key)).account).toEqual({ id: account_id, email: EMAIL, confirmed: true, undo_until });
    expect((await me(recovery_secret)).account.id).toBe(account_id);
    const minted = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: recovery_secret });
    expect(minted.status).toBe(200);
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).status).toBe(401);
  });

  test("a second claim is refused, for any account; of two at once one wins", async () => {
    const { key } = await gateway.setUp();
    const both = await Promise.all([claim(key), claim(key, "other@example.com")]);
    expect(both.map(refusal).toSorted()).toEqual(["200", "400 invalid_request null"]);
    await verify(tokenOf());
    expect(refusal(await claim(key))).toBe("400 invalid_request null");
  });

  test("a stranger's claim changes nothing for an account until its owner confirms", async () => {
    const session = await signIn();
    const before = await me(session);
    const stranger = await gateway.setUp();
    const claimed = await claim(stranger.key);
    expect(claimed.status).toBe(200);
    await signIn();
    const { claims, ...account } = (await me(session)).account;
    expect({ ...account, claims: [] }).toEqual(before.account);
    expect(claims).toEqual([
      { balance_id: stranger.balance_id, claimed_at: new Date(clock.now()).toISOString() },
    ]);
    const seen = await gateway.send("GET", `/v1/keys/${stranger.id}`, { bearer: session });
    expect(seen.status).toBe(400);
  });

  test("who claims learns nothing about the account that the address may have", async () => {
    const known = (await me(await signIn())).account.id;
    await gateway.send("POST", `/admin/accounts/${known}/suspend`, {
      bearer: ADMIN_TOKEN,
      body: { reason: "sanctions" },
    });
    const views = await Promise.all(
      [EMAIL, "nobody@example.com"].map(async (email) => {
        const { key } = await gateway.setUp();
        const { status, json } = await claim(key, email);
        const { id: _, email: __, ...account } = (await me(key)).account;
        return { status, members: Object.keys(json), account };
      }),
    );
    expect(views[0]!).toEqual(views[1]!);
  });

  test("the owner's word takes a claimed balance over, or turns it down", async () => {
    const session = await signIn();
    const own = (await me(session)).balance_id;
    const [expected, unwanted] = [await gateway.setUp(), await gateway.setUp()];
    for (const { key } of [expected, unwanted]) await claim(key);
    const decide = (method: string, id: string) =>
      gateway.send(method, `/v1/me/claims/${id}`, { bearer: session });
    expect((await decide("POST", expected.balance_id)).json.confirmed).toBe(true);
    expect((await decide("DELETE", unwanted.balance_id)).json.confirmed).toBe(false);
    expect((await me(session)).account).toMatchObject({
      balances: expect.arrayContaining([own, expected.balance_id]),
      claims: [],
    });
    expect(refusal(await decide("POST", unwanted.balance_id))).toBe("400 invalid_request id");
    expect(
      (await gateway.send("GET", "/v1/keys", { bearer: session })).json.data.map(
        ({ id }: { id: string }) => id,
      ),
    ).toEqual([expected.id]);
    const headers = { "x-gateway-balance": expected.balance_id };
    expect((await me(session, headers)).balance_id).toBe(expected.balance_id);
    expect((await claim(unwanted.key, "other@example.com")).status).toBe(200);
  });

  test("nobody else can confirm a claim", async () => {
    const { key, balance_id } = await gateway.setUp();
    await claim(key);
    const bearer = await signIn("other@example.com");
    expect(refusal(await gateway.send("POST", `/v1/me/claims/${balance_id}`, { bearer }))).toBe(
      "400 invalid_request id",
    );
  });

  test("a claim that nobody confirms ends after seven days", async () => {
    const { key, balance_id } = await gateway.setUp();
    await claim(key, "mistyped@example.com");
    clock.advance(7 * DAY);
    expect((await me(key)).account).toBeNull();
    expect((await claim(key)).status).toBe(200);
    expect((await me((await verify(tokenOf())).json.session)).account.balances).toContain(balance_id);
    expect((await me(await signIn("mistyped@example.com"))).account.claims).toEqual([]);
  });
});

describe("a wallet", () => {
  const wallet = privateKeyToAccount(`0x${"42".repeat(32)}`);
  const messageFor = async (address: string = wallet.address, chain_id = 1) =>
    gateway.send("POST", "/v1/auth/wallet", { body: { address, chain_id } });
  const signed = async (by = wallet) => {
    const { message } = (await messageFor(by.address)).json;
    return { message, signature: await by.signMessage({ message }) };
  };
  const enter = (body: object) => gateway.send("POST", "/v1/auth/wallet/verify", { body });

  test("signs in with a message that names the dashboard, the chain, a nonce and an end", async () => {
    const { json } = await gateway.send("POST", "/v1/auth/wallet", {
      body: { address: wallet.address.toLowerCase(), chain_id: 8453 },
      headers: { host: "evil.example" },
    });
    expect(json.message).toStartWith(
      `gateway.test wants you to sign in with your Ethereum account:\n${wallet.address}\n`,
    );
    expect(json.message).toContain(
      "\nURI: http://gateway.test/dashboard\nVersion: 1\nChain ID: 8453\nNonce: ",
    );
    expect(json.message).toEndWith(`Expiration Time: ${new Date(clock.now() + 10 * MINUTE).toISOString()}`);
    const { message } = json;
    const answer = await enter({ message, signature: await wallet.signMessage({ message }) });
    expect((await me(answer.json.session)).account).toMatchObject({
      id: answer.json.account_id,
      wallet: wallet.address,
    });
  });

  test("signs in once a message, before it expires, and only with its own signature", async () => {
    const body = await signed();
    const both = await Promise.all([enter(body), enter(body)]);
    expect(both.map(refusal).toSorted()).toEqual(["200", "400 invalid_request message"]);
    const late = await signed();
    clock.advance(10 * MINUTE);
    expect(refusal(await enter(late))).toBe("400 invalid_request message");
    const fresh = await signed();
    const other = privateKeyToAccount(`0x${"43".repeat(32)}`);
    const forged = await other.signMessage({ message: fresh.message });
    expect(refusal(await enter({ ...fresh, signature: forged }))).toBe("400 invalid_request signature");
    const altered = fresh.message.replace("gateway.test", "evil.example");
    const own = { message: altered, signature: await wallet.signMessage({ message: altered }) };
    expect(refusal(await enter(own))).toBe("400 invalid_request message");
    expect((await enter(fresh)).status).toBe(200);
  });

  test.each([
    ["0x12", 1, "address"],
    [`0x${"zz".repeat(20)}`, 1, "address"],
    ["0x90F8bf6A479f320ead074411a4B0e7944Ea8c9c1", 1, "address"],
    [wallet.address, 0, "chain_id"],
    [wallet.address, 1.5, "chain_id"],
  ] as const)("%p on chain %p is refused for its %s", async (address, chain, field) => {
    expect(refusal(await messageFor(address, chain))).toBe(`400 invalid_request ${field}`);
  });

  test.each(["http://gateway:8080", "http://[::1]:8080"])(
    "gets a link where the dashboard is at %p",
    async (url) => {
      const { settings } = gateway;
      gateway.settings = { ...settings, dashboardUrl: `${url}/dashboard` };
      const { status, json } = await messageFor();
      expect(status).toBe(400);
      expect(json.error.message).toContain("dashboard_url");
    },
  );

  test("claims a balance at once; of two claims at once one wins; a second is refused", async () => {
    const { key, balance_id } = await gateway.setUp();
    const claimIt = async (bearer: string, by = wallet) =>
      gateway.send("POST", "/v1/me/claim", { bearer, body: { wallet: await signed(by) } });
    const other = privateKeyToAccount(`0x${"43".repeat(32)}`);
    const both = await Promise.all([claimIt(key), claimIt(key, other)]);
    expect(both.map(refusal).toSorted()).toEqual(["200", "400 invalid_request null"]);
    const { json } = both.find(({ status }) => status === 200)!;
    expect(json).toMatchObject({ balance_id, confirmed: true });
    expect((await me(key)).account).toMatchObject({
      id: json.account_id,
      wallet: json.wallet,
      confirmed: true,
    });
    expect(refusal(await claimIt(key))).toBe("400 invalid_request null");
    const second = await gateway.setUp();
    expect((await claimIt(second.key)).status).toBe(200);
  });

  test("that is a contract is another wallet on every chain", async () => {
    const claims = async (answer: typeof gateway.contractAnswer, chain = 1) => {
      gateway.contractAnswer = answer;
      const { message } = (await messageFor(wallet.address, chain)).json;
      return enter({ message, signature: "0x1234" });
    };
    const one = (await claims("valid")).json.session;
    const other = (await claims("valid", 10)).json.session;
    expect((await me(one)).account.wallet).toBe(`eip155:1:${wallet.address}`);
    expect((await me(other)).account.wallet).toBe(`eip155:10:${wallet.address}`);
    expect((await enter(await signed())).json.account_id).not.toBe((await me(one)).account.id);
    for (const answer of ["invalid", "unknown", "unreachable"] as const) {
      expect(refusal(await claims(answer))).toBe("400 invalid_request signature");
    }
  });
});

test("wrong signatures are not checked without end, whatever they are sent for", async () => {
  const { key } = await gateway.setUp();
  const body = { address: `0x${"ab".repeat(20)}`, chain_id: 1 };
  const { message } = (await gateway.send("POST", "/v1/auth/wallet", { body: body })).json;
  const wallet = { message, signature: `0x${"12".repeat(65)}` };
  const tries: [string, object][] = [
    ["/v1/me/claim", { wallet }],
    ["/v1/auth/wallet/verify", wallet],
  ];
  for (let turn = 0; turn < 60; turn++) {
    const [path, body] = tries[turn % 2]!;
    expect((await gateway.send("POST", path, { bearer: key, body })).status).toBe(400);
  }
  for (const [path, body] of tries) {
    expect(refusal(await gateway.send("POST", path, { bearer: key, body }))).toBe("429 rate_limited null");
  }
});

test("wrong recovery secrets are not answered without end, and never lock out the right one", async () => {
  const { recovery_secret } = await gateway.setUp();
  const wrong = `or-rec-${"1".repeat(44)}`;
  const send = (bearer: string, from = "192.0.2.1") =>
    gateway.send("GET", "/v1/me", { bearer, headers: { "x-forwarded-for": from } });
  for (let turn = 0; turn < 60; turn++) expect((await send(wrong)).status).toBe(401);
  expect(refusal(await send(wrong))).toBe("429 rate_limited null");
  expect((await send(recovery_secret)).status).toBe(200);
  expect((await send(wrong, "192.0.2.2")).status).toBe(401);
  clock.advance(60 * MINUTE);
  expect((await send(wrong)).status).toBe(401);
});

describe("the operator", () => {
  const read = (path: string) => gateway.send("GET", path, { bearer: ADMIN_TOKEN });

  test("finds an account by its address, with what belongs to it and what waits", async () => {
    const { account } = await me(await signIn());
    const offered = await gateway.setUp();
    await claim(offered.key);
    const view = {
      id: account.id,
      object: "account",
      email: EMAIL,
      wallet: null,
      suspended: null,
      created_at: new Date(clock.now()).toISOString(),
      deleted_at: null,
      first_signed_in_at: new Date(clock.now()).toISOString(),
      balance_ids: account.balances,
      claimed_balance_ids: [offered.balance_id],
    };
    expect((await read(`/admin/accounts?email=${EMAIL.toUpperCase()}`)).json.data).toEqual([view]);
    expect((await read(`/admin/accounts/${account.id}`)).json).toEqual(view);
    expect((await read("/admin/accounts?email=nobody@example.com")).json.data).toEqual([]);
    expect((await read("/admin/accounts?wallet=0x00")).json.data).toEqual([]);
    for (const query of ["", "?email=kim", `?email=${EMAIL}&wallet=0x00`]) {
      expect(refusal(await read(`/admin/accounts${query}`))).toBe("400 invalid_request email");
    }
    expect(refusal(await read("/admin/accounts/acct_none"))).toBe("400 invalid_request id");
  });

  test("sees whose each balance is: the address of its account, and none where there is no account", async () => {
    const { account, balance_id } = await me(await signIn());
    const nobodys = await gateway.setUp();
    await claim(nobodys.key);
    const rows = (await read("/admin/balances?limit=200")).json.data;
    const row = (id: string) => rows.find((one: { id: string }) => one.id === id);
    expect(row(balance_id)).toMatchObject({ account_id: account.id, email: EMAIL, wallet: null });
    // A claim that waits is nobody's word yet.
    expect(row(nobodys.balance_id)).toMatchObject({ account_id: null, email: null, wallet: null });
    expect((await read(`/admin/balances/${balance_id}`)).json).toMatchObject({ email: EMAIL, wallet: null });
  });

  test("suspends and unsuspends it, and reads later who did so, when and why", async () => {
    const bearer = await signIn();
    const { account, balance_id } = await me(bearer);
    const send = (what: string, body: object) =>
      gateway.send("POST", `/admin/accounts/${account.id}/${what}`, { bearer: ADMIN_TOKEN, body });
    const suspended = await send("suspend", { reason: "chargeback", by: "kim", note: "case 7" });
    expect(suspended.json).toEqual({ id: account.id, suspended: "chargeback", balance_ids: [balance_id] });
    expect((await me(bearer)).account.suspended).toBe("chargeback");
    const since = (await me(bearer)).suspended_at;
    clock.advance(MINUTE);
    expect((await me(bearer)).suspended_at).toBe(since);
    expect(since).toBe(new Date(clock.now() - MINUTE).toISOString());
    expect((await send("unsuspend", {})).json.suspended).toBeNull();
    expect((await me(bearer)).suspended).toBeNull();
    const at = (ms: number) => new Date(clock.now() - ms).toISOString();
    expect((await read(`/admin/accounts/${account.id}/suspensions`)).json.data).toEqual([
      { at: at(0), reason: null, by: "admin", note: null },
      { at: at(MINUTE), reason: "chargeback", by: "kim", note: "case 7" },
    ]);
    expect(refusal(await send("suspend", { reason: "mood" }))).toBe("400 invalid_request reason");
    expect(refusal(await send("unsuspend", { reason: "mood" }))).toBe("400 invalid_request reason");
  });
});
