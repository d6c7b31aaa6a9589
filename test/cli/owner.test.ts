import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { gateway as command } from "./command.ts";

const gateway = await open("");
afterAll(() => gateway.close());

const as = (owner: string, ...args: string[]) =>
  command(["owner", ...args], { GATEWAY_URL: gateway.url, GATEWAY_OWNER: owner });
const status = async (bearer: string) => (await gateway.send("GET", "/v1/me", { bearer })).status;

async function enter(): Promise<{ session: string; account_id: string }> {
  const outbox = join(gateway.gateway.folder.path, "outbox");
  const mail = readFileSync(join(outbox, readdirSync(outbox).sort().at(-1)!), "utf8");
  const token = /#signin=(\S+)/.exec(mail)![1]!;
  return (await gateway.send("POST", "/v1/auth/email/verify", { json: { token } })).json;
}
async function signIn(email: string) {
  await gateway.send("POST", "/v1/auth/email", { json: { email } });
  return enter();
}
async function claimed(email: string) {
  const made = await gateway.key(0);
  await gateway.send("POST", "/v1/me/claim", { bearer: made.key, json: { email } });
  return { ...made, ...(await enter()) };
}

test("a secret that was copied with the line below it is said to be none, and is not sent", async () => {
  const { recovery_secret } = await gateway.key(0);
  const { err, code } = await as(`${recovery_secret}\n${recovery_secret}`, "recovery");
  expect([code, err.includes("line break"), err.includes(recovery_secret)]).toEqual([2, true, false]);
});

test("the recovery secret is replaced; the new one is shown once and the old one has ended", async () => {
  const { recovery_secret } = await gateway.key(0);
  const { out, code } = await as(recovery_secret, "recovery");
  expect(code).toBe(0);
  expect([await status(recovery_secret), await status(/^or-rec-\S+/m.exec(out)![0])]).toEqual([401, 200]);
  expect((await as(recovery_secret, "recovery")).code).toBe(3);
});

test("a session replaces that of the balance that it names, and a claim is undone with the one from before", async () => {
  const { session, balance_id, recovery_secret } = await claimed("kim@example.com");
  const made = JSON.parse((await as(session, "recovery", "--balance", balance_id, "--json")).out);
  expect(made.balance_id).toBe(balance_id);
  const undone = await as(recovery_secret, "undo-claim");
  expect([undone.code, undone.out]).toEqual([
    0,
    expect.stringContaining(`${balance_id} belongs to no account`),
  ]);
  expect([await status(made.recovery_secret), await status(recovery_secret)]).toEqual([401, 200]);
});

test("sessions are listed and ended, one or all", async () => {
  const [one, other] = [await signIn("lee@example.com"), await signIn("lee@example.com")];
  const { data } = JSON.parse((await as(one.session, "sessions", "--json")).out);
  const { id } = data.find(({ current }: { current: boolean }) => !current);
  expect((await as(one.session, "sessions")).out).toContain("this one");
  expect((await as(one.session, "end-session", id)).out).toBe(`${id} has ended.\n`);
  expect([await status(other.session), await status(one.session)]).toEqual([401, 200]);
  expect((await as(one.session, "end-session", "all")).code).toBe(0);
  expect(await status(one.session)).toBe(401);
});

test("an account is deleted only by its id, and says what ended and what went back", async () => {
  const { session, account_id, balance_id, recovery_secret } = await claimed("sam@example.com");
  expect((await as(session, "delete", balance_id)).code).toBe(3);
  const { out, code } = await as(session, "delete", account_id);
  expect(code).toBe(0);
  expect(out).toContain(`claimed lately: ${balance_id}`);
  expect([await status(session), await status(recovery_secret)]).toEqual([401, 200]);
});

test("the operator detaches a balance from its account", async () => {
  const { session, account_id, balance_id } = await claimed("pat@example.com");
  const { out, code } = await command(["detach", account_id, balance_id], {
    GATEWAY_URL: gateway.url,
    GATEWAY_ADMIN_TOKEN: ADMIN,
  });
  expect([code, out]).toEqual([0, expect.stringContaining(`${balance_id} belongs to no account`)]);
  const me = (await gateway.send("GET", "/v1/me", { bearer: session })).json;
  expect(me.account.balances).not.toContain(balance_id);
});

test("without an owner's credential nothing is asked", async () => {
  const { err, code } = await command(["owner", "recovery"], { GATEWAY_URL: gateway.url });
  expect([code, err]).toEqual([2, expect.stringContaining("GATEWAY_OWNER")]);
});

test("an owner says below which credit to be notified; `default` is the gateway's own amount", async () => {
  const { recovery_secret, balance_id } = await gateway.key(0);
  const set = (amount: string) => as(recovery_secret, "low-credit", amount);
  expect((await set("12.50")).out).toBe(
    `The owner of ${balance_id} is notified when its credit falls below 12.5 USD.\n`,
  );
  expect((await set("0")).out).toContain("is not notified");
  expect((await set("default")).out).toContain("low_credit_usd holds");
  for (const wrong of ["-1", "much", "0.0000000001", "9000000"]) expect((await set(wrong)).code).toBe(2);
  const operator = (...args: string[]) =>
    command(["low-credit", ...args, "--json"], { GATEWAY_URL: gateway.url, GATEWAY_ADMIN_TOKEN: ADMIN });
  expect(JSON.parse((await operator(balance_id, "3")).out).low_credit_usd).toBe(3);
  expect((await operator("bal_nobody", "3")).code).toBe(3);
});

test("keys are listed by name and state", async () => {
  const { recovery_secret, id } = await gateway.key(0, { name: "billing" });
  await gateway.send("POST", "/v1/keys", { bearer: recovery_secret, json: { name: "search" } });
  const list = async (...args: string[]) => {
    const { out } = await command(["keys", "list", ...args, "--json"], {
      GATEWAY_URL: gateway.url,
      GATEWAY_OWNER: recovery_secret,
    });
    return JSON.parse(out).data.map(({ name }: { name: string }) => name);
  };
  expect(await list("--search", "BILL")).toEqual(["billing"]);
  await gateway.send("DELETE", `/v1/keys/${id}`, { bearer: recovery_secret });
  expect([await list("--state", "active"), await list("--state", "ended")]).toEqual([
    ["search"],
    ["billing"],
  ]);
});

test("a session lists the keys of the balance that it names, and of all without one", async () => {
  const { session, balance_id, id } = await claimed("mia@example.com");
  const own = (await gateway.send("POST", "/v1/keys", { bearer: session, json: {} })).json;
  expect(own.balance_id).not.toBe(balance_id);
  const list = async (...args: string[]) => {
    const { out } = await command(["keys", "list", ...args, "--json"], {
      GATEWAY_URL: gateway.url,
      GATEWAY_OWNER: session,
    });
    return JSON.parse(out).data.map((key: { id: string }) => key.id);
  };
  expect(await list(balance_id)).toEqual([id]);
  expect(await list(own.balance_id)).toEqual([own.id]);
  expect((await list()).toSorted()).toEqual([id, own.id].toSorted());
});
