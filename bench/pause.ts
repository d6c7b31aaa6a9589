import { median, quantiles, table } from "./figures.ts";
import { cpuOf, type Load, served } from "./load.ts";
import { numberOption } from "./options.ts";
import { bareProxy } from "./peers/bare-proxy.ts";
import { gateway } from "./peers/gateway.ts";
import { PATH, type Peer, type Subject } from "./peers/peer.ts";
import { bodyOf } from "./peers/rounds.ts";
import { inScene } from "./scene.ts";

/**
 * What the first requests cost after a pause in which nothing happened: of the gateway as it is shipped, of
 * the gateway on a Bun that forgets what it has compiled as it usually does (runtime.ts), and of a bare proxy
 * on such a Bun. They pause together and are then asked one after the other, in turns.
 *
 *     bun run bench pause --minutes 3 --rounds 3 --requests 10000
 */
export const benchPause = ({ rounds, pauseMs, requests }: PauseSize): Promise<Row[]> =>
  inScene("pause", async ({ host, peer: open }) => {
    const entrants: Entrant[] = [];
    for (const [name, peer, env] of ENTRANTS) {
      const subject = await within(env, () => open(peer, name));
      entrants.push({ name, subject, before: [], after: [] });
    }
    // Compilers work next to the first requests.
    for (const { subject } of entrants) await sendRequests(subject, 8 * requests);
    for (const { subject, before } of entrants) before.push(await sendRequests(subject, requests));
    for (let round = 0; round < rounds; round++) {
      await Bun.sleep(pauseMs);
      // The load generator and the host have paused too.
      await served({ port: host.port, path: PATH, headers: {} }, loadOf("", 8 * requests));
      for (let turn = 0; turn < entrants.length; turn++) {
        const { subject, before, after } = entrants[(round + turn) % entrants.length]!;
        after.push(await sendRequests(subject, requests));
        await sendRequests(subject, 8 * requests);
        before.push(await sendRequests(subject, requests));
      }
    }
    return entrants.map(({ name, before, after }) => ({
      name,
      before: middle(before),
      after: middle(after),
    }));
  });

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
async function within<T>(env: Record<string, string>, begin: () => Promise<T>): Promise<T> {
  Object.assign(process.env, env);
  try {
    return await begin();
  } finally {
    for (const name in env) delete process.env[name];
  }
}

async function sendRequests({ process, target, prefix }: Subject, requests: number): Promise<Taken> {
  const { result, us } = await cpuOf(process, () => served(target, loadOf(prefix, requests)));
  return { us: us / result.count, ...quantiles(result.totalMs) };
}

const loadOf = (prefix: string, requests: number): Load => ({
  body: bodyOf(prefix, "burst", false),
  connections: 64,
  requests,
});

function middle(taken: readonly Taken[]): Taken {
  const of = (figure: keyof Taken) => median(taken.map((one) => one[figure]));
  return { us: of("us"), p50: of("p50"), p99: of("p99") };
}

if (import.meta.main) {
  const rows = await benchPause({
    rounds: numberOption("rounds", 3),
    pauseMs: numberOption("minutes", 3) * 60_000,
    requests: numberOption("requests", 10_000),
  });
  const change = (of: keyof Taken, { before, after }: Row) =>
    `${before[of].toFixed(1)} → ${after[of].toFixed(1)}`;
  console.log(
    table(
      ["", "CPU µs a request, before → after", "p50 ms", "p99 ms"],
      rows.map((row) => [row.name, change("us", row), change("p50", row), change("p99", row)]),
    ),
  );
}
