import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Load, load } from "./load.ts";
import { option } from "./option.ts";
import { bareProxy } from "./peers/bare-proxy.ts";
import { gateway } from "./peers/gateway.ts";
import { PATH, type Peer, type Subject } from "./peers/peer.ts";
import { bodyOf, quantiles } from "./peers/rounds.ts";
import { start } from "./processes.ts";

/**
 * What the first requests cost after a pause in which nothing happened: of the gateway as it is shipped, of
 * the gateway on a Bun that forgets what it has compiled as it usually does (runtime.ts), and of a bare proxy
 * on such a Bun. They pause together and are then asked one after the other, in turns.
 *
 *     bun run bench/pause.ts --minutes 3 --rounds 3 --requests 10000
 */
export async function benchPause({ rounds, pauseMs, requests }: PauseSize): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "pause-"));
  const host = await start([process.execPath, `${import.meta.dir}/mock-host.ts`]);
  const entrants: Entrant[] = [];
  try {
    for (const [name, peer, env] of ENTRANTS) {
      const subject = await begun(peer, env, host.port, join(folder, name));
      entrants.push({ name, subject, before: [], after: [] });
    }
    // Compilers work beside the first requests.
    for (const { subject } of entrants) await ask(subject, 8 * requests);
    for (const { subject, before } of entrants) before.push(await ask(subject, requests));
    for (let round = 0; round < rounds; round++) {
      await Bun.sleep(pauseMs);
      // The load generator and the host have paused too.
      await load({ port: host.port, path: PATH, headers: {} }, askFor("", 8 * requests));
      for (let turn = 0; turn < entrants.length; turn++) {
        const { subject, before, after } = entrants[(round + turn) % entrants.length]!;
        after.push(await ask(subject, requests));
        await ask(subject, 8 * requests);
        before.push(await ask(subject, requests));
      }
    }
    return entrants.map(({ name, before, after }) => ({
      name,
      before: middle(before),
      after: middle(after),
    }));
  } finally {
    for (const { subject } of entrants) await subject.process.stop();
    await host.stop();
    rmSync(folder, { recursive: true });
  }
}

export interface PauseSize {
  readonly rounds: number;
  readonly pauseMs: number;
  /** That are measured, of each, before and after a pause; over 64 connections. */
  readonly requests: number;
}

export interface Row {
  readonly name: string;
  /** Medians over rounds. */
  readonly before: Taken;
  readonly after: Taken;
}

interface Taken {
  /** CPU of a request, µs. */
  readonly us: number;
  /** ms */
  readonly p50: number;
  readonly p99: number;
}

interface Entrant {
  readonly name: string;
  readonly subject: Subject;
  readonly before: Taken[];
  readonly after: Taken[];
}

/** What Bun does by itself. */
const FORGETFUL = {
  BUN_JSC_optimizedCodeAgingQuietAllocationMB: "1",
  BUN_JSC_codeBlockAgingLeaseMultiplier: "3",
};

const ENTRANTS: readonly (readonly [name: string, peer: Peer, env: Record<string, string>])[] = [
  ["gateway", gateway, {}],
  ["gateway, Bun as it is", gateway, FORGETFUL],
  ["bare proxy, Bun as it is", bareProxy, FORGETFUL],
];

/** Peers hand their process our environment. */
async function begun(
  peer: Peer,
  env: Record<string, string>,
  hostPort: number,
  folder: string,
): Promise<Subject> {
  const own = { ...process.env };
  Object.assign(process.env, env);
  try {
    return await (await peer.install(folder)).start(hostPort, folder);
  } finally {
    for (const name in env) delete process.env[name];
    Object.assign(process.env, own);
  }
}

async function ask({ process, target, prefix }: Subject, requests: number): Promise<Taken> {
  const beforeUs = process.cpuUs();
  const { count, failures, totalMs } = await load(target, askFor(prefix, requests));
  if (failures > 0) throw new Error(`${failures} of ${requests} were not answered`);
  return { us: (process.cpuUs() - beforeUs) / count, ...quantiles(totalMs) };
}

const askFor = (prefix: string, requests: number): Load => ({
  body: bodyOf(prefix, "burst", false),
  connections: 64,
  requests,
});

function middle(taken: readonly Taken[]): Taken {
  const of = (figure: keyof Taken) =>
    taken.map((one) => one[figure]).sort((a, b) => a - b)[Math.floor(taken.length / 2)]!;
  return { us: of("us"), p50: of("p50"), p99: of("p99") };
}

if (import.meta.main) {
  const rows = await benchPause({
    rounds: Number(option("rounds", "3")),
    pauseMs: Number(option("minutes", "3")) * 60_000,
    requests: Number(option("requests", "10000")),
  });
  console.log("| | CPU µs a request, before → after | p50 ms | p99 ms |");
  console.log("| --- | --- | --- | --- |");
  for (const { name, before, after } of rows) {
    const figures = (["us", "p50", "p99"] as const).map(
      (figure) => `${before[figure].toFixed(1)} → ${after[figure].toFixed(1)}`,
    );
    console.log(`| ${name} | ${figures.join(" | ")} |`);
  }
}
