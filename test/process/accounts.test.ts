import { afterEach, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { privateKeyToAccount } from "viem/accounts";
import { MailServer } from "../fakes/mail-server.ts";
import { ADMIN, Folder, GatewayProcess } from "./gateway.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function world() {
  const server = await MailServer.start();
  closing.push(() => server.stop());
  const folder = new Folder(`smtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }\n`);
  closing.push(() => folder.remove());
  const tokenOf = async (number: number) =>
    /#signin=(or-link-\w+)/.exec((await server.mail(number)).text)![1]!;
  return { folder, tokenOf };
}

test("what was answered outlives a kill: accounts, claims, sessions, used links, suspensions", async () => {
  const { folder, tokenOf } = await world();
  const before = await GatewayProcess.start(folder);
  const made = await before.keyWith(0);
  const claimed = await before.post("/v1/me/claim", { email: "kim@example.com" }, made.key);
  const token = await tokenOf(1);
  const { session } = (await before.post("/v1/auth/email/verify", { token })).json;
  const ended = await before.keyWith(0);
  await before.post("/v1/me/claim", { email: "lee@example.com" }, ended.key);
  const lee = (await before.post("/v1/auth/email/verify", { token: await tokenOf(2) })).json;
  expect((await before.post("/v1/auth/logout", undefined, lee.session)).status).toBe(204);
  const why = { reason: "chargeback", by: "kim", note: "case 7" };
  await before.post(`/admin/accounts/${lee.account_id}/suspend`, why, ADMIN);
  await before.kill();

  const after = await GatewayProcess.start(folder);
  closing.push(() => after.stop());
  const me = (await after.get("/v1/me", session)).json;
  expect(me.account).toMatchObject({
    id: claimed.json.account_id,
    balances: [me.balance_id, made.balance_id],
  });
  expect((await after.post("/v1/auth/email/verify", { token })).status).toBe(400);
  expect((await after.post("/v1/me/claim", { email: "new@example.com" }, made.key)).status).toBe(400);
  expect((await after.get("/v1/me", lee.session)).status).toBe(401);
  expect((await after.get("/v1/me", ended.key)).json.suspended).toBe("chargeback");
  const { data } = (await after.get(`/admin/accounts/${lee.account_id}/suspensions`, ADMIN)).json;
  expect(data).toMatchObject([why]);
});

test("no secret is on the disk or in the log in plaintext", async () => {
  const { folder, tokenOf } = await world();
  const gateway = await GatewayProcess.start(folder);
  const { key, recovery_secret, id } = await gateway.keyWith(1);
  await gateway.post("/v1/me/claim", { email: "kim@example.com" }, key);
  const used = await tokenOf(1);
  const { session } = (await gateway.post("/v1/auth/email/verify", { token: used })).json;
  await gateway.post("/v1/auth/email", { email: "kim@example.com" });
  const unused = await tokenOf(2);
  const wallet = privateKeyToAccount(`0x${"42".repeat(32)}`);
  const { message } = (await gateway.post("/v1/auth/wallet", { address: wallet.address, chain_id: 1 })).json;
  const signature = await wallet.signMessage({ message });
  const walletSession = (await gateway.post("/v1/auth/wallet/verify", { message, signature })).json.session;
  const second = (await gateway.post("/v1/keys", {}, session)).json.key;
  const third = (await gateway.post(`/v1/keys/${id}/rotate`, undefined, recovery_secret)).json.key;
  const prompt = "a prompt that nobody else writes";
  const chat = { model: "sim/echo", max_tokens: 20, messages: [{ role: "user", content: prompt }] };
  expect((await gateway.post("/v1/chat/completions", chat, third)).status).toBe(200);
  for (const wrong of [`or-sess-${"2".repeat(44)}`, `or-rec-${"2".repeat(44)}`])
    await gateway.get("/v1/me", wrong);
  await gateway.stop();

  const secrets = [
    key,
    recovery_secret,
    session,
    walletSession,
    used,
    unused,
    second,
    third,
    signature,
    prompt,
  ];
  const data = folder.env.GATEWAY_DATA!;
  const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.some(({ name }) => name === "gateway.sqlite")).toBe(true);
  const found = files.flatMap(({ parentPath, name }) => {
    const bytes = readFileSync(join(parentPath, name));
    return secrets.filter((secret) => bytes.includes(secret)).map((secret) => `${name}: ${secret}`);
  });
  expect(found).toEqual([]);
  const log = await gateway.stderr();
  expect(secrets.filter((secret) => log.includes(secret))).toEqual([]);
  expect(log).not.toContain("kim@example.com");
});
