import { expect } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/** Charged $0.005 an answer here; `reported` is what the host says of it. */
const answer = (reported?: number) =>
  json(chatText(["Yes."], { input: 0, output: 1_000, cost: reported }).whole);

const model = (id: string, host: string, cost = "") => `
  - id: test/${id}
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 0, output: 5 }
    routes: [{ host: ${host}, model: ${id}${cost} }]`;

/**
 * Several gateways of one store, or one. Each sells a model whose host says what it costs, one whose route says so, and one
 * of which nobody does.
 */
export async function marginsOf(gateways: number, store: string): Promise<void> {
  let reported = 0;
  const says = await startFakeHost(() => answer(reported));
  const silent = await startFakeHost(() => answer());
  const nodes = await Promise.all(
    Array.from({ length: gateways }, () =>
      open(`${store}
hosts:
  - { id: says, base_url: "${says.url}/v1", speaks: [chat.completions] }
  - { id: silent, base_url: "${silent.url}/v1", speaks: [chat.completions] }
models:${model("said", "says")}${model("known", "silent", ", cost: { input: 0, output: 4 }")}${model("unknown", "silent")}
`),
    ),
  );
  const [first] = nodes;
  const [one, other] = [await first!.key(10), await first!.key(10)];
  let sent = 0;
  const send = async (bearer: string, id: string) => {
    const messages = [{ role: "user", content: "Is it?" }];
    const node = nodes[sent++ % nodes.length]!;
    const { status } = await node.chat(bearer, { model: `test/${id}`, max_tokens: 1_000, messages });
    expect(status).toBe(200);
  };
  // Two a gateway.
  for (let n = 0; n < 2 * gateways; n++) {
    reported = 0.001;
    await send(one.key, "said");
    reported = 0.02;
    await send(other.key, "said");
    await send(one.key, "known");
    await send(one.key, "unknown");
  }
  const times = 2 * gateways;
  const usage = async () => (await first!.admin("/admin/usage?order=loss")).json;
  await until(async () => (await usage()).total.requests === 4 * times);
  const { total, balances, models, hosts } = await usage();
  const nano = (usd: number) => Math.round(usd * 1e9);
  const seen = (of: { host_cost_usd: number; margin_usd: number; requests_with_host_cost: number }) => [
    nano(of.host_cost_usd),
    nano(of.margin_usd),
    of.requests_with_host_cost,
  ];
  const sums = (cost: number, margin: number, requests: number) => [
    nano(cost * times),
    nano(margin * times),
    requests * times,
  ];
  expect(seen(total)).toEqual(sums(0.025, -0.01, 3));
  expect(balances.data.map((row: { balance_id: string }) => row.balance_id)).toEqual([
    other.balance_id,
    one.balance_id,
  ]);
  expect(balances.data.map(seen)).toEqual([sums(0.02, -0.015, 1), sums(0.005, 0.005, 2)]);
  expect(models.data.map(({ model: id }: { model: string }) => id)).toEqual([
    "test/said",
    "test/unknown",
    "test/known",
  ]);
  expect(seen(models.data[0])).toEqual(sums(0.021, -0.011, 2));
  expect(models.data[1]).toMatchObject({
    host_cost_usd: null,
    margin_usd: null,
    requests_with_host_cost: 0,
  });
  expect(seen(models.data[2])).toEqual(sums(0.004, 0.001, 1));
  expect(hosts.data.map(({ host }: { host: string }) => host)).toEqual(["says", "silent"]);

  const recorded = async () => (await first!.admin("/admin/events?type=margin.negative")).json.data;
  await until(async () => (await recorded()).length >= 2);
  const events = await recorded();
  expect(
    events.map(({ data }: { data: { model?: string; host?: string } }) => data.model ?? data.host).sort(),
  ).toEqual(["says", "test/said"]);
  for (const { data, balance_id } of events) {
    expect(balance_id).toBeNull();
    expect(data.margin_usd).toBeLessThanOrEqual(-0.01);
    expect(nano(data.margin_usd)).toBe(nano(data.charged_usd) - nano(data.host_cost_usd));
  }
  // A further loss of the same day is no further event.
  await send(other.key, "said");
  const before = (await usage()).total.requests;
  await until(async () => (await usage()).total.requests >= before);
  expect(await recorded()).toHaveLength(2);
  for (const path of ["/v1/receipts", "/v1/usage", "/v1/events"])
    expect((await first!.send("GET", path, { bearer: one.recovery_secret })).text).not.toContain("host_cost");
  for (const node of nodes) await node.close();
  await says.close();
  await silent.close();
}
