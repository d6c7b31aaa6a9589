/**
 * What the gateway allocates on the JavaScript heap for a request, and for an event of a stream of 64 deltas
 * with the stream's opening and end, by type, next to the bare proxy: the figure of cost that no noise
 * touches. Each object is paid for three times: made, swept away, and in the processor's caches, out of which
 * it pushes what the next request needs.
 *
 *     bun run bench allocations [--rounds 5] [--seconds 5] [--streams 4000]
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { table } from "./figures.ts";
import { served } from "./load.ts";
import { numberOption } from "./options.ts";
import { bareProxy } from "./peers/bare-proxy.ts";
import { gateway } from "./peers/gateway.ts";
import { PACES, type Peer, type Subject } from "./peers/peer.ts";
import { inScene } from "./scene.ts";

/** Objects by type, per request or per event. */
type Allocations = ReadonlyMap<string, number>;

const total = (allocations: Allocations): number =>
  [...allocations.values()].reduce((sum, count) => sum + count, 0);

/** Both figures of a peer, in front of a host of its own. */
const allocationsOf = (peer: Peer, size: AllocationsSize): Promise<PeerAllocations> =>
  inScene("allocations", async ({ folder, peer: open }) => {
    const counts = join(folder, "counts.json");
    // For the process that the peer starts, not for this one.
    process.env.BUN_OPTIONS = `--preload=${import.meta.dir}/allocation-counter.ts`;
    process.env.ALLOCATIONS_FILE = counts;
    const subject = await open(peer).finally(() => {
      delete process.env.BUN_OPTIONS;
      delete process.env.ALLOCATIONS_FILE;
    });
    const stream = await measured(subject, counts, PACES.steady, true, size);
    return {
      name: peer.name,
      request: await measured(subject, counts, PACES.burst, false, size),
      event: new Map([...stream].map(([type, count]) => [type, count / DELTAS])),
    };
  });

export interface PeerAllocations {
  readonly name: string;
  readonly request: Allocations;
  readonly event: Allocations;
}

export interface AllocationsSize {
  readonly rounds: number;
  /** The JIT's last tier allocates least, and takes its time to come. */
  readonly warmUp: { readonly seconds: number; readonly streams: number };
}

export async function benchAllocations(size: AllocationsSize): Promise<readonly PeerAllocations[]> {
  const found = [];
  for (const peer of [gateway, bareProxy]) found.push(await allocationsOf(peer, size));
  return found;
}

const DELTAS = 64;
const CONNECTIONS = 64;

async function measured(
  { process: { pid }, target, prefix }: Subject,
  file: string,
  pace: string,
  stream: boolean,
  { rounds: times, warmUp: { seconds, streams } }: AllocationsSize,
): Promise<Allocations> {
  const body = JSON.stringify({
    model: prefix + pace,
    ...(stream ? { stream } : { max_tokens: 100 }),
    messages: [{ role: "user", content: "What is the capital of Norway? Answer in one word." }],
  });
  await served(
    target,
    stream
      ? { body, connections: Math.min(400, streams), requests: streams }
      : { body, connections: CONNECTIONS, seconds },
  );
  // Few enough that hardly a collection comes between: it takes away what is to be counted.
  const requests = stream ? CONNECTIONS : 4 * CONNECTIONS;
  const rounds: Allocations[] = [];
  for (let round = 0; round < times; round++) {
    const before = await counted(pid, file, "SIGUSR2");
    await served(target, { body, connections: CONNECTIONS, requests });
    rounds.push(difference(await counted(pid, file, "SIGUSR1"), before, requests));
  }
  // The middle one: a collection or a timer's work may have come between.
  return rounds.sort((a, b) => total(a) - total(b))[times >> 1]!;
}

async function counted(pid: number, file: string, signal: "SIGUSR1" | "SIGUSR2"): Promise<Allocations> {
  rmSync(file, { force: true });
  process.kill(pid, signal);
  while (!existsSync(file)) await Bun.sleep(20);
  return new Map(Object.entries(JSON.parse(readFileSync(file, "utf8")) as Record<string, number>));
}

const difference = (after: Allocations, before: Allocations, by: number): Allocations =>
  new Map([...after].map(([type, count]) => [type, (count - (before.get(type) ?? 0)) / by]));

const MIN_SHOWN = 0.05;

if (import.meta.main) {
  const [own, bare] = await benchAllocations({
    rounds: numberOption("rounds", 5),
    warmUp: { seconds: numberOption("seconds", 5), streams: numberOption("streams", 4_000) },
  });
  for (const per of ["request", "event"] as const) {
    const types = [...own![per]].filter(([, count]) => count >= MIN_SHOWN).sort((a, b) => b[1] - a[1]);
    console.log(
      table(
        [`objects per ${per}`, own!.name, bare!.name],
        [
          ["all", total(own![per]), total(bare![per])],
          ...types.map(([type, count]) => [type, count, bare![per].get(type) ?? 0]),
        ],
      ),
    );
  }
}
