import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { json } from "../fakes/behaviours.ts";
import { LocalChain, USDC } from "../fakes/chain/chain.ts";
import { FakeFacilitator, MOODS } from "../fakes/facilitator.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "../process/gateway.ts";
import { paidConfig, paying, somewhere } from "./paid-gateway.ts";

/**
 * A gateway is killed right after each write that a payment makes, and the next one starts on what is on the disk: what
 * moved is credited, and once.
 */
let chain: LocalChain;
let host: FakeHost;
beforeAll(async () => {
  chain = await LocalChain.start();
  host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
});
afterAll(async () => {
  await host.close();
  chain.stop();
});

/** Where it is cut off: what is held back so that the gateway cannot get any further. */
const CUTS = {
  /** The order is durable; screening has no answer. */
  created: "oracle",
  /** Asking is durable; the facilitator has not heard yet. */
  submitted: "before",
  /** The money moved, and nobody has told. */
  "submitted, and it moved": "after",
  /** Seen in a block, without the confirmations. */
  confirming: "confirmations",
  /** The credit is durable, and its client has not heard. */
  credited: "nothing",
} as const;

for (const [write, cut] of Object.entries(CUTS)) {
  test(`killed once it is ${write}: credited once`, async () => {
    const facilitator = new FakeFacilitator(chain);
    const never = new Promise<Response>(() => {});
    let isCut = true;
    facilitator.mood = async (transfer, on) => {
      if (isCut && cut === "before") return never;
      if (isCut && cut === "after") {
        await on.carryOut(transfer);
        return never;
      }
      return MOODS.honest(transfer, on);
    };
    // A contract of which nobody hears, where screening is to wait: a node that does not answer.
    const slow = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        const body = await request.text();
        if (isCut && cut === "oracle" && body.includes("df592f7d")) return never;
        if (body.includes("df592f7d"))
          return Response.json({ jsonrpc: "2.0", id: JSON.parse(body).id, result: `0x${"0".repeat(64)}` });
        return fetch(chain.rpc, { method: "POST", body, headers: { "content-type": "application/json" } });
      },
    });
    const payTo = somewhere();
    const wallet = await chain.wallet(10);
    const folder = new Folder(
      paidConfig({
        chain: { ...chain, rpc: `http://127.0.0.1:${slow.port}` } as LocalChain,
        payTo,
        host: host.url,
        settledBy: `facilitator: "${facilitator.url}"`,
        network: `, wait_ms: 4000, confirmations: ${cut === "confirmations" ? 3 : 1}`,
        more: `  sanctions: { oracle: "${USDC}" }`,
      }),
    );
    let gateway = await GatewayProcess.start(folder);
    const send = async (path: string, bearer: string, body?: object) => {
      const headers = { authorization: `Bearer ${bearer}` };
      const method = body === undefined ? "GET" : "POST";
      const response = await fetch(gateway.url + path, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return (await response.json()) as Record<string, never>;
    };
    const made = await (await fetch(`${gateway.url}/v1/keys`, { method: "POST" })).json();
    await send("/v1/me/saved", made.recovery_secret, { key: made.key });
    void paying(wallet, 5)(`${gateway.url}/v1/credits`, {
      method: "POST",
      headers: { authorization: `Bearer ${made.key}` },
      body: JSON.stringify({ amount_usd: 3 }),
    }).catch(() => {});
    const db = new Database(join(folder.path, "data/gateway.sqlite"), { readonly: true });
    const wanted = write.split(",")[0]!;
    const isThere = () => {
      const row = db.query<{ state: string }, []>("SELECT state FROM payments").get();
      return row?.state === wanted;
    };
    await until(isThere);
    if (cut === "after") await until(async () => (await chain.balanceOf(payTo)) === 3);
    await gateway.kill();
    expect(isThere()).toBe(true);
    db.close();
    isCut = false;
    gateway = await GatewayProcess.start(folder);
    await until(async () => {
      if (cut === "confirmations") await chain.mine();
      return (await send("/v1/me", made.key)).balance_usd === 3;
    });
    expect(await chain.balanceOf(payTo)).toBe(3);
    const audit = await send("/admin/ledger/audit", ADMIN);
    expect([audit.ok, audit.credits_nano]).toEqual([true, "3000000000"] as never);
    await gateway.kill();
    await facilitator.stop();
    await slow.stop(true);
    folder.remove();
  });
}
