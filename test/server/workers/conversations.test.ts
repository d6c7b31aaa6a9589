import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../../src/units/clock.ts";
import { json, status } from "../../fakes/behaviours.ts";
import { startFakeHost } from "../../fakes/host.ts";
import { type CacheUse, cachingHost, PromptCache } from "../../fakes/prompt-cache.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { Folder, GatewayProcess } from "../../process/gateway.ts";

/** Three workers on SQLite; each request comes on a connection of its own, so the kernel picks its worker again. */
const uses: CacheUse[] = [];

const well = json(chatText(["ok"], { input: 10, output: 1 }).whole);
const hosts = await Promise.all([
  startFakeHost((_, n) => (n === 0 ? status(503) : well)),
  startFakeHost(() => well),
  ...[0, 1].map(() => startFakeHost(cachingHost(new PromptCache(systemClock), uses))),
]);
const host = (at: number, rest: string) => `  - { id: h${at}, base_url: "${hosts[at]!.url}/v1", ${rest} }`;
const model = (id: string, order: string, routes: readonly number[]) =>
  `  - { id: test/${id}, context_length: 200000, max_output_tokens: 1000, order: ${order}, price: { input: 1, output: 1 }, routes: [${routes.map((at) => `{ host: h${at}, model: m }`).join(", ")}] }`;
const folder = new Folder(`
hosts:
${[0, 1].map((at) => host(at, "speaks: [chat.completions]")).join("\n")}
${[2, 3].map((at) => host(at, "speaks: [messages], auto_cache: true")).join("\n")}
models:
${model("moved", "listed", [0, 1])}
${model("cached", "price", [2, 3])}
workers: 3
defaults: { accountless: { rpm_limit: null, tpm_limit: null } }
`);
const gateway = await GatewayProcess.start(folder);
const key = (await gateway.keyWith(10)).key;
afterAll(async () => {
  await gateway.kill();
  folder.remove();
  await Promise.all(hosts.map((host) => host.close()));
});

async function send(body: object, session: string): Promise<void> {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, connection: "close", "x-session-id": session },
    body: JSON.stringify({ max_tokens: 10, ...body }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
}

test("a conversation that left its first host is at the same one for every worker", async () => {
  const messages = [{ role: "user", content: "Hello" }];
  const turn = async (session: string) => {
    const before = hosts[1]!.requests.length;
    await send({ model: "test/moved", messages }, session);
    return hosts[1]!.requests.length > before;
  };
  expect(await turn("moved")).toBe(true);
  await until(async () => {
    for (let time = 0; time < 12; time++) if (!(await turn("moved"))) return false;
    return true;
  });
  expect(await turn("new")).toBe(false);
}, 600_000);

test("a chat with 20,000 tokens of instructions reads them from one host's cache from its second turn on", async () => {
  const messages = [
    { role: "system", content: "Every word of this counts. ".repeat(3_000) },
    { role: "user", content: "Question 0?" },
  ];
  for (let turn = 1; turn <= 10; turn++) {
    await send({ model: "test/cached", messages }, "chat");
    messages.push({ role: "assistant", content: "Fine." }, { role: "user", content: `Question ${turn}?` });
  }
  const shares = uses.map(({ read, written, rest }) => read / (read + written + rest));
  expect(shares[0]).toBe(0);
  for (const share of shares.slice(1)) expect(share).toBeGreaterThan(0.99);
}, 600_000);
