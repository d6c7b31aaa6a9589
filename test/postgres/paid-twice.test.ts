import { afterAll, beforeAll, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { LocalChain } from "../fakes/chain/chain.ts";
import { FakeFacilitator } from "../fakes/facilitator.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import type { OpenGateway } from "../gateway/open.ts";
import {
  balanceOf,
  openQuick,
  order,
  paidConfig,
  payer,
  paying,
  paymentsOf,
  somewhere,
} from "../payments/paid-gateway.ts";
import { ADMIN } from "../process/gateway.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("payments at two gateways", (cluster) => {
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

  test("one authorization that is presented to both at once is one payment; what is credited is spent at either", async () => {
    const facilitator = new FakeFacilitator(chain);
    const url = await cluster.database();
    const payTo = somewhere();
    const settledBy = `facilitator: "${facilitator.url}"`;
    const config = `${paidConfig({ chain, payTo, host: host.url, settledBy })}\nstore: "${url}"`;
    const both: OpenGateway[] = [];
    for (let node = 0; node < 2; node++) both.push(await openQuick(config, { GATEWAY_ADMIN_TOKEN: ADMIN }));
    const [one, other] = both as [OpenGateway, OpenGateway];
    const mine = await payer(one);
    const wallet = await chain.wallet(20);
    let header = "";
    const noted = (async (request: Request) => {
      header = request.headers.get("payment-signature") ?? "";
      return header === "" ? fetch(request) : new Response("{}");
    }) as unknown as typeof fetch;
    await order(one, mine.key, 2, paying(wallet, 5, noted));
    const present = (gateway: OpenGateway) =>
      order(gateway, mine.key, 2, fetch, { "payment-signature": header });
    const answers = await Promise.all([present(one), present(other), present(one), present(other)]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect([await chain.balanceOf(payTo), await balanceOf(other, mine.key)]).toEqual([2, 2]);
    expect(await paymentsOf(other, mine.key)).toHaveLength(1);
    expect([(await one.chat(mine.key)).status, (await other.chat(mine.key)).status]).toEqual([200, 200]);
    expect((await one.admin("/admin/ledger/audit")).json).toMatchObject({
      ok: true,
      credits_nano: "2000000000",
    });
    for (const gateway of both) await gateway.close();
    await facilitator.stop();
  });
});
