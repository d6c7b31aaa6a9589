import { start } from "../../bench/processes.ts";
import { until } from "../fakes/until.ts";
import { keeperOf, workersOf } from "../server/workers/processes.ts";
import { ADMIN, Folder, GatewayProcess, type Reply, simpleConfig } from "./gateway.ts";

/**
 * Kills the real process again and again while it streams, and compares what clients received with what the
 * books say: every acknowledged answer has its one settled receipt at the price that the host's usage gives,
 * nothing drifts, and credit that is taken back as the process dies is taken once.
 *
 *     bun run test/process/storm.ts --kills 300 [--workers 3]
 *
 * With workers, a kill is of one of them, of the keeper of their database, of both, or of all processes.
 */
export async function storm(
  kills: number,
  progress: (line: string) => void,
  workers = 1,
): Promise<StormReport> {
  const host = await start([process.execPath, "bench/mock-host.ts", "5", "64", "3"]);
  const folder = new Folder(simpleConfig([host.port], `workers: ${workers}\n${UNLIMITED}`));
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
    const begin = () => GatewayProcess.start(folder);
    let gateway = await begin();
    const { key, balance_id } = await gateway.keyWith(1_000);
    const acknowledged = new Set<string>();
    for (let kill = 0; kill < kills; kill++) {
      const round = { over: false };
      const clients = Array.from({ length: STREAMS }, () =>
        streamUntil(round, gateway, key, acknowledged, report),
      );
      // On a machine that is busy, no answer may come to its end in any of the lives: the first lasts until
      // one has.
      await until(() => kill > 0 || acknowledged.size > 0);
      await Bun.sleep(100 + ((kill * 37) % 400));
      const debit = { balance_id, amount_usd: DEBIT_USD, idempotency_key: `debit ${kill}` };
      const answer = gateway.post("/admin/debits", debit, ADMIN).catch(() => null);
      await Bun.sleep(kill % 4);
      const victims = workers === 1 ? [] : victimsOf(gateway.pid, kill);
      for (const pid of victims) process.kill(pid, "SIGKILL");
      if (victims.length === 0) await gateway.kill();
      const started = performance.now();
      if (victims.length === 0) gateway = await begin();
      else await until(() => isWhole(gateway.pid, workers, victims));
      report.slowestStartMs = Math.max(report.slowestStartMs, Math.round(performance.now() - started));
      round.over = true;
      await Promise.all(clients);
      const debited = await answer;
      const again = await answered(() => gateway.post("/admin/debits", debit, ADMIN));
      if (debited?.status === 200 && debited.text !== again.text) report.wrong += 1;
      if ((kill + 1) % 20 === 0)
        progress(`${kill + 1} of ${kills} kills, ${acknowledged.size} answers acknowledged`);
    }
    for (const receipt of acknowledged) {
      // A worker that was killed last tells what it had acknowledged once its next life has read its journal.
      const reply = await answered(() => gateway.get(`/v1/receipts/${receipt}`, key)).catch(() => null);
      if (reply === null) report.lost += 1;
      else if (reply.json.state !== "settled" || Math.round(reply.json.cost_usd * 1e9) !== ANSWER_NANO)
        report.wrong += 1;
    }
    report.acknowledged = acknowledged.size;
    const { json } = await answered(() => gateway.audit());
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

/** What is counted here is credit. */
const UNLIMITED =
  "defaults: { accountless: { rpm_limit: 1000000, tpm_limit: null, daily_limit_usd: 1000, monthly_limit_usd: 1000 } }\n";
const STREAMS = 16;
const DEBIT_USD = 1;
/** 10 prompt tokens at $1 and 64 output tokens at $10 per million. */
const ANSWER_NANO = 10 * 1_000 + 64 * 10_000;

/** The processes that a kill is of; none: all of them. */
export function victimsOf(supervisor: number, kill: number): number[] {
  const worker = workersOf(supervisor)[kill % 2];
  const keeper = keeperOf(supervisor);
  const victims = [[worker], [keeper], [keeper, worker], []][kill % 4]!;
  return victims.filter((pid) => pid !== undefined);
}

/** All run, and none of those that were killed. */
export const isWhole = (supervisor: number, workers: number, gone: readonly number[]): boolean => {
  const alive = [...workersOf(supervisor), keeperOf(supervisor)];
  return alive.length === workers + 1 && !alive.some((pid) => pid === undefined || gone.includes(pid));
};

/** Retries after an error that says so. */
async function answered(send: () => Promise<Reply>): Promise<Reply> {
  let answer: Reply | null = null;
  await until(async () => {
    answer = await send().catch(() => null);
    return answer?.status === 200;
  });
  return answer!;
}

async function streamUntil(
  round: { readonly over: boolean },
  gateway: GatewayProcess,
  key: string,
  acknowledged: Set<string>,
  report: { requests: number },
): Promise<void> {
  while (!round.over) {
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
      // What was under way there is gone.
      await Bun.sleep(5);
    }
  }
}

if (import.meta.main) {
  const option = (name: string, otherwise: number) => {
    const at = process.argv.indexOf(`--${name}`);
    return at === -1 ? otherwise : Number(process.argv[at + 1]);
  };
  console.log(await storm(option("kills", 20), console.error, option("workers", 1)));
}
