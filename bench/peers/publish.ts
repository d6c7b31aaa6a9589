import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import type { PeersRun, PeersSize } from "../peers.ts";
import { type Bar, bars, type Line, lines } from "./plot.ts";
import { tables } from "./report.ts";
import type { PeerResult } from "./result.ts";

/** Where, when, with what: without it a figure means nothing. */
export interface Circumstances {
  readonly command: string;
  readonly commit: string;
  readonly machine: string;
  /** The machine's load average just before the run. */
  readonly loadBefore: number;
  readonly startedAt: string;
}

export function circumstances(command: string, at: Date): Circumstances {
  const git = Bun.spawnSync(["git", "rev-parse", "--short", "HEAD"], { cwd: import.meta.dir });
  const [first] = cpus();
  return {
    command,
    commit: git.stdout.toString().trim() || "not in a checkout",
    machine: `${cpus().length} × ${first?.model.trim() || "unnamed CPU"}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release().split("-")[0]}`,
    loadBefore: loadavg()[0]!,
    startedAt: at.toISOString(),
  };
}

/** `peers.json`, `peers.md`, `peers.svg` and `peers-latency.svg` in `folder`. */
export function publish(run: PeersRun, size: PeersSize, where: Circumstances, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write("peers.json", `${JSON.stringify({ ...where, size, ...run }, rounded, 1)}\n`);
  write("peers.md", page(run, size, where));
  write("peers.svg", costPlot(run.peers));
  if (hasLatency(run)) write("peers-latency.svg", latencyPlot(run.peers));
}

const hasLatency = ({ peers }: PeersRun): boolean =>
  peers.some(({ latencyMs }) => Object.keys(latencyMs).length > 0);

const rounded = (_key: string, value: unknown): unknown =>
  typeof value === "number" ? Number(value.toPrecision(6)) : value;

const page = (run: PeersRun, size: PeersSize, where: Circumstances): string => `# Next to its peers

\`${where.command}\` at commit ${where.commit}, ${where.startedAt.slice(0, 16).replace("T", " ")} UTC, on ${where.machine};
load average before: ${where.loadBefore.toFixed(1)}. Each peer has a core of its own, load generator and host share the others; the bare host's row
is the load generator's ceiling. Median of ${size.rounds} rounds, each of which visits every peer.

- A request is unstreamed, over 64 connections; its CPU is that of all processes of the peer. An event is one of 64 deltas
  20 ms apart; what the stream's request and end cost is spread over them.
- Half load: 64 connections that together start half of the streams a second that the peer could do.
- Memory is resident, of a fresh process, with an event a second on every open stream.
- The gateway keeps the connection of a 413 open for 300 ms, so that a client still sending reads the answer: its rate there
  is that of 64 connections, its CPU is what counts.

![CPU, throughput and memory](peers.svg)
${hasLatency(run) ? "\n![Latency by connections](peers-latency.svg)\n" : ""}
${tables(run)}`;

function costPlot(peers: readonly PeerResult[]): string {
  const panel = (title: string, figure: (peer: PeerResult) => number | null) => ({
    title,
    bars: peers.flatMap((peer): Bar[] => {
      const value = figure(peer);
      return value === null || value <= 0 ? [] : [{ name: peer.name, value, strong: peer.name === OURS }];
    }),
  });
  return bars("Text generation gateways next to bare proxies (logarithmic)", [
    panel("CPU a request, µs", ({ usPerRequest }) => usPerRequest.median),
    panel("CPU a streamed event, µs", ({ usPerEvent }) => usPerEvent.median),
    panel("Requests a second, one worker", ({ requestsPerSecond }) => requestsPerSecond.median),
    panel("Memory an open stream, KiB", streamKib),
  ]);
}

const OURS = "gateway";

/** At the most streams that it held. */
function streamKib({ memory, name }: PeerResult): number | null {
  const held = memory?.open.findLast(({ bytes }) => bytes !== null);
  if (held === undefined || name === "bare host") return null;
  return (held.bytes! - memory!.idleBytes) / held.streams / 1_024;
}

function latencyPlot(peers: readonly PeerResult[]): string {
  const all = peers.map(
    ({ name, latencyMs }): Line => ({
      name,
      strong: name === OURS,
      points: Object.entries(latencyMs).map(([count, { p99 }]) => [Number(count), p99]),
    }),
  );
  return lines("p99 of whole unstreamed answers, ms", "connections", all);
}
