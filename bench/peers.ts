/**
 * The gateway next to a bare host, two bare proxies and its peers: same host, same load, one run. Peers are
 * installed, in pinned versions, into a cache folder outside the repository (`BENCH_CACHE`); what this
 * machine cannot have is left out by name and with the reason. Two noisy cores: read ratios, and the CPU
 * before the clock.
 *
 *     bun run bench peers [--rounds 5] [--seconds 0.8] [--only nginx,gateway] [--streams 400]
 *         [--open 1000,8000] [--faults no] [--passes 2] [--parts requests,streams,kinds,...]
 *         [--write bench/results]
 *
 * What is measured has a core of its own, load and host share the others.
 */
import { mkdirSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { numberOption, option } from "./options.ts";
import { bareHost } from "./peers/bare-host.ts";
import { bareProxy } from "./peers/bare-proxy.ts";
import { bifrost } from "./peers/bifrost.ts";
import { measureFaults, verify } from "./peers/faults.ts";
import { gateway } from "./peers/gateway.ts";
import { haproxy } from "./peers/haproxy.ts";
import { cacheFolder } from "./peers/install.ts";
import { litellm } from "./peers/litellm.ts";
import { measureMemory } from "./peers/memory.ts";
import { nginx } from "./peers/nginx.ts";
import { guardedNoveum, noveum } from "./peers/noveum.ts";
import type { Installed, Peer, Subject } from "./peers/peer.ts";
import { portkey } from "./peers/portkey.ts";
import { circumstances, publish } from "./peers/publish.ts";
import { tables } from "./peers/report.ts";
import type { PeerResult } from "./peers/result.ts";
import { PARTS, type Part, type RoundSize, Rounds } from "./peers/rounds.ts";
import { type Measured, onMeasuredCore, otherCores, pinTo } from "./processes.ts";
import { inScene } from "./scene.ts";

export const PEERS: readonly Peer[] = [
  bareHost,
  nginx,
  haproxy,
  bareProxy,
  gateway,
  noveum,
  guardedNoveum,
  bifrost,
  portkey,
  litellm,
];

export interface PeersSize extends RoundSize {
  readonly rounds: number;
  /** How many streams to hold open; none leaves the memory out. */
  readonly open: readonly number[];
  /** How long they are left to themselves before memory is read: long enough for a few events each. */
  readonly settleMs: number;
  readonly faults: boolean;
}

export interface PeersRun {
  readonly peers: readonly PeerResult[];
  readonly skipped: readonly { readonly name: string; readonly why: string }[];
}

export async function benchPeers(
  peers: readonly Peer[],
  size: PeersSize,
  progress: (line: string) => void,
): Promise<PeersRun> {
  const cache = cacheFolder();
  mkdirSync(cache, { recursive: true });
  const skipped: { name: string; why: string }[] = [];
  const entrants: Entrant[] = [];
  pinTo(otherCores());
  const leaveOut = async ({ name }: Peer, error: unknown, subject?: Subject) => {
    await subject?.process.stop("SIGKILL");
    skipped.push({ name, why: (error as Error).message });
    progress(`${name} is left out: ${(error as Error).message}`);
  };
  try {
    await inScene("peers", async ({ host, folder, onEnd }) => {
      for (const peer of peers) {
        try {
          progress(`starting ${peer.name}`);
          const entrant = await enter(peer, cache, host.port, folder, size);
          onEnd(() => entrant.subject.process.stop());
          entrants.push(entrant);
        } catch (error) {
          await leaveOut(peer, error);
        }
      }
      for (let round = 1; round <= size.rounds; round++) {
        for (const entrant of [...entrants]) {
          try {
            progress(`round ${round} of ${size.rounds}: ${entrant.peer.name}`);
            await entrant.rounds.round();
          } catch (error) {
            entrants.splice(entrants.indexOf(entrant), 1);
            await leaveOut(entrant.peer, error, entrant.subject);
          }
        }
      }
    });
    const results: PeerResult[] = [];
    for (const entrant of entrants) results.push(await alone(entrant, size, progress));
    return { peers: results, skipped };
  } finally {
    pinTo(`0-${cpus().length - 1}`);
  }
}

interface Entrant {
  readonly peer: Peer;
  readonly installed: Installed;
  readonly subject: Subject;
  readonly rounds: Rounds;
}

async function enter(
  peer: Peer,
  cache: string,
  hostPort: number,
  folder: string,
  size: PeersSize,
): Promise<Entrant> {
  const installed = await peer.install(cache);
  const at = join(folder, peer.name.replaceAll(" ", "-"));
  mkdirSync(at);
  const subject = await onMeasuredCore(() => installed.start(hostPort, at));
  try {
    await verify(subject);
    const rounds = new Rounds(subject, {
      ...size,
      streams: Math.min(size.streams, installed.streams ?? size.streams),
    });
    await rounds.warmUp();
    return { peer, installed, subject, rounds };
  } catch (error) {
    await subject.process.stop("SIGKILL");
    throw error;
  }
}

/** What is measured once, with no other peer running, each on a fresh process. */
async function alone(
  { peer: { name }, installed, rounds }: Entrant,
  { open, settleMs, faults, seconds }: PeersSize,
  progress: (line: string) => void,
): Promise<PeerResult> {
  const { version, settings } = installed;
  const fresh = <T>(what: string, run: (host: Measured, subject: Subject, folder: string) => Promise<T>) =>
    inScene(what, async ({ host, folder, onEnd }) => {
      progress(`${what}: ${name}`);
      const subject = await onMeasuredCore(() => installed.start(host.port, folder));
      onEnd(() => subject.process.stop("SIGKILL"));
      return await run(host, subject, folder);
    });
  const memory =
    open.length === 0
      ? null
      : await fresh("memory", (_host, subject) => measureMemory(subject, open, settleMs));
  const faulted = faults
    ? await fresh("faults", (host, subject, at) => measureFaults(installed, subject, host, at, 2 * seconds))
    : null;
  return { name, version, settings, ...rounds.result(), memory, faults: faulted };
}

if (import.meta.main) {
  const only = option("only", "");
  const chosen = PEERS.filter(({ name }) => only === "" || only.split(",").includes(name));
  const size: PeersSize = {
    rounds: numberOption("rounds", 5),
    seconds: numberOption("seconds", 0.8),
    streams: numberOption("streams", 400),
    passes: numberOption("passes", 2),
    parts: option("parts", PARTS.join()).split(",") as Part[],
    connections: [1, 16, 64, 256],
    open: option("open", "1000,8000").split(",").filter(Boolean).map(Number),
    settleMs: 4_000,
    faults: option("faults", "yes") === "yes",
  };
  const where = circumstances(["bun run bench peers", ...process.argv.slice(2)].join(" "), new Date());
  const run = await benchPeers(chosen, size, console.error);
  const folder = option("write", "");
  if (folder !== "") publish(run, size, where, folder);
  console.log(tables(run));
}
