import { readFileSync, writeFileSync } from "node:fs";
import { median, table } from "./figures.ts";
import { load } from "./load.ts";
import { numberOption, option } from "./options.ts";
import { agentBodies } from "./peers/agents.ts";
import { bareProxy } from "./peers/bare-proxy.ts";
import { gateway } from "./peers/gateway.ts";
import { PACES, type Peer, type Subject } from "./peers/peer.ts";
import { bodyOf } from "./peers/rounds.ts";
import { inScene } from "./scene.ts";

/**
 * How often large request bodies are in memory: by how much a fresh process grows at most while so many are under way,
 * divided by what they have together. Their host takes each body at once and answers 300 ms later. What garbage is not
 * collected by then counts, and what the kernel holds in sockets does not. Linux only.
 *
 *     bun run bench bodies --rounds 3 --loads 1x10,20x10,200x1 --peers gateway,bare
 */
export async function benchBodies(peers: readonly Peer[], loads: readonly BodyLoad[], rounds: number) {
  const rows: BodyRow[] = [];
  for (const at of loads) {
    const taken = peers.map((peer) => ({ peer, grown: [] as number[], failures: 0 }));
    for (let round = 0; round < rounds; round++)
      for (const one of taken) {
        const { grownBytes, failures } = await inScene("bodies", async ({ peer }) =>
          grownBy(at, await peer(one.peer)),
        );
        one.grown.push(grownBytes);
        one.failures += failures;
      }
    for (const { peer, grown, failures } of taken)
      rows.push({ ...at, peer: peer.name, grownBytes: median(grown), failures });
  }
  return rows;
}

export interface BodyLoad {
  /** At once, each over a connection of its own. */
  readonly bodies: number;
  readonly megabytes: number;
}

export interface BodyRow extends BodyLoad {
  readonly peer: string;
  readonly grownBytes: number;
  readonly failures: number;
}

async function grownBy(
  { bodies, megabytes }: BodyLoad,
  { process, target, prefix }: Subject,
): Promise<{ readonly grownBytes: number; readonly failures: number }> {
  await load(target, { body: bodyOf(prefix, "burst", true), connections: 16, requests: 2_000 });
  const [body] = agentBodies(prefix + PACES.thinking, megabytes * 1e6, true);
  const before = process.residentBytes();
  writeFileSync(`/proc/${process.pid}/clear_refs`, PEAK_OF_NOW);
  const { failures } = await load(target, { body: body!, connections: bodies, requests: bodies });
  return { grownBytes: peakBytes(process.pid) - before, failures };
}

/** proc_pid_clear_refs(5): the highest so far becomes what is resident now. */
const PEAK_OF_NOW = "5";

const peakBytes = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) * 1_024;

const PEERS: Readonly<Record<string, Peer>> = { gateway, bare: bareProxy };

if (import.meta.main) {
  const loads = option("loads", "1x10,20x10,200x1")
    .split(",")
    .map((word) => word.split("x").map(Number))
    .map(([bodies, megabytes]) => ({ bodies: bodies!, megabytes: megabytes! }));
  const peers = option("peers", "gateway,bare")
    .split(",")
    .map((name) => PEERS[name]!);
  const rows = await benchBodies(peers, loads, numberOption("rounds", 3));
  console.log(
    table(
      ["bodies", "", "grows by, MB", "a body's size", "not answered"],
      rows.map(({ bodies, megabytes, peer, grownBytes, failures }) => [
        `${bodies} × ${megabytes} MB`,
        peer,
        (grownBytes / 1e6).toFixed(0),
        `${(grownBytes / (bodies * megabytes * 1e6)).toFixed(2)} ×`,
        failures,
      ]),
    ),
  );
}
