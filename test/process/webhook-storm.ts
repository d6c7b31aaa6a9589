import { until } from "../fakes/until.ts";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { ADMIN, Folder, GatewayProcess } from "./gateway.ts";

/**
 * Processes of one store, killed one after another while the credit of many balances falls: each balance's crossing has to
 * reach the endpoint under one id, whichever process noticed it, sent it or died of it.
 *
 *     bun run test/process/webhook-storm.ts KILLS [STORE …]
 */
export async function webhookStorm(stores: readonly string[], kills: number): Promise<WebhookStorm> {
  const endpoint = new WebhookEndpoint();
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
    await until(
      () => new Set(endpoint.of("credit.low").map(({ data }) => data.balance_id)).size >= balances.length,
    );
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
low_credit_usd: 0.9998
setup: { accountless_keys_per_address_per_hour: 1000000 }
webhooks: { endpoints: [{ url: "${url}", secret: "${secret}", kinds: [credit.low] }] }
`;

/** Until the line is crossed for sure, at whichever process answers. */
async function spend(gateways: readonly GatewayProcess[], key: string): Promise<void> {
  const body = { model: "sim/echo", messages: [{ role: "user", content: "word ".repeat(200) }] };
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
  const ids = new Map<string, Set<string>>();
  for (const { id, data } of endpoint.received) {
    const balance = String(data.balance_id);
    ids.set(balance, (ids.get(balance) ?? new Set()).add(id));
  }
  return {
    balances: balances.length,
    missing: balances.filter((balance) => !ids.has(balance)).length,
    withSeveralIds: [...ids.values()].filter(({ size }) => size > 1).length,
    sentAgain: endpoint.received.length - [...ids.values()].reduce((sum, { size }) => sum + size, 0),
    drifts,
  };
}

interface WebhookStorm {
  readonly balances: number;
  readonly missing: number;
  readonly withSeveralIds: number;
  /** Deliveries beyond the first of an event. */
  readonly sentAgain: number;
  readonly drifts: number;
}

if (import.meta.main) {
  const [kills = "30", ...stores] = process.argv.slice(2);
  console.log(JSON.stringify(await webhookStorm(stores.length === 0 ? ["sqlite"] : stores, Number(kills))));
}
