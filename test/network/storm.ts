import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { option } from "../../bench/options.ts";
import { oneHost } from "../fakes/one-host.ts";
import { ADMIN } from "../process/gateway.ts";
import { Random } from "../sim/random.ts";
import { judge } from "./checker.ts";
import { Clients, MAX_TOKENS, WORST_CASE_NANO } from "./clients.ts";
import { Databases } from "./databases.ts";
import { plan, type Round, run, type World } from "./faults.ts";
import { Fleet } from "./fleet.ts";
import type { History } from "./history.ts";
import { Network, networkMissing } from "./network.ts";
import { Operator } from "./operator.ts";

/**
 * Three gateways, PostgreSQL and its synchronous replica, a host and clients, each on a machine of a network
 * of its own; all of them are cut off, slowed down, paused, killed, restarted and failed over under load.
 * What clients saw is judged.
 *
 *     bun run storm --seed 1 --seeds 20 --rounds 11 [--diskless 1]
 */
export async function storm(seed: number, rounds: number, diskless = 0): Promise<Report> {
  const network = await Network.make(MACHINES, DATABASES);
  const folder = mkdtempSync(join(tmpdir(), "storm-"));
  try {
    const file = join(folder, "report.json");
    // The client has to be on the network as well.
    const inside = [
      process.execPath,
      import.meta.path,
      INSIDE,
      network.name,
      folder,
      String(seed),
      String(rounds),
      String(diskless),
    ];
    // A file and no pipe: what it starts may outlive it, and would hold that open.
    const log = Bun.file(join(folder, "said"));
    const child = Bun.spawn([...network.on(CLIENTS), ...inside], {
      env: { ...process.env, TMPDIR: folder },
      stdout: "ignore",
      stderr: log,
      timeout: MAX_MS + rounds * MAX_ROUND_MS,
    });
    // Ending this ends the storm first, and nothing of it stays.
    const end = () => child.kill("SIGKILL");
    for (const signal of ENDING) process.once(signal, end);
    const code = await child.exited;
    for (const signal of ENDING) process.off(signal, end);
    if (code !== 0 || !existsSync(file)) throw new Error(`storm ${seed} broke off: ${await log.text()}`);
    return await Bun.file(file).json();
  } finally {
    await network.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface Report {
  readonly seed: number;
  readonly seconds: number;
  readonly rounds: readonly Round[];
  readonly requests: number;
  readonly answered: number;
  /** By status; `none` for those that nobody answered. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly revokes: number;
  readonly slowestRevokeMs: number;
  readonly slowestStartMs: number;
  /** From the last fault to the moment when every gateway was ready. */
  readonly healedMs: number;
  /** What was not as it was promised. */
  readonly findings: readonly string[];
}

const CLIENTS = "clients";
const HOST = "host";
const GATEWAYS = ["g1", "g2", "g3"];
const DATABASES = ["db1", "db2"] as const;
const MACHINES = [CLIENTS, HOST, ...GATEWAYS, ...DATABASES];
const HOST_PORT = 9000;
const INSIDE = "--inside";

async function insideStorm(
  network: Network,
  folder: string,
  seed: number,
  rounds: number,
  diskless: number,
): Promise<Report> {
  const nowMs = () => performance.now();
  const random = new Random(seed);
  const host = Bun.spawn(
    [...network.on(HOST), process.execPath, join(import.meta.dir, "host.ts"), String(HOST_PORT)],
    { stdout: "ignore", stderr: "ignore" },
  );
  const databases = await Databases.start(network, folder, DATABASES);
  const config = configOf(`http://${network.address(HOST)}:${HOST_PORT}`, databases.url);
  // So many keep nothing on disk, and come back as others.
  const fleet = new Fleet(network, GATEWAYS, (gateway) =>
    GATEWAYS.indexOf(gateway) < diskless ? `${config}journal: postgres\n` : config,
  );
  try {
    await Promise.all(GATEWAYS.map((gateway) => fleet.start(gateway)));
    const urlOf = (gateway: string) => fleet.url(gateway);
    const clients = new Clients(urlOf, nowMs);
    const operator = new Operator(GATEWAYS, urlOf, nowMs, new Random(random.below(2 ** 31)), windowNow());
    await operator.prepare();

    const beganMs = nowMs();
    const load = new Load(clients, operator, new Random(random.below(2 ** 31)));
    const rest = plan(random, rounds, GATEWAYS);
    const world: World = { network, fleet, databases, databaseMachines: DATABASES };
    for (const round of rest) {
      await Bun.sleep(BETWEEN_MS);
      console.error(`${Math.round(nowMs() - beganMs)} ms: ${JSON.stringify(round)}`);
      await run(round, world);
    }
    const overMs = nowMs();
    console.error(`${Math.round(overMs - beganMs)} ms: healed`);
    await allReady(fleet);
    await allClosed(fleet);
    const readyMs = nowMs();
    await Bun.sleep(GIVEN_UP_MS);
    const calmMs = nowMs();
    console.error(`${Math.round(calmMs - beganMs)} ms: all are ready`);
    await Bun.sleep(BETWEEN_MS);
    await load.stop();
    console.error(`${Math.round(nowMs() - beganMs)} ms: nobody asks any more`);
    await spend(clients, operator, random);
    console.error(`${Math.round(nowMs() - beganMs)} ms: all is spent`);
    const history: History = {
      worstCaseNano: WORST_CASE_NANO,
      keys: operator.keys,
      requests: clients.requests,
      revokes: operator.revokes,
      credits: operator.credits,
      limits: operator.limits,
      calmMs,
      unexpectedEnds: fleet.unexpectedEnds,
      end: await operator.read(),
    };
    return {
      seed,
      seconds: Math.round((nowMs() - beganMs) / 1_000),
      rounds: rest,
      ...counts(history),
      slowestStartMs: Math.round(fleet.slowestStartMs),
      healedMs: Math.round(readyMs - overMs),
      findings: judge(history),
    };
  } finally {
    await fleet.close();
    await databases.stop();
    host.kill();
  }
}

/** Clients at every gateway, and an operator, until they are stopped. */
class Load {
  private isOver = false;
  private readonly all: Promise<unknown>;

  constructor(
    private readonly clients: Clients,
    private readonly operator: Operator,
    private readonly random: Random,
  ) {
    const streams = GATEWAYS.flatMap((gateway) =>
      Array.from({ length: CLIENTS_EACH }, () => this.sendTo(gateway)),
    );
    const acts = [
      this.operate(() => operator.spreadMoney(), MONEY_PAUSE_MS),
      this.operate(() => operator.replaceLeaked(), LEAK_PAUSE_MS),
    ];
    this.all = Promise.all([...streams, ...acts]);
    // The caller that stops it gets the error.
    this.all.catch(() => {});
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.all;
  }

  private async sendTo(gateway: string): Promise<void> {
    const { clients, operator, random } = this;
    while (!this.isOver) {
      await clients.request(gateway, random.pick(operator.inUse), 20 + random.below(81), random.chance(0.5));
      await Bun.sleep(random.below(2 * PAUSE_MS));
    }
  }

  private async operate(act: () => Promise<void>, pauseMs: number): Promise<void> {
    while (!this.isOver) {
      await Bun.sleep(pauseMs);
      await act();
    }
  }
}

/**
 * Spends what is left: many at once while there is much, and then one by one, until no worst case fits any
 * more.
 */
async function spend(clients: Clients, operator: Operator, random: Random): Promise<void> {
  for (const key of operator.spenders) {
    const untilRefused = async () => {
      for (let request = 0; request < MAX_LEFT; request++) {
        const { status } = await clients.request(random.pick(GATEWAYS), key, MAX_TOKENS, false);
        if (status !== 200) return;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, untilRefused));
    await untilRefused();
  }
}

async function allReady(fleet: Fleet): Promise<void> {
  for (const gateway of GATEWAYS) {
    for (let round = 0; ; round++) {
      const signal = AbortSignal.timeout(READY_TIMEOUT_MS);
      const ready = await fetch(`${fleet.url(gateway)}/readyz`, { signal }).catch(() => null);
      if (ready?.status === 200) break;
      if (round > MAX_CHECKS) throw new Error(`${gateway} did not become ready again`);
      await Bun.sleep(READY_PAUSE_MS);
    }
  }
}

/** What nodes without a disk left behind is taken care of by the others. */
async function allClosed(fleet: Fleet): Promise<void> {
  for (let round = 0; round < MAX_CHECKS; round++) {
    const headers = { authorization: `Bearer ${ADMIN}` };
    const signal = AbortSignal.timeout(READY_TIMEOUT_MS);
    const answer = await fetch(`${fleet.url(GATEWAYS[0]!)}/admin/nodes`, { headers, signal }).catch(
      () => null,
    );
    const nodes =
      answer?.status === 200 ? ((await answer.json()) as { data: { state: string }[] }).data : null;
    // One that is dead counts as alive until its lease has run out.
    if (nodes?.filter(({ state }) => state !== "left").length === GATEWAYS.length) return;
    await Bun.sleep(READY_PAUSE_MS);
  }
  throw new Error("a node that is gone was not closed");
}

/** A day that ends within the storm would begin its limit again. */
const windowNow = (): "day" | "month" =>
  86_400_000 - (Date.now() % 86_400_000) > LONGEST_MS ? "day" : "month";

function counts({ requests, revokes }: History) {
  const statuses: Record<string, number> = {};
  for (const { status } of requests) statuses[status ?? "none"] = (statuses[status ?? "none"] ?? 0) + 1;
  const waits = revokes.flatMap(({ sentMs, answeredMs }) =>
    answeredMs === null ? [] : [answeredMs - sentMs],
  );
  return {
    requests: requests.length,
    answered: requests.filter(({ costNano }) => costNano !== null).length,
    statuses,
    revokes: waits.length,
    slowestRevokeMs: Math.round(Math.max(0, ...waits)),
  };
}

const ENDING = ["SIGINT", "SIGTERM"] as const;
/** After which a storm is given up, and for each of its rounds so much more. */
const MAX_MS = 150_000;
const MAX_ROUND_MS = 40_000;
const LONGEST_MS = 600_000;
const CLIENTS_EACH = 4;
const PAUSE_MS = 30;
const MONEY_PAUSE_MS = 300;
const LEAK_PAUSE_MS = 1_000;
const BETWEEN_MS = 1_000;
/** Gateways wait so long for connections that were cut off, and requests that need one of these wait too. */
const GIVEN_UP_MS = 5_000;
const MAX_LEFT = 5_000;
const AT_ONCE = 6;
const READY_TIMEOUT_MS = 1_000;
const READY_PAUSE_MS = 100;
const MAX_CHECKS = 400;

const configOf = (host: string, store: string): string => `${oneHost(host)}
generation: { first_token_ms: 3000 }
drain_ms: 5000
store: ${store}
`;

if (import.meta.main) {
  const at = process.argv.indexOf(INSIDE);
  if (at !== -1) {
    const [name, folder, ...numbers] = process.argv.slice(at + 1);
    const [seed, rounds, diskless] = numbers.map(Number) as [number, number, number];
    const network = new Network(name!, MACHINES, DATABASES);
    const report = await insideStorm(network, folder!, seed, rounds, diskless);
    await Bun.write(join(folder!, "report.json"), JSON.stringify(report));
    process.exit(0);
  }
  const missing = networkMissing();
  if (missing !== null) throw new Error(`no storm can be made here: ${missing}`);
  const first = Number(option("seed", "1"));
  const past = first + Number(option("seeds", "1"));
  let findings = 0;
  for (let seed = first; seed < past; seed++) {
    const report = await storm(seed, Number(option("rounds", "11")), Number(option("diskless", "0")));
    findings += report.findings.length;
    console.log(JSON.stringify(report));
  }
  process.exit(findings === 0 ? 0 : 1);
}
