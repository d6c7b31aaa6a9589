import { expect, test } from "bun:test";
import { until } from "../../fakes/until.ts";
import { listIn, listsAt, sumOfListed } from "../../gateway/list-charges.ts";
import { ADMIN, Folder, GatewayProcess } from "../../process/gateway.ts";
import { rounds } from "../../rounds.ts";

const fileAt = (round: number): string => `
workers: 2
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }
models:
  - id: new/model
    context_length: 8192
    max_output_tokens: 100
    price: { input: 1, output: 10 }
    routes: [{ host: sim, model: echo }]
${listsAt(round)}`;
const BODY = {
  model: "new/model",
  stream: true,
  max_tokens: 60,
  messages: [{ role: "user", content: "one two three four" }],
};
const REQUESTS = rounds(1_000, 2_000, 10_000);
const AT_ONCE = 20;

test(`each of ${REQUESTS} streams, while lists change at two workers, is charged by one version of one list`, async () => {
  const folder = new Folder(fileAt(0));
  const gateway = await GatewayProcess.start(folder);
  try {
    const { key, balance_id } = await gateway.keyWith(100);
    const path = `/admin/balances/${balance_id}`;
    const ids: string[] = [];
    for (let round = 1; ids.length < REQUESTS; round++) {
      folder.configure(fileAt(round));
      const streams = Array.from({ length: AT_ONCE }, () => gateway.post("/v1/chat/completions", BODY, key));
      const changes = [
        gateway.post("/admin/reload", {}, ADMIN),
        gateway.send("PATCH", path, { price_list: listIn(round) }, ADMIN),
      ];
      const answers = await Promise.all(streams);
      expect(answers.map(({ status }) => status)).toEqual(Array(AT_ONCE).fill(200));
      ids.push(...answers.map(({ headers }) => headers.get("x-gateway-receipt")!));
      expect((await Promise.all(changes)).map(({ status }) => status)).toEqual([200, 200]);
    }
    const receipts: Parameters<typeof sumOfListed>[0][number][] = [];
    for (const id of ids)
      await until(async () => {
        const { status, json } = await gateway.get(`/v1/receipts/${id}`, key);
        if (status === 200) receipts.push(json);
        return status === 200;
      });
    const sumNano = sumOfListed(receipts);
    await until(async () => {
      const { json: balance } = await gateway.get(path, ADMIN);
      return Math.round((100 - balance.balance_usd) * 1e9) === sumNano;
    });
    expect((await gateway.audit()).json.ok).toBe(true);
  } finally {
    await gateway.stop();
    folder.remove();
  }
}, 300_000);
