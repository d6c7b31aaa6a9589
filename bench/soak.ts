/**
 * Whether anything is left behind: thousands of streams of every kind at once, for as long as is asked, of which some
 * clients leave. Reported are memory, descriptors and holds on the way; at the end, when all have ended, no
 * descriptor and no hold may be left, and the books must agree with their entries.
 *
 *     bun run bench soak [--minutes 60] [--streams 2000] [--pace slow|steady]
 */
import { readdirSync } from "node:fs";
import { table } from "./figures.ts";
import { metric, operator } from "./gateway-process.ts";
import { load, requestBytes, served, type Timings } from "./load.ts";
import { numberOption, option } from "./options.ts";
import { gateway } from "./peers/gateway.ts";
import { KINDS, type KindRequest, requestOf } from "./peers/kinds.ts";
import { PACES, type Subject } from "./peers/peer.ts";
import { bodyOf } from "./peers/rounds.ts";
import { inScene } from "./scene.ts";

export interface SoakSize {
  readonly seconds: number;
  readonly streams: number;
  /** Every stream sends 50 events a second, or 4. */
  readonly pace: "steady" | "slow";
  /** Between two samples, s. */
  readonly everyS: number;
}

export interface Sample {
  readonly atS: number;
  readonly megabytes: number;
  readonly descriptors: number;
  readonly holds: number;
}

export interface Soak {
  /** Before the load, on the way, and after all have ended. */
  readonly before: Sample;
  readonly samples: readonly Sample[];
  readonly after: Sample;
  readonly served: number;
  readonly failed: number;
  readonly left: number;
  readonly driftNano: string;
}

export const benchSoak = (size: SoakSize, progress: (sample: Sample) => void): Promise<Soak> =>
  inScene("soak", async ({ peer }) => {
    const subject = await peer(gateway);
    const startedMs = performance.now();
    const measure = async (): Promise<Sample> => ({
      atS: Math.round((performance.now() - startedMs) / 1_000),
      megabytes: Math.round(subject.process.residentBytes() / 1_048_576),
      descriptors: readdirSync(`/proc/${subject.process.pid}/fd`).length,
      holds: await metric(subject.process, "gateway_open_holds"),
    });
    const body = bodyOf(subject.prefix, "burst", true);
    await served(subject.target, { body, connections: 64, requests: 2_000 });
    await ended(subject);
    const before = await measure();
    const samples: Sample[] = [];
    const done = new AbortController();
    const watching = (async () => {
      while (!done.signal.aborted) {
        await Bun.sleep(size.everyS * 1_000);
        const one = await measure();
        samples.push(one);
        progress(one);
      }
    })();
    const ran = await mixedLoad(subject, size, done.signal);
    done.abort();
    await watching;
    await ended(subject);
    const after = await settled(measure, before.descriptors + KEPT_CONNECTIONS);
    const { drift_nano } = (await operator(subject.process, "/admin/ledger/audit")) as { drift_nano: string };
    return { before, samples, after, ...ran, driftNano: drift_nano };
  });

/** A tenth of the clients leave in the middle, the others are all kinds in equal parts, and whole answers. */
async function mixedLoad(
  subject: Subject,
  { seconds, streams, pace }: SoakSize,
  signal: AbortSignal,
): Promise<Pick<Soak, "served" | "failed" | "left">> {
  const { target, prefix } = subject;
  const requests: KindRequest[] = [
    ...KINDS.map((kind) => requestOf(subject, kind, PACES[kind.padded ? PADDED[pace] : pace])!),
    { target, body: bodyOf(prefix, pace, true) },
    { target, body: bodyOf(prefix, "long", false, "Hi", 2_000) },
  ];
  const leaving = Math.max(1, Math.floor(streams / 10));
  const each = Math.max(1, Math.floor((streams - leaving) / requests.length));
  const untilMs = performance.now() + seconds * 1_000;
  const leavers = Array.from({ length: leaving }, (_, at) =>
    leaveAgainAndAgain(requests[at % requests.length]!, untilMs, signal),
  );
  const runs: Timings[] = await Promise.all(
    requests.map(({ target: to, body }, at) =>
      // Whole answers take no time, and would be all that there is.
      load(to, {
        body,
        connections: each,
        seconds,
        ...(at === requests.length - 1 ? { perSecond: 20 } : {}),
      }),
    ),
  );
  const left = (await Promise.all(leavers)).reduce((sum, count) => sum + count, 0);
  const sum = (of: (run: Timings) => number) => runs.reduce((total, run) => total + of(run), 0);
  return { served: sum(({ count }) => count), failed: sum(({ failures }) => failures), left };
}

