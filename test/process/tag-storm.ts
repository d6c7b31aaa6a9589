import { sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "./gateway.ts";

/**
 * Processes of one store, killed one after another in the middle of streams of a few end users who have a cap each: after each
 * kill, nobody has spent more than the cap, and what usage and the budget say of each is the sum of their receipts.
 *
 *     bun run test/process/tag-storm.ts KILLS [STORE …]
 */
export async function tagStorm(stores: readonly string[], kills: number): Promise<TagStorm> {
  /** Every other stream stops in its middle until the kill of its round. */
  let killed: Gate<void> = gate();
  let arrived = 0;
  const { events } = chatText(Array(OUTPUT_TOKENS).fill("word "), { input: 10, output: OUTPUT_TOKENS });
  const host = await startFakeHost(() => {
    const stops = arrived++ % 2 === 0;
    const { passed } = killed;
    return sse(events, { before: (n) => (stops && n === OUTPUT_TOKENS / 2 ? passed : null) });
  });
  const folders = stores.map((store) => new Folder(configOf(store, host)));
  const gateways = await Promise.all(folders.map((folder) => GatewayProcess.start(folder)));
  const report = { kills, served: 0, refused: 0, crossed: [] as string[], wrong: [] as string[], drifts: 0 };
  let customer: Customer | null = null;
  try {
    for (let kill = 0; kill < kills; kill++) {
      if (customer === null || kill % KILLS_EACH === 0) customer = await customerAt(gateways[0]!);
      killed = gate();
      const { key } = customer;
      const answers = Array.from({ length: STREAMS }, (_, at) =>
        stream(gateways[at % gateways.length]!, key, `user=u${at % USERS}`),
      );
      const victim = kill % gateways.length;
      // Half of them are there, with others at another point each time.
      let answering = 0;
      for (const one of answers) void one.answering.then(() => answering++).catch(() => {});
      await until(() => answering >= STREAMS / 2);
      await Bun.sleep((kill * 37) % 150);
      await gateways[victim]!.kill();
      killed.open();
      gateways[victim] = await GatewayProcess.start(folders[victim]!);
      for (const { status } of await Promise.all(answers.map(({ ended }) => ended))) {
        if (status === 200) report.served += 1;
        if (status === 429) report.refused += 1;
      }
      const found = await settled(gateways[(victim + 1) % gateways.length]!, customer);
      report.crossed.push(...found.crossed.map((user) => `kill ${kill}: ${user}`));
      report.wrong.push(...found.wrong.map((user) => `kill ${kill}: ${user}`));
    }
    report.drifts = (await gateways[0]!.audit()).json.drifts.length;
    return report;
  } finally {
    killed.open();
    for (const gateway of gateways) await gateway.stop();
    for (const folder of folders) folder.remove();
    await host.close();
  }
}

const USERS = 4;
const STREAMS = 48;
const OUTPUT_TOKENS = 200;
/** The caps of a customer's end users are reached after some of them. */
const KILLS_EACH = 5;
const CAP_USD = 0.04;

const configOf = (store: string, { port }: FakeHost): string =>
  simpleConfig(
    [port],
    `store: ${store}
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }`,
  );

interface Customer {
  readonly key: string;
  readonly balance: string;
  readonly secret: string;
}

async function customerAt(gateway: GatewayProcess): Promise<Customer> {
  const { balance_id: balance, recovery_secret: secret } = await gateway.keyWith(100);
  const budget = { name: "each", cap_usd: CAP_USD, window: "total", per: "tag:user" };
  await gateway.post("/v1/budgets", budget, secret);
  const { json } = await gateway.post("/v1/keys", { budget: "each" }, secret);
  return { key: json.key, balance, secret };
}

/** `answering` once the first byte is here, `ended` once the stream is over or broken; a status of null: there was no answer. */
function stream(gateway: GatewayProcess, key: string, tags: string) {
  const answering = fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-gateway-tags": tags,
    },
    body: JSON.stringify({
      model: "test/model",
      stream: true,
      max_tokens: 400,
      messages: [{ role: "user", content: "Hello" }],
    }),
  });
  const ended = answering.then(
    async (response) => {
      await response.text().catch(() => null);
      return { status: response.status };
    },
    () => ({ status: null }),
  );
  return { answering, ended };
}

/** Once nothing is held any more; what is wrong by then is reported. */
async function settled(gateway: GatewayProcess, customer: Customer): Promise<Found> {
  let found: Found = { crossed: [], wrong: ["nothing was read"] };
  await until(async () => {
    const { json } = await gateway.get(`/admin/balances/${customer.balance}`, ADMIN);
    found = await compare(gateway, customer, nano(100) - nano(json.balance_usd));
    return json.held_usd === 0 && found.wrong.length === 0;
  }).catch(() => {});
  return found;
}

interface Found {
  readonly crossed: readonly string[];
  readonly wrong: readonly string[];
}

async function compare(
  gateway: GatewayProcess,
  { key, balance, secret }: Customer,
  spent: number,
): Promise<Found> {
  const { groups } = (await gateway.get("/v1/usage?group_by=tag:user", key)).json;
  const { values } = (await gateway.get("/v1/budgets/each", secret)).json;
  const receipts = await receiptsOf(gateway, balance);
  const costs = new Map<string, number>();
  for (const { tags, cost_usd } of receipts)
    costs.set(tags.user, (costs.get(tags.user) ?? 0) + nano(cost_usd));
  const amountIn = (rows: readonly Row[], amount: "cost_usd" | "used_usd", user: string) =>
    nano(rows.find(({ value }) => value === user)?.[amount] ?? 0);
  const users = Array.from({ length: USERS }, (_, at) => `u${at}`);
  const wrong = users.flatMap((user) => {
    const sums = [
      costs.get(user) ?? 0,
      amountIn(groups, "cost_usd", user),
      amountIn(values, "used_usd", user),
    ];
    return new Set(sums).size === 1 ? [] : [`${user}: receipts, usage and budget say ${sums.join(", ")}`];
  });
  const sum = [...costs.values()].reduce((all, one) => all + one, 0);
  if (sum !== spent) wrong.push(`receipts say ${sum}, the balance ${spent}`);
  return { wrong, crossed: users.filter((user) => (costs.get(user) ?? 0) > nano(CAP_USD)) };
}

interface Row {
  readonly value: string;
  readonly cost_usd?: number;
  readonly used_usd?: number;
}

async function receiptsOf(gateway: GatewayProcess, balance: string) {
  const all: { id: string; tags: { user: string }; cost_usd: number }[] = [];
  for (let hasMore = true; hasMore; ) {
    const before = all.length === 0 ? "" : `&before=${all.at(-1)!.id}`;
    const { json } = await gateway.get(`/admin/balances/${balance}/receipts?limit=200${before}`, ADMIN);
    all.push(...json.data);
    hasMore = json.has_more;
  }
  return all;
}

const nano = (usd: number): number => Math.round(usd * 1e9);

interface TagStorm {
  readonly kills: number;
  readonly served: number;
  readonly refused: number;
  /** End users beyond their cap. */
  readonly crossed: readonly string[];
  /** Where the sums differ. */
  readonly wrong: readonly string[];
  readonly drifts: number;
}

if (import.meta.main) {
  const [kills = "50", ...stores] = process.argv.slice(2);
  console.log(JSON.stringify(await tagStorm(stores.length === 0 ? ["sqlite"] : stores, Number(kills))));
}
