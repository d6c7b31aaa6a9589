import { until } from "../fakes/until.ts";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { ADMIN, Folder, GatewayProcess } from "./gateway.ts";

/**
 * Processes of one store, killed one after another while the credit of many balances falls: each balance's crossings, of the
 * line of low credit and of half of its key's day, have to reach the endpoint under one id each, whichever process noticed
 * them, sent them or died of them.
 *
 *     bun run test/process/webhook-storm.ts KILLS [STORE …]
 */
export async function webhookStorm(stores: readonly string[], kills: number): Promise<WebhookStorm> {
  const endpoint = new WebhookEndpoint(process.env.WEBHOOK_VERIFIER);
  const folders = stores.map((store) => new Folder(configOf(store, endpoint)));
  const gateways = await Promise.all(folders.map((folder) => GatewayProcess.start(folder)));
  const balances: string[] = [];
  try {
    for (let kill = 0; kill < kills; kill++) {
      const made = await Promise.all(Array.from({ length: BALANCES }, () => gateways[0]!.keyWith(1)));
      balances.push(...made.map(({ balance_id }) => balance_id));
      const spending = made.map(({ key }) => spend(gateways, key));
      await Bun.sleep(20 + ((kill * 37) % 200));
      const victim = kill % gateways.length;
      await gateways[victim]!.kill();
      gateways[victim] = await GatewayProcess.start(folders[victim]!);
      await Promise.all(spending);
    }
    // What is missing by then is reported.
    await until(() => crossings(endpoint).size >= balances.length * CROSSED.length).catch(() => {});
    const { json } = await gateways[0]!.get("/admin/ledger/audit", ADMIN);
    return reportOf(balances, endpoint, json.drifts.length);
  } finally {
    for (const gateway of gateways) await gateway.stop();
    for (const folder of folders) folder.remove();
    await endpoint.stop();
  }
}

const BALANCES = 20;

const configOf = (store: string, { url, secret }: WebhookEndpoint): string => `
store: ${store}
low_credit_usd: 0.9999
defaults: { accountless: { daily_limit_usd: 0.0003 } }
setup: { accountless_keys_per_address_per_hour: 1000000 }
webhooks: { endpoints: [{ url: "${url}", secret: "${secret}", kinds: [credit.low, limit.reached] }] }
`;

/** Until both lines are crossed for sure: credit's, and half of the key's day, at whichever process answers. */
async function spend(gateways: readonly GatewayProcess[], key: string): Promise<void> {
  const body = {
    model: "sim/echo",
    max_tokens: 10,
    messages: [{ role: "user", content: "word ".repeat(200) }],
  };
  for (let served = 0, tries = 0; served < REQUESTS && tries < MAX_TRIES; tries++) {
    const gateway = gateways[tries % gateways.length]!;
    const answer = await gateway.post("/v1/chat/completions", body, key).catch(() => null);
    if (answer?.status === 200) served += 1;
    else await Bun.sleep(20);
  }
}

const REQUESTS = 8;
const MAX_TRIES = 2_000;

function reportOf(balances: readonly string[], endpoint: WebhookEndpoint, drifts: number): WebhookStorm {
  const found = crossings(endpoint);
  const expected = balances.flatMap((balance) => CROSSED.map((kind) => `${kind} ${balance}`));
  return {
    balances: balances.length,
    missing: expected.filter((crossing) => !found.has(crossing)),
    withSeveralIds: [...found.values()].filter(({ size }) => size > 1).length,
    sentAgain: endpoint.received.length - [...found.values()].reduce((sum, { size }) => sum + size, 0),
    drifts,
  };
}

const CROSSED = ["credit.low", "limit.reached 50"];

/** By kind, threshold and balance: the ids that arrived. */
function crossings({ received }: WebhookEndpoint): ReadonlyMap<string, ReadonlySet<string>> {
  const ids = new Map<string, Set<string>>();
  for (const { id, type, data } of received) {
    const { threshold_percent: percent } = data;
    const name = `${type}${percent === undefined ? "" : ` ${percent}`} ${data.balance_id}`;
    ids.set(name, (ids.get(name) ?? new Set()).add(id));
  }
  return ids;
}

interface WebhookStorm {
  readonly balances: number;
  readonly missing: readonly string[];
  readonly withSeveralIds: number;
  /** Deliveries beyond the first of an event. */
  readonly sentAgain: number;
  readonly drifts: number;
}

if (import.meta.main) {
  const [kills = "30", ...stores] = process.argv.slice(2);
  console.log(JSON.stringify(await webhookStorm(stores.length === 0 ? ["sqlite"] : stores, Number(kills))));
}
