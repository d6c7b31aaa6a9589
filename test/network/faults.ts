import type { Random } from "../sim/random.ts";
import type { Databases } from "./databases.ts";
import type { Fleet } from "./fleet.ts";
import type { Network } from "./network.ts";

/**
 * What a storm breaks, and heals again: in each round something of a gateway and, at the same time, of
 * PostgreSQL.
 */
export interface World {
  readonly network: Network;
  readonly fleet: Fleet;
  readonly databases: Databases;
  /** Machines of PostgreSQL. */
  readonly databaseMachines: readonly string[];
}

export interface Round {
  readonly gateway: string;
  readonly gatewayFault: keyof typeof GATEWAY_FAULTS;
  readonly databaseFault: keyof typeof DATABASE_FAULTS;
  /** How long the faults last. */
  readonly gatewayMs: number;
  readonly databaseMs: number;
}

/** Each fault once before any comes a second time, so that a storm of eleven rounds has them all. */
export function plan(random: Random, rounds: number, gateways: readonly string[]): Round[] {
  const gatewayFaults = deck(random, Object.keys(GATEWAY_FAULTS) as Round["gatewayFault"][]);
  const databaseFaults = deck(random, Object.keys(DATABASE_FAULTS) as Round["databaseFault"][]);
  return Array.from({ length: rounds }, () => ({
    gateway: random.pick(gateways),
    gatewayFault: gatewayFaults(),
    databaseFault: databaseFaults(),
    gatewayMs: duration(random),
    databaseMs: duration(random) / 2,
  }));
}

export async function run(round: Round, world: World): Promise<void> {
  const { gateway, gatewayFault, gatewayMs, databaseFault, databaseMs } = round;
  await Promise.all([
    GATEWAY_FAULTS[gatewayFault](world, gateway, gatewayMs),
    DATABASE_FAULTS[databaseFault](world, databaseMs),
  ]);
}

type GatewayFault = (world: World, gateway: string, lastsMs: number) => Promise<void>;

const GATEWAY_FAULTS = {
  "cut off from PostgreSQL": forAWhile((world, gateway) =>
    fromDatabases(world, (machine) => world.network.cut(gateway, machine)),
  ),
  "deaf to PostgreSQL": forAWhile((world, gateway) =>
    fromDatabases(world, (machine) => world.network.deafen(gateway, machine)),
  ),
  "cut off from the answers of PostgreSQL": forAWhile((world, gateway) =>
    fromDatabases(world, (machine) => world.network.mute(gateway, machine)),
  ),
  "loses packets": forAWhile(({ network }, gateway) => network.lose(gateway, 25)),
  "on a slow line": forAWhile(({ network }, gateway) => network.slow(gateway, 300)),
  "cut off from its clients": forAWhile(({ network }, gateway) => network.cut(gateway, CLIENTS)),
  "cut off from its host": forAWhile(({ network }, gateway) => network.cut(gateway, HOST)),
  paused: async ({ fleet }, gateway, lastsMs) => {
    fleet.signal(gateway, "SIGSTOP");
    await Bun.sleep(lastsMs);
    fleet.signal(gateway, "SIGCONT");
  },
  killed: async ({ fleet }, gateway) => {
    await fleet.kill(gateway);
    await fleet.start(gateway);
  },
  "killed, and started again while it is cut off": async ({ network, fleet, ...world }, gateway, lastsMs) => {
    await fromDatabases({ network, fleet, ...world }, (machine) => network.cut(gateway, machine));
    await Bun.sleep(lastsMs);
    await fleet.kill(gateway);
    const started = fleet.start(gateway);
    await Bun.sleep(RESTART_MS);
    await network.heal(gateway);
    await started;
  },
  "drained, and started again": async ({ fleet }, gateway) => {
    await fleet.drain(gateway);
    await fleet.start(gateway);
  },
} satisfies Record<string, GatewayFault>;

type DatabaseFault = (world: World, lastsMs: number) => Promise<void>;

const DATABASE_FAULTS = {
  none: async () => {},
  restarts: async ({ databases }, lastsMs) => {
    await databases.leading.end("fast");
    await Bun.sleep(lastsMs);
    await databases.leading.start();
  },
  crashes: async ({ databases }, lastsMs) => {
    await databases.leading.end("immediate");
    await Bun.sleep(lastsMs);
    await databases.leading.start();
  },
  pauses: async ({ network, databases }, lastsMs) => {
    network.signal(databases.leader, "SIGSTOP");
    await Bun.sleep(lastsMs);
    network.signal(databases.leader, "SIGCONT");
  },
  "loses its replica": async ({ network, databases }, lastsMs) => {
    await network.cut(databases.follower!, databases.leader);
    await Bun.sleep(lastsMs);
    await network.heal(databases.follower!);
  },
  "crashes, and fails over": async ({ databases }, lastsMs) => {
    await databases.leading.end("immediate");
    await Bun.sleep(lastsMs);
    await databases.failOver();
    await Bun.sleep(ALONE_MS);
    await databases.rebuild();
  },
  // The one that led still runs, and what it commits nobody else will ever have.
  "is cut off, and fails over": async ({ network, databases }, lastsMs) => {
    const lost = databases.leader;
    await network.cut(databases.follower!, lost);
    await Bun.sleep(lastsMs);
    await network.isolate(lost);
    await databases.failOver();
    await network.heal(databases.leader);
    await Bun.sleep(ALONE_MS);
    await network.heal(lost);
    await databases.rebuild();
  },
  // What waited for the replica becomes visible by the restart, though the replica does not have it.
  "loses its replica, restarts, and fails over": async ({ network, databases }, lastsMs) => {
    const lost = databases.leader;
    await network.cut(databases.follower!, lost);
    await Bun.sleep(lastsMs / 2);
    await databases.leading.end("fast");
    await databases.leading.start();
    await Bun.sleep(lastsMs / 2);
    await databases.leading.end("immediate");
    await databases.failOver();
    await network.heal(databases.leader);
    await databases.rebuild();
  },
} satisfies Record<string, DatabaseFault>;

function forAWhile(begin: (world: World, gateway: string) => Promise<void>): GatewayFault {
  return async (world, gateway, lastsMs) => {
    await begin(world, gateway);
    await Bun.sleep(lastsMs);
    await world.network.heal(gateway);
  };
}

async function fromDatabases(
  { databaseMachines }: World,
  cut: (machine: string) => Promise<void>,
): Promise<void> {
  for (const machine of databaseMachines) await cut(machine);
}

/** Mostly short; some outlive a node's lease of ten seconds. */
function duration(random: Random): number {
  return random.chance(LONG) ? 11_000 + random.below(2_000) : 300 + random.below(2_500);
}

/** Deals all of them in an order of chance, and then again. */
function deck<One>(random: Random, all: readonly One[]): () => One {
  let left: One[] = [];
  return () => {
    if (left.length === 0) left = [...all];
    return left.splice(random.below(left.length), 1)[0]!;
  };
}

const LONG = 0.15;
const CLIENTS = "clients";
const HOST = "host";
const RESTART_MS = 1_000;
/** Between a failover and a new follower. */
const ALONE_MS = 500;
