/**
 * What a machine can carry: requests, streams and events a second of one core, and open streams of one GB, each
 * measured by loading the gateway until its core is busy. It has a core of its own, load and host share the
 * others; where those are busy first, the gateway's share of its core says what a whole one would do.
 *
 *     bun run bench sizing [--seconds 4] [--rounds 3] [--open 8000] [--memory 2000,8000]
 */
import { cpus } from "node:os";
import { median, percentile, table } from "./figures.ts";
import { cpuOf, type Load, served, type Target } from "./load.ts";
import { numberOption, option } from "./options.ts";
import { gateway } from "./peers/gateway.ts";
import { KINDS, type Kind, requestOf } from "./peers/kinds.ts";
import { measureMemory } from "./peers/memory.ts";
import { PACES, type Subject } from "./peers/peer.ts";
import { bodyOf } from "./peers/rounds.ts";
import { onMeasuredCore, otherCores, pinTo } from "./processes.ts";
import { inScene } from "./scene.ts";

export interface SizingSize {
  readonly seconds: number;
  readonly rounds: number;
  /** Streams that are open at once, each with an event every 20 ms, are doubled up to so many. */
  readonly open: number;
  /** Streams that are held open for the memory of one. */
  readonly memory: readonly number[];
  /** How long they are left to themselves before memory is read. */
  readonly settleMs: number;
}

export interface SizingRow {
  readonly what: string;
  /** A second, as it was measured, and the share of its core that the gateway was busy. */
  readonly perSecond: number;
  readonly busy: number;
  readonly eventsEach: number;
}

export interface Sizing {
  readonly rows: readonly SizingRow[];
  /** The most open streams of an event every 20 ms that lost less than a tenth of their pace, and of the core. */
  readonly paced: { readonly streams: number; readonly busy: number };
  readonly memory: readonly { readonly streams: number; readonly kib: number | null }[];
}

export async function benchSizing(size: SizingSize, progress: (line: string) => void): Promise<Sizing> {
  pinTo(otherCores());
  try {
    return await inScene("sizing", async ({ peer }) => {
      const begin = (name: string) => onMeasuredCore(() => peer(gateway, name));
      const subject = await begin("loads");
      const rows: SizingRow[] = [];
      for (const one of loadsOf(subject, size.seconds)) {
        progress(one.what);
        rows.push(await saturated(subject, one, size.rounds));
      }
      progress("open streams");
      const paced = await mostPaced(subject, size.open);
      await subject.process.stop();
      progress("memory");
      const { idleBytes, open } = await measureMemory(await begin("memory"), size.memory, size.settleMs);
      const memory = open.map(({ streams, bytes }) => ({
        streams,
        kib: bytes === null ? null : (bytes - idleBytes) / streams / 1_024,
      }));
      return { rows, paced, memory };
    });
  } finally {
    pinTo(`0-${cpus().length - 1}`);
  }
}

interface SizingLoad {
  readonly what: string;
  readonly target: Target;
  readonly plan: Load;
  readonly eventsEach: number;
}

function loadsOf(subject: Subject, seconds: number): SizingLoad[] {
  const { target, prefix } = subject;
  const plan = { connections: 64, seconds };
  return [
    { what: "whole answers", target, plan: { ...plan, body: bodyOf(prefix, "burst", false) }, eventsEach: 1 },
    {
      what: "whole answers, assembled of 500 events",
      target,
      plan: { connections: 16, seconds, body: bodyOf(prefix, "long", false, "Hi", 2_000) },
      eventsEach: 500,
    },
    {
      what: "streams of 64 events in one piece, chat",
      target,
      plan: { ...plan, body: bodyOf(prefix, "burst", true) },
      eventsEach: 64,
    },
    ...KINDS.filter(({ padded }) => !padded).map((kind) => burstOf(subject, kind, plan)),
  ];
}

function burstOf(subject: Subject, kind: Kind, plan: { connections: number; seconds: number }): SizingLoad {
  const { target, body } = requestOf(subject, kind, PACES.burst)!;
  return { what: `the same, ${kind.name}`, target, plan: { ...plan, body }, eventsEach: 64 };
}

async function saturated(
  { process }: Subject,
  { what, target, plan, eventsEach }: SizingLoad,
  rounds: number,
): Promise<SizingRow> {
  await served(target, plan);
  const taken: { perSecond: number; busy: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const { result, us } = await cpuOf(process, () => served(target, plan));
    taken.push({ perSecond: result.count / result.seconds, busy: us / (result.seconds * 1e6) });
  }
  return {
    what,
    eventsEach,
    perSecond: median(taken.map(({ perSecond }) => perSecond)),
    busy: median(taken.map(({ busy }) => busy)),
  };
}

/** Twice as many each time, until their events come late. */
async function mostPaced({ process, target, prefix }: Subject, most: number): Promise<Sizing["paced"]> {
  const body = bodyOf(prefix, "steady", true);
  let best = { streams: 0, busy: 0 };
  for (let streams = Math.min(MIN_PACED, most); streams <= most; streams *= 2) {
    const plan = { body, connections: streams, requests: streams };
    const { result, us } = await cpuOf(process, () => served(target, plan));
    if (percentile(result.totalMs, 0.5) > PACED_MS * 1.1) break;
    best = { streams, busy: us / (result.seconds * 1e6) };
  }
  return best;
}

const MIN_PACED = 100;
/** Duration of a stream of 64 events. */
const PACED_MS = 63 * 20;

/** As Markdown. */
export function sizingTable({ rows, paced, memory }: Sizing): string {
  const count = (value: number) => Math.round(value).toLocaleString("en");
  return [
    table(
      ["one core", "a second, measured", "its core busy", "a second of a whole core", "events of it"],
      rows.map(({ what, perSecond, busy, eventsEach }) => [
        what,
        count(perSecond),
        `${(100 * busy).toFixed(0)}%`,
        count(perSecond / busy),
        eventsEach === 1 ? "" : count((perSecond / busy) * eventsEach),
      ]),
    ),
    `Open streams of 50 events a second each, with their pace: ${count(paced.streams)} with ${(100 * paced.busy).toFixed(0)}% of the core.`,
    ...memory.map(({ streams, kib }) =>
      kib === null
        ? `${count(streams)} open streams: could not be opened.`
        : `${count(streams)} open streams: ${kib.toFixed(1)} KiB each, ${count(1_048_576 / kib)} in a GB.`,
    ),
  ].join("\n");
}

if (import.meta.main) {
  const sizing = await benchSizing(
    {
      seconds: numberOption("seconds", 4),
      rounds: numberOption("rounds", 3),
      open: numberOption("open", 6_400),
      memory: option("memory", "2000,8000").split(",").map(Number),
      settleMs: 4_000,
    },
    console.error,
  );
  console.log(sizingTable(sizing));
}
