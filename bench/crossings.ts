/**
 * What it costs when many balances cross a line at once: CPU of the gateway that records two events for each (credit falls below
 * the line, half of a key's day is spent), next to one that records none, and then of sending them, as long as that lasts.
 *
 *     bun run bench crossings [--balances 10000]
 */
import { until } from "../test/fakes/until.ts";
import { WebhookEndpoint } from "../test/fakes/webhook-endpoint.ts";
import { Folder, GatewayProcess } from "../test/process/gateway.ts";
import { numberOption } from "./options.ts";
import { cpuUsOf } from "./processes.ts";

export interface CrossingCost {
  readonly events: number;
  /** CPU beyond that of a gateway without endpoints, µs. */
  readonly recordingUs: number;
  readonly sendingUs: number;
  readonly sendingMs: number;
  /** CPU of both while it lasts, in percent of a core. */
  readonly percent: number;
}

export async function benchCrossings(balances: number): Promise<CrossingCost> {
  const endpoint = new WebhookEndpoint();
  // It wants no more: what is recorded waits until the next start.
  endpoint.refusals.push(...Array(1_000).fill(410));
  const folders = [new Folder(configOf(endpoint)), new Folder(PLAIN)];
  const gateways = await Promise.all(folders.map((folder) => GatewayProcess.start(folder)));
  try {
    const spent = [0, 0];
    for (let done = 0; done < balances; done += BATCH) {
      // In turns, so that both have the same neighbours.
      for (const [at, gateway] of gateways.entries()) {
        const made = await Promise.all(Array.from({ length: BATCH }, () => gateway.keyWith(1)));
        const before = cpuUsOf(gateway.pid);
        await Promise.all(made.map(({ key }) => gateway.post("/v1/chat/completions", BODY, key)));
        // Ends are booked a moment later.
        await Bun.sleep(300);
        spent[at]! += cpuUsOf(gateway.pid) - before;
      }
    }
    for (const gateway of gateways) await gateway.stop();
    endpoint.refusals.length = 0;
    gateways[0] = await GatewayProcess.start(folders[0]!);
    await until(() => endpoint.received.length > FIRST);
    const { length } = endpoint.received;
    const [beganMs, before] = [performance.now(), cpuUsOf(gateways[0].pid)];
    const events = Math.ceil(balances / BATCH) * BATCH * 2;
    for (let seen = length; seen < events; ) {
      await until(() => endpoint.received.length > seen);
      seen = endpoint.received.length;
    }
    const share = events / (events - length);
    const sendingMs = (performance.now() - beganMs) * share;
    const sendingUs = (cpuUsOf(gateways[0].pid) - before) * share;
    const recordingUs = spent[0]! - spent[1]!;
    const percent = (100 * (recordingUs + sendingUs)) / (1_000 * sendingMs);
    return { events, recordingUs, sendingUs, sendingMs, percent };
  } finally {
    for (const gateway of gateways) await gateway.stop();
    for (const folder of folders) folder.remove();
    await endpoint.stop();
  }
}

const BATCH = 100;
/** A process that has just started compiles what it runs. */
const FIRST = 200;
const BODY = {
  model: "sim/echo",
  max_tokens: 10,
  messages: [{ role: "user", content: "word ".repeat(200) }],
};

const PLAIN = `
setup: { accountless_keys_per_address_per_hour: 1000000 }
defaults: { accountless: { daily_limit_usd: 0.00004 } }
`;

const configOf = ({ secret, url }: WebhookEndpoint): string => `${PLAIN}
low_credit_usd: 1
webhooks: { endpoints: [{ url: "${url}", secret: "${secret}", kinds: [credit.low, limit.reached] }] }
`;

if (import.meta.main) console.log(await benchCrossings(numberOption("balances", 10_000)));