/** How often it left. */
async function leaveAgainAndAgain(
  { target, body }: KindRequest,
  untilMs: number,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  while (performance.now() < untilMs && !signal.aborted) {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port: target.port, socket: { data() {} } });
    socket.write(requestBytes(target, body));
    await Bun.sleep(Math.min(Math.random() * MAX_CONNECTED_MS, untilMs - performance.now()));
    socket.terminate();
    count += 1;
  }
  return count;
}

/** Shorter and longer than a stream takes. */
const MAX_CONNECTED_MS = 20_000;
const PADDED = { steady: "padded", slow: "slowPadded" } as const;

/** Until no request is open, or `TIMEOUT_MS`. */
async function ended(subject: Subject): Promise<void> {
  const untilMs = performance.now() + TIMEOUT_MS;
  while (performance.now() < untilMs && (await metric(subject.process, "gateway_open_holds")) > 0)
    await Bun.sleep(200);
}

/** Connections to hosts are kept for a while, for the next requests. */
async function settled(measure: () => Promise<Sample>, descriptors: number): Promise<Sample> {
  const untilMs = performance.now() + TIMEOUT_MS;
  for (;;) {
    const one = await measure();
    if (one.descriptors <= descriptors || performance.now() > untilMs) return one;
    await Bun.sleep(1_000);
  }
}

const TIMEOUT_MS = 120_000;

/** What is wrong with a run; empty when nothing is. */
export function faultsOf({ before, samples, after, failed, driftNano }: Soak): string[] {
  const faults: string[] = [];
  if (failed > 0) faults.push(`${failed} requests failed`);
  if (after.holds !== 0) faults.push(`${after.holds} holds are left`);
  if (driftNano !== "0") faults.push(`the books have drifted by ${driftNano} nano-dollars`);
  if (after.descriptors > before.descriptors + KEPT_CONNECTIONS)
    faults.push(`${after.descriptors - before.descriptors} descriptors are left`);
  const [early, late] = [
    samples.slice(samples.length >> 2, samples.length >> 1),
    samples.slice((3 * samples.length) >> 2),
  ];
  const growth = mean(late) / mean(early);
  if (growth > MAX_GROWTH) faults.push(`memory grew by ${((growth - 1) * 100).toFixed(0)}%`);
  return faults;
}

const mean = (samples: readonly Sample[]): number =>
  samples.reduce((sum, { megabytes }) => sum + megabytes, 0) / samples.length;

/** To hosts and clients. */
const KEPT_CONNECTIONS = 64;
/** From the second quarter to the last. */
const MAX_GROWTH = 1.1;

if (import.meta.main) {
  const minutes = numberOption("minutes", 60);
  const pace = option("pace", "slow") === "steady" ? "steady" : "slow";
  const size = {
    seconds: minutes * 60,
    streams: numberOption("streams", 2_000),
    pace,
    everyS: Math.max(1, minutes),
  };
  const row = ({ atS, megabytes, descriptors, holds }: Sample) => [atS, megabytes, descriptors, holds];
  const soak = await benchSoak({ ...size, pace }, (sample) => console.error(row(sample).join(" ")));
  console.log(table(["s", "MB", "descriptors", "holds"], [...soak.samples, soak.after].map(row)));
  const { served: count, failed, left, driftNano } = soak;
  console.log(`${count} served, ${failed} failed, ${left} left by their clients; drift ${driftNano}.`);
  const faults = faultsOf(soak);
  for (const fault of faults) console.error(fault);
  process.exit(faults.length > 0 ? 1 : 0);
}
