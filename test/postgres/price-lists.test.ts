import { afterAll, beforeAll, expect, test } from "bun:test";
import { sse } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { listIn, listsAt, sumOfListed } from "../gateway/list-charges.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { rounds } from "../rounds.ts";
import { describeOnPostgres } from "./fixture.ts";

const REQUESTS = rounds(1_000, 2_000, 10_000);
const AT_ONCE = 20;

describeOnPostgres("two gateways on one PostgreSQL", (cluster) => {
  let host: FakeHost;
  let nodes: OpenGateway[];
  let fileAt: (round: number) => string;
  /** Each stream stops in its middle until the prices of its round have changed. */
  let changing = Promise.resolve();

  beforeAll(async () => {
    const { events } = chatText(["a", "b"], { input: 11, output: 3 });
    host = await startFakeHost(() => sse(events, { before: (n) => (n === 2 ? changing : null) }));
    const store = await cluster.database();
    fileAt = (round) => `
store: ${store}
hosts: [{ id: h, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:
  - id: new/model
    context_length: 8192
    max_output_tokens: 100
    price: { input: 1, output: 10 }
    routes: [{ host: h, model: m }]
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }
${listsAt(round)}`;
    nodes = await Promise.all([0, 1].map(() => open(fileAt(0))));
  });
  afterAll(async () => {
    for (const node of nodes ?? []) await node.close();
    await host.close();
  });

  test(`each of ${REQUESTS} streams, while lists change in its middle, is charged by one version of one list`, async () => {
    const { key, balance_id } = await nodes[0]!.key(100);
    const path = `/admin/balances/${balance_id}`;
    const ids: string[] = [];
    for (let round = 1; ids.length < REQUESTS; round++) {
      for (const { folder } of nodes) folder.configure(fileAt(round));
      const { promise, resolve } = Promise.withResolvers<void>();
      changing = promise;
      const streams = Array.from({ length: AT_ONCE }, (_, at) =>
        nodes[at % 2]!.chat(key, { model: "new/model", stream: true }),
      );
      const changed = await Promise.all([
        ...nodes.map((node) => node.admin("/admin/reload", {})),
        nodes[round % 2]!.send("PATCH", path, { bearer: ADMIN, json: { price_list: listIn(round) } }),
      ]);
      resolve();
      expect(changed.map(({ status }) => status)).toEqual([200, 200, 200]);
      const answers = await Promise.all(streams);
      expect(answers.map(({ status }) => status)).toEqual(Array(AT_ONCE).fill(200));
      ids.push(...answers.map(({ headers }) => headers.get("x-gateway-receipt")!));
    }
    const receipts: Parameters<typeof sumOfListed>[0][number][] = [];
    for (const id of ids)
      await until(async () => {
        const { status, json } = await nodes[0]!.send("GET", `/v1/receipts/${id}`, { bearer: key });
        if (status === 200) receipts.push(json);
        return status === 200;
      });
    const sumNano = sumOfListed(receipts);
    await until(async () => {
      const { json: balance } = await nodes[1]!.admin(path);
      return balance.held_usd === 0 && Math.round((100 - balance.balance_usd) * 1e9) === sumNano;
    });
    expect((await nodes[0]!.admin("/admin/ledger/audit")).json.ok).toBe(true);
  }, 300_000);
});
