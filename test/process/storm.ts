import { start } from "../../bench/processes.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "./gateway.ts";

/**
 * Kills the real process again and again while it streams, and holds what clients were told against what the
 * books say: every acknowledged answer has its one settled receipt at the price that the host's usage gives,
 * nothing drifts, and credit that is taken back as the process dies is taken once.
 *
 *     bun run test/process/storm.ts --kills 300
 */
export async function storm(kills: number, progress: (line: string) => void): Promise<StormReport> {
  const host = await start([process.execPath, "bench/mock-host.ts", "5", "64", "3"]);
  const folder = new Folder(simpleConfig([host.port]));
  const report = {
    kills,
    requests: 0,
    acknowledged: 0,
    lost: 0,
    wrong: 0,
    driftNano: "0",
    slowestStartMs: 0,
  };
  try {
    let gateway = await GatewayProcess.start(folder);
    const { key, balance_id } = await gateway.keyWith(1_000);
    const acknowledged = new Set<string>();
    for (let kill = 0; kill < kills; kill++) {
      const clients = Array.from({ length: STREAMS }, () =>
        streamUntilDead(gateway, key, acknowledged, report),
      );
      // On a machine that is busy, no answer may come to its end in any of the lives: the first lasts until
      // one has.
      await until(() => kill > 0 || acknowledged.size > 0);
      await Bun.sleep(100 + ((kill * 37) % 400));
      const debit = { balance_id, amount_usd: DEBIT_USD, idempotency_key: `debit ${kill}` };
      const answer = gateway.post("/admin/debits", debit, ADMIN).catch(() => null);
      await Bun.sleep(kill % 4);
      await gateway.kill();
      await Promise.all(clients);
      const debited = await answer;
      const started = performance.now();
      gateway = await GatewayProcess.start(folder);
      report.slowestStartMs = Math.max(report.slowestStartMs, Math.round(performance.now() - started));
      const again = await gateway.post("/admin/debits", debit, ADMIN);
      if (again.status !== 200 || (debited !== null && debited.text !== again.text)) report.wrong += 1;
      if ((kill + 1) % 20 === 0)
        progress(`${kill + 1} of ${kills} kills, ${acknowledged.size} answers acknowledged`);
    }
    for (const receipt of acknowledged) {
      const { status, json } = await gateway.get(`/v1/receipts/${receipt}`, key);
      if (status !== 200) report.lost += 1;
      else if (json.state !== "settled" || Math.round(json.cost_usd * 1e9) !== ANSWER_NANO) report.wrong += 1;
    }
    report.acknowledged = acknowledged.size;
    const { json } = await gateway.audit();
    report.driftNano = String(json.drift_nano);
    if (json.credits_nano !== String((1_000 - kills * DEBIT_USD) * 1e9)) report.wrong += 1;
    const me = await gateway.get("/v1/me", key);
    if (me.json.held_usd !== 0 || me.json.balance_id !== balance_id) report.wrong += 1;
    await gateway.stop();
    return report;
  } finally {
    await host.stop();
    folder.remove();
  }
}

export interface StormReport {
  readonly kills: number;
  readonly requests: number;
  readonly acknowledged: number;
  /** Acknowledged answers without a receipt. */
  readonly lost: number;
  /**
   * Acknowledged answers that are not settled at what they cost, holds left open, and debits that were not
   * made once.
   */
  readonly wrong: number;
  readonly driftNano: string;
  readonly slowestStartMs: number;
}

const STREAMS = 16;
const DEBIT_USD = 1;
/** 10 prompt tokens at $1 and 64 output tokens at $10 per million. */
const ANSWER_NANO = 10 * 1_000 + 64 * 10_000;

async function streamUntilDead(
  gateway: GatewayProcess,
  key: string,
  acknowledged: Set<string>,
  report: { requests: number },
): Promise<void> {
  for (;;) {
    report.requests += 1;
    try {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: '{"model":"test/model","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"go on and on"}]}',
      });
      const text = await response.text();
      if (response.status === 200 && text.endsWith("data: [DONE]\n\n")) {
        acknowledged.add(response.headers.get("x-gateway-receipt")!);
      } else if (response.status !== 200) await Bun.sleep(20);
    } catch {
      return;
    }
  }
}

if (import.meta.main) {
  const at = process.argv.indexOf("--kills");
  console.log(await storm(at === -1 ? 20 : Number(process.argv[at + 1]), console.error));
}
