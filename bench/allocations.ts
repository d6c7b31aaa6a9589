/**
 * What the gateway allocates on the JavaScript heap for a request, and for an event of a stream of 64 deltas
 * with the stream's opening and end, by type, beside the bare proxy: the figure of cost that no noise
 * touches. Each object is paid for three times: made, swept away, and in the processor's caches, out of which
 * it pushes what the next request needs.
 *
 *     bun run bench allocations
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { load } from "./load.ts";
import { bareProxy } from "./peers/bare-proxy.ts";
import { gateway } from "./peers/gateway.ts";
import { PACES, type Peer, type Subject } from "./peers/peer.ts";
import { start } from "./processes.ts";

/** Objects by type, per request or per event. */
type Allocations = ReadonlyMap<string, number>;

const total = (allocations: Allocations): number =>
  [...allocations.values()].reduce((sum, count) => sum + count, 0);

/** Both figures of a peer, in front of a host of its own. */
async function allocationsOf(peer: Peer): Promise<{ request: Allocations; event: Allocations }> {
  const folder = mkdtempSync(join(tmpdir(), "allocations-"));
  const counts = join(folder, "counts.json");
  const host = await start([process.execPath, `${import.meta.dir}/mock-host.ts`]);
  const { start: begin } = await peer.install(folder);
  // For the process that the peer starts, not for this one.
  process.env.BUN_OPTIONS = `--preload=${import.meta.dir}/allocation-counter.ts`;
  process.env.ALLOCATIONS_FILE = counts;
  const subject = await begin(host.port, folder);
  delete process.env.BUN_OPTIONS;
  delete process.env.ALLOCATIONS_FILE;
  try {
    const stream = await measured(subject, counts, PACES.steady, true);
    return {
      request: await measured(subject, counts, PACES.burst, false),
      event: new Map([...stream].map(([type, count]) => [type, count / DELTAS])),
    };
  } finally {
    await subject.process.stop();
    await host.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const DELTAS = 64;
const CONNECTIONS = 64;
/** The JIT's last tier allocates least, and takes its time to come. */
const WARM_UP_REQUESTS = { connections: CONNECTIONS, seconds: 5 };
const WARM_UP_STREAMS = { connections: 400, requests: 4_000 };
const ROUNDS = 5;

async function measured(
  { process: { pid }, target, prefix }: Subject,
  file: string,
  pace: string,
  stream: boolean,
): Promise<Allocations> {
  const body = JSON.stringify({
    model: prefix + pace,
    ...(stream ? { stream } : { max_tokens: 100 }),
    messages: [{ role: "user", content: "What is the capital of Norway? Answer in one word." }],
  });
  await load(target, { body, ...(stream ? WARM_UP_STREAMS : WARM_UP_REQUESTS) });
  // Few enough that hardly a collection comes between: it takes away what is to be counted.
  const requests = stream ? CONNECTIONS : 4 * CONNECTIONS;
  const rounds: Allocations[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = await counted(pid, file, "SIGUSR2");
    const { failures } = await load(target, { body, connections: CONNECTIONS, requests });
    if (failures > 0) throw new Error(`${failures} of ${requests} requests failed`);
    rounds.push(difference(await counted(pid, file, "SIGUSR1"), before, requests));
  }
  // The middle one: a collection or a timer's work may have come between.
  return rounds.sort((a, b) => total(a) - total(b))[ROUNDS >> 1]!;
}

async function counted(pid: number, file: string, signal: "SIGUSR1" | "SIGUSR2"): Promise<Allocations> {
  rmSync(file, { force: true });
  process.kill(pid, signal);
  while (!existsSync(file)) await Bun.sleep(20);
  return new Map(Object.entries(JSON.parse(readFileSync(file, "utf8")) as Record<string, number>));
}

const difference = (after: Allocations, before: Allocations, by: number): Allocations =>
  new Map([...after].map(([type, count]) => [type, (count - (before.get(type) ?? 0)) / by]));

const LEAST_SHOWN = 0.05;

if (import.meta.main) {
  const peers = [gateway, bareProxy];
  const found = [];
  for (const peer of peers) found.push(await allocationsOf(peer));
  for (const per of ["request", "event"] as const) {
    const [own, bare] = [found[0]![per], found[1]![per]];
    console.log(
      `\n| objects per ${per} | ${peers.map(({ name }) => name).join(" | ")} |\n| --- | ---: | ---: |`,
    );
    console.log(`| all | ${total(own).toFixed(2)} | ${total(bare).toFixed(2)} |`);
    for (const [type, count] of [...own].sort((a, b) => b[1] - a[1])) {
      if (count >= LEAST_SHOWN)
        console.log(`| ${type} | ${count.toFixed(2)} | ${(bare.get(type) ?? 0).toFixed(2)} |`);
    }
  }
}
