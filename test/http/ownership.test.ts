import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ManualClock } from "../fakes/clock.ts";
import { RawClient, readResponse, whole } from "./raw-client.ts";
import { ADMIN_TOKEN, TestGateway } from "./test-gateway.ts";

const DAY = 86_400_000;
const KIM = "kim@example.com";

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
const newest = () => /#signin=(\S+)/.exec(gateway.mails.at(-1)!.text)![1]!;
const verify = (token: string) => gateway.send("POST", "/v1/auth/email/verify", { body: { token } });
async function signIn(email = KIM): Promise<string> {
  await gateway.send("POST", "/v1/auth/email", { body: { email } });
  return (await verify(newest())).json.session;
}
const send = (bearer: string, headers: Record<string, string> = {}) =>
  gateway.send("GET", "/v1/me", { bearer, headers });
const me = async (bearer: string) => (await send(bearer)).json;
const replace = (bearer: string, balance?: string) =>
  gateway.send("POST", "/v1/me/recovery", {
    bearer,
    headers: balance === undefined ? {} : { "x-gateway-balance": balance },
  });
const undo = (bearer: string) => gateway.send("DELETE", "/v1/me/claim", { bearer });
const end = (bearer: string, confirm: string) =>
  gateway.send("DELETE", "/v1/me", { bearer, body: { confirm } });

/** A balance that Kim claimed by the link of the claim, with the session of that. */
async function claimed() {
  const made = await gateway.setUp();
  await gateway.send("POST", "/v1/me/claim", { bearer: made.key, body: { email: KIM } });
  const { session, account_id } = (await verify(newest())).json;
  return { ...made, session, account_id };
}

describe("replacing the recovery secret", () => {
  test("by the secret itself: the new one is shown once and opens the balance, the old one nothing", async () => {
    const { recovery_secret: old, balance_id } = await gateway.setUp();
    const { status, json } = await replace(old);
    expect(status).toBe(200);
    expect(json).toEqual({
      balance_id,
      recovery_secret: expect.stringMatching(/^or-rec-[1-9A-HJ-NP-Za-km-z]{44}$/),
      recovery_url: `http://gateway.test/dashboard#recover=${json.recovery_secret}`,
    });
    expect((await me(json.recovery_secret)).balance_id).toBe(balance_id);
    const refusal = await send(old);
    expect(summary(refusal)).toBe("401 invalid_api_key null");
    expect(refusal.json.error.message).toStartWith("Incorrect recovery secret provided");
    expect(summary(await replace(old))).toBe("401 invalid_api_key null");
  });

  test("of two at once with one secret, one wins", async () => {
    const { recovery_secret } = await gateway.setUp();
    const both = await Promise.all([replace(recovery_secret), replace(recovery_secret)]);
    expect(both.map(summary).toSorted()).toEqual(["200", "401 invalid_api_key null"]);
    const { json } = both.find(({ status }) => status === 200)!;
    expect(summary(await send(json.recovery_secret))).toBe("200");
  });

  test("by a session: for the account's own balance, which had none, and for the one that it names", async () => {
    const { session, balance_id, recovery_secret } = await claimed();
    const own = (await replace(session)).json;
    expect((await me(own.recovery_secret)).balance_id).toBe((await me(session)).balance_id);
    const named = (await replace(session, balance_id)).json;
    expect((await me(named.recovery_secret)).balance_id).toBe(balance_id);
    expect(summary(await send(recovery_secret))).toBe("401 invalid_api_key null");
    expect(summary(await send(own.recovery_secret))).toBe("200");
    const stranger = await signIn("lee@example.com");
    expect(summary(await replace(stranger, balance_id))).toBe("400 invalid_request x-gateway-balance");
  });

  test("not by a key", async () => {
    expect(summary(await replace((await gateway.setUp()).key))).toBe("400 invalid_request null");
  });

  test("a session that replaced it does not shut out the secret that undoes the claim, which is the secret again", async () => {
    const { session, balance_id, recovery_secret: first } = await claimed();
    const second = (await replace(session, balance_id)).json.recovery_secret;
    const third = (await replace(session, balance_id)).json.recovery_secret;
    expect(summary(await undo(third))).toBe("400 invalid_request null");
    expect(summary(await undo(second))).toBe("401 invalid_api_key null");
    expect(summary(await undo(first))).toBe("200");
    expect([summary(await send(third)), (await me(first)).balance_id]).toEqual([
      "401 invalid_api_key null",
      balance_id,
    ]);
    expect((await me(first)).account).toBeNull();
  });

  test("that secret ends with the seven days, and is the one that opens the balance after the operator detached it", async () => {
    const { session, account_id, balance_id, recovery_secret: first } = await claimed();
    const second = (await replace(session, balance_id)).json.recovery_secret;
    clock.advance(7 * DAY);
    expect(summary(await undo(first))).toBe("401 invalid_api_key null");
    const detached = await gateway.send("POST", `/admin/accounts/${account_id}/detach`, {
      bearer: ADMIN_TOKEN,
      body: { balance_id },
    });
    expect(summary(detached)).toBe("200");
    expect([summary(await send(second)), summary(await send(first))]).toEqual([
      "401 invalid_api_key null",
      "200",
    ]);
  });

  test("a secret that replaced itself undoes the claim in its place", async () => {
    const { recovery_secret: first } = await claimed();
    const second = (await replace(first)).json.recovery_secret;
    expect(summary(await undo(first))).toBe("401 invalid_api_key null");
    expect(summary(await undo(second))).toBe("200");
  });
});

describe("sessions", () => {
  const list = async (bearer: string) =>
    (await gateway.send("GET", "/v1/auth/sessions", { bearer })).json.data as {
      id: string;
      current: boolean;
    }[];
  const endOne = (bearer: string, id: string) =>
    gateway.send("DELETE", `/v1/auth/sessions/${id}`, { bearer });

  test("are listed newest first without their secrets, and ended one by one or all", async () => {
    const first = await signIn();
    const signed_in_at = new Date(clock.now()).toISOString();
    clock.advance(1_000);
    const [second, stranger] = [await signIn(), await signIn("lee@example.com")];
    const seen = await list(first);
    expect(seen.map(({ current }) => current)).toEqual([false, true]);
    expect(seen[1] as object).toEqual({
      id: expect.stringMatching(/^sess_[0-9a-f]{22}$/),
      signed_in_at,
      expires_at: new Date(Date.parse(signed_in_at) + 30 * DAY).toISOString(),
      current: true,
    });
    expect(summary(await endOne(stranger, seen[0]!.id))).toBe("400 invalid_request id");
    expect((await endOne(first, seen[0]!.id)).json).toEqual({ id: seen[0]!.id, ended: true });
    expect(summary(await send(second))).toBe("401 invalid_api_key null");
    expect(summary(await endOne(first, seen[0]!.id))).toBe("400 invalid_request id");
    await signIn();
    const all = await gateway.send("DELETE", "/v1/auth/sessions", { bearer: first });
    expect(all.json).toEqual({ ended: 2 });
    expect(summary(await send(first))).toBe("401 invalid_api_key null");
    expect(summary(await send(stranger))).toBe("200");
    expect((await list(await signIn())).length).toBe(1);
  });

  test("that have expired are not listed, and one that ends itself takes its cookie along", async () => {
    await signIn();
    clock.advance(30 * DAY);
    const bearer = await signIn();
    const [only, ...others] = await list(bearer);
    expect(others).toEqual([]);
    const headers = { cookie: `__Host-session=${bearer}`, origin: "http://gateway.test" };
    const ended = await gateway.send("DELETE", `/v1/auth/sessions/${only!.id}`, { headers });
    expect(ended.headers.get("set-cookie")).toContain("Max-Age=0");
  });

  test("are seen and ended by sessions only", async () => {
    const { key, recovery_secret } = await gateway.setUp();
    for (const bearer of [key, recovery_secret]) {
      for (const method of ["GET", "DELETE"]) {
        expect(summary(await gateway.send(method, "/v1/auth/sessions", { bearer }))).toBe(
          "400 invalid_request null",
        );
      }
    }
  });
});

describe("deleting", () => {
  test("an account erases its address and sessions and ends its keys; the books keep ids and amounts", async () => {
    const { session, account_id, balance_id, key, recovery_secret } = await claimed();
    clock.advance(7 * DAY);
    const own = await me(session);
    const second = (await gateway.send("POST", "/v1/keys", { bearer: session })).json.key;
    const other = await signIn();
    await gateway.send("POST", "/v1/auth/email", { body: { email: KIM } });
    const link = newest();
    const waiting = await gateway.setUp();
    await gateway.send("POST", "/v1/me/claim", { bearer: waiting.key, body: { email: KIM } });
    await send(key);
    for (const confirm of ["", balance_id, "yes"]) {
      expect(summary(await end(session, confirm))).toBe("400 invalid_request confirm");
    }
    const { json } = await end(session, account_id);
    expect(json).toEqual({
      id: account_id,
      deleted: true,
      closed_balance_ids: [own.balance_id, balance_id],
      detached_balance_ids: [],
    });
    for (const bearer of [session, other, key, second, recovery_secret]) {
      expect(summary(await send(bearer))).toBe("401 invalid_api_key null");
    }
    expect(summary(await verify(link))).toBe("400 invalid_request token");
    expect((await me(waiting.key)).account).toBeNull();
    for (const table of ["accounts", "sign_in_links", "claims", "sessions"]) {
      const rows = JSON.stringify(gateway.db.query(`SELECT * FROM ${table}`).all());
      expect(rows).not.toContain(KIM);
    }
    const operator = (path: string) => gateway.send("GET", path, { bearer: ADMIN_TOKEN });
    expect((await operator(`/admin/accounts/${account_id}`)).json).toMatchObject({
      email: null,
      deleted_at: new Date(clock.now()).toISOString(),
      balance_ids: json.closed_balance_ids,
    });
    expect((await operator(`/admin/accounts?email=${KIM}`)).json.data).toEqual([]);
    const books = (await operator(`/admin/balances/${balance_id}`)).json;
    expect(books).toMatchObject({ account_id, closed: true });
    expect((await me(await signIn())).account.id).not.toBe(account_id);
  });

  test("an account gives back what could still be taken back from it", async () => {
    const { session, account_id, balance_id, key, recovery_secret } = await claimed();
    const { json } = await end(session, account_id);
    expect(json.detached_balance_ids).toEqual([balance_id]);
    expect(json.closed_balance_ids).toEqual([expect.not.stringMatching(balance_id)]);
    expect((await me(key)).account).toBeNull();
    expect(summary(await send(recovery_secret))).toBe("200");
  });

  test("a balance without an account, by its recovery secret; a claim that waits ends with it", async () => {
    const { key, recovery_secret, balance_id } = await gateway.setUp();
    await gateway.send("POST", "/v1/me/claim", { bearer: key, body: { email: KIM } });
    expect(summary(await end(recovery_secret, "bal_other"))).toBe("400 invalid_request confirm");
    expect((await end(recovery_secret, balance_id)).json.closed_balance_ids).toEqual([balance_id]);
    for (const bearer of [key, recovery_secret]) {
      expect(summary(await send(bearer))).toBe("401 invalid_api_key null");
    }
    expect((await me(await signIn())).account.claims).toEqual([]);
  });

  test("not what belongs to an account by its recovery secret, nor anything by a key", async () => {
    const { key, recovery_secret, balance_id } = await claimed();
    expect(summary(await end(recovery_secret, balance_id))).toBe("400 invalid_request null");
    expect(summary(await end(key, balance_id))).toBe("400 invalid_request null");
    clock.advance(7 * DAY);
    expect(summary(await end(recovery_secret, balance_id))).toBe("400 invalid_request null");
  });

  test("is no way out of a suspension", async () => {
    const { session, account_id } = await claimed();
    const free = await gateway.setUp();
    for (const id of [account_id, free.balance_id]) {
      const body = { reason: "chargeback" };
      await gateway.send("POST", `/admin/accounts/${id}/suspend`, { bearer: ADMIN_TOKEN, body });
    }
    expect(summary(await end(session, account_id))).toBe("403 account_suspended null");
    expect(summary(await end(free.recovery_secret, free.balance_id))).toBe("403 account_suspended null");
  });
});

describe("a body that is sent slowly", () => {
  /** What is answered to a request whose body ends only after `meanwhile`. */
  async function slowly(method: string, path: string, headers: string[], meanwhile: () => Promise<Sent>) {
    const client = new RawClient(gateway.port);
    const body = path === "/v1/budgets" ? '{"name":"late","window":"day","cap_usd":1}' : '{"name":"late"}';
    const head = [`${method} ${path} HTTP/1.1`, "Host: gateway.test", ...headers];
    await client.write(`${head.join("\r\n")}\r\nContent-Length: ${body.length}\r\n\r\n{`);
    await letInBefore();
    expect(summary(await meanwhile())).toBe("200");
    await client.write(body.slice(1));
    const { status, body: answered } = readResponse(await client.until(whole));
    return `${status} ${JSON.parse(answered).error?.code}`;
  }
  /** Its sender has been let in by now: requests are served in the order in which they come. */
  const letInBefore = async () => {
    for (let turn = 0; turn < 20; turn++) await gateway.send("GET", "/healthz");
  };
  const bearing = (secret: string) => `Authorization: Bearer ${secret}`;

  test.each(["POST /v1/keys", "PATCH /v1/keys/{key}", "POST /v1/budgets"])(
    "does not outlive its recovery secret: %s",
    async (operation) => {
      const { id, recovery_secret } = await gateway.setUp();
      const [method, path] = operation.replace("{key}", id).split(" ") as [string, string];
      let next = "";
      const answer = await slowly(method, path, [bearing(recovery_secret)], async () => {
        const replaced = await replace(recovery_secret);
        next = replaced.json.recovery_secret;
        return replaced;
      });
      expect(answer).toBe("401 invalid_api_key");
      const { data } = (await gateway.send("GET", "/v1/keys", { bearer: next })).json;
      expect(data.map((key: { id: string; name: string | null }) => [key.id, key.name])).toEqual([
        [id, null],
      ]);
    },
  );

  test.each(["POST /v1/keys", "PATCH /v1/keys/{key}", "POST /v1/budgets"])(
    "nor its account's hold on the balance: %s",
    async (operation) => {
      for (const named of [true, false]) {
        const { id, session, balance_id, recovery_secret } = await claimed();
        const [method, path] = operation.replace("{key}", id).split(" ") as [string, string];
        // Where none is named, the account's own is meant, except for a key.
        if (!named && method !== "PATCH") continue;
        const headers = [bearing(session), ...(named ? [`X-Gateway-Balance: ${balance_id}`] : [])];
        const answer = await slowly(method, path, headers, () => undo(recovery_secret));
        expect(answer).toBe("400 invalid_request");
        const { data } = (await gateway.send("GET", "/v1/keys", { bearer: recovery_secret })).json;
        expect(data.map((key: { id: string; name: string | null }) => [key.id, key.name])).toEqual([
          [id, null],
        ]);
      }
    },
  );

  test("nor its session", async () => {
    const session = await signIn();
    const end = () => gateway.send("DELETE", "/v1/auth/sessions", { bearer: session });
    expect(await slowly("POST", "/v1/keys", [bearing(session)], end)).toBe("401 invalid_api_key");
  });
});
