/**
 * Whether anything became more expensive: the hot pieces and the gateway as a process, each as a ratio to a baseline
 * that is measured turn by turn with it, held against the ratios in bench/reference.json. A figure fails when
 * its best turn is above the reference by more than its own turns differ, and by more than `SLACK`; and then
 * only if it does so `TRIES` times, because CI must not fail for what else the machine does.
 *
 *     bun run bench regression           # compare
 *     bun run bench regression --write   # after a change that is meant to be more expensive, or became cheaper
 */
import { readFileSync, writeFileSync } from "node:fs";
import { do_not_optimize } from "mitata";
import { median } from "./figures.ts";
import { pieces } from "./micro.ts";
import { bareHost } from "./peers/bare-host.ts";
import { bareProxy } from "./peers/bare-proxy.ts";
import { verify } from "./peers/faults.ts";
import { gateway } from "./peers/gateway.ts";
import { type RoundSize, Rounds } from "./peers/rounds.ts";
import { inScene } from "./scene.ts";

export interface Figure {
  readonly name: string;
  /** CPU, a value a turn; each turn of ours has the baseline's next to it. */
  readonly ours: readonly number[];
  readonly baseline: readonly number[];
}

export interface MacroSize extends Required<Pick<RoundSize, "seconds" | "streams" | "warmUpSeconds">> {
  readonly turns: number;
}

export interface Verdict {
  readonly name: string;
  /** The best turn of ours ÷ the best of the baseline: what else the machine does only ever adds. */
  readonly ratio: number;
  /** By how much the middle turns are above the best ones. */
  readonly noise: number;
  /** Null when it is new. */
  readonly reference: number | null;
  readonly costlier: boolean;
}

export function verdictOn({ name, ours, baseline }: Figure, reference: number | null): Verdict {
  const [own, its] = [bestAndMiddle(ours), bestAndMiddle(baseline)];
  const ratio = own.best / its.best;
  const noise = own.middle / own.best - 1 + (its.middle / its.best - 1);
  const costlier = reference !== null && ratio > reference * (1 + Math.max(SLACK, noise));
  return { name, ratio, noise, reference, costlier };
}

const bestAndMiddle = (turns: readonly number[]): { readonly best: number; readonly middle: number } => ({
  best: Math.min(...turns),
  middle: median(turns),
});

const SLACK = 0.3;
const TRIES = 3;

/**
 * Each piece in turn with the yardstick: parsing the data of one event, which is real work of a steady
 * length.
 */
export async function microFigures(turns: number, batchMs: number): Promise<Figure[]> {
  const all = await pieces();
  const yardstick = all.find(({ name }) => name.includes("JSON.parse of its data"))!.baseline;
  return all.map((piece) => {
    piece.check();
    nsPerCall(piece.ours, batchMs);
    const [ours, baseline]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < turns; turn++) {
      ours.push(nsPerCall(piece.ours, batchMs));
      baseline.push(nsPerCall(yardstick, batchMs));
    }
    return { name: piece.name, ours, baseline };
  });
}

/** By the CPU's clock: the machine may be busy with something else half of the time. */
function nsPerCall(call: () => unknown, forMs: number): number {
  const before = process.cpuUsage();
  for (let calls = 0; ; ) {
    for (let index = 0; index < BATCH; index++) do_not_optimize(call());
    calls += BATCH;
    const { user, system } = process.cpuUsage(before);
    if (user + system >= forMs * 1_000) return ((user + system) * 1_000) / calls;
  }
}

const BATCH = 512;

/**
 * CPU a request and an event: the gateway's ÷ that of the bare proxy on Bun, and the proxy's, which is the
 * transport's, ÷ the bare host's. Who else uses the machine takes caches away, from which what needs more of
 * them suffers more: against the bare host, the gateway's request was 8.4 on one day and 13 on another.
 */
export const macroFigures = ({ turns, ...size }: MacroSize): Promise<Figure[]> =>
  inScene("regression", async ({ peer: open }) => {
    const all: Rounds[] = [];
    for (const peer of [bareHost, bareProxy, gateway]) {
      const subject = await open(peer);
      await verify(subject);
      all.push(new Rounds(subject, { ...size, passes: 1, connections: [], parts: ["requests", "streams"] }));
    }
    for (const rounds of all) await rounds.warmUp();
    for (let turn = 0; turn < turns; turn++) {
      for (const rounds of all) {
        await rounds.saturated();
        await rounds.streams();
      }
    }
    const [bare, proxy, own] = all.map((rounds) => rounds.costs());
    return [
      { name: "CPU a request ÷ bare proxy on Bun", ours: own!.request, baseline: proxy!.request },
      { name: "CPU an event ÷ bare proxy on Bun", ours: own!.event, baseline: proxy!.event },
      { name: "bare proxy on Bun: CPU a request ÷ bare host", ours: proxy!.request, baseline: bare!.request },
      { name: "bare proxy on Bun: CPU an event ÷ bare host", ours: proxy!.event, baseline: bare!.event },
    ];
  });

const REFERENCE = `${import.meta.dir}/reference.json`;

/** The best turn counts, so that turns warm up as well. */
const MACRO: MacroSize = { turns: 5, seconds: 0.5, streams: 400, warmUpSeconds: 1.5 };
const PARTS = [() => microFigures(15, 20), () => macroFigures(MACRO)];

async function figures(): Promise<Figure[]> {
  const all: Figure[] = [];
  for (const part of PARTS) all.push(...(await part()));
  return all;
}

/** Measurements that are more expensive now and were so each time before; null before the first time. */
export function stillCostlier(before: readonly string[] | null, verdicts: readonly Verdict[]): string[] {
  const now = verdicts.filter(({ costlier }) => costlier).map(({ name }) => name);
  return before === null ? now : now.filter((name) => before.includes(name));
}

/** A part is measured again only while something of it has been more expensive each time. */
async function compare(): Promise<boolean> {
  const reference = JSON.parse(readFileSync(REFERENCE, "utf8")) as Record<string, number>;
  let isGood = true;
  for (const part of PARTS) if (!(await comparePart(part, reference))) isGood = false;
  return isGood;
}

async function comparePart(
  part: () => Promise<Figure[]>,
  reference: Readonly<Record<string, number>>,
): Promise<boolean> {
  /** What has been more expensive in every attempt so far. */
  let suspects: readonly string[] | null = null;
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const verdicts = (await part()).map((figure) => verdictOn(figure, reference[figure.name] ?? null));
    for (const { name, ratio, noise, reference: was, costlier } of verdicts) {
      const before = was === null ? "new" : `reference ${was.toFixed(2)}`;
      console.log(
        `${costlier ? "COSTLIER " : "         "}${ratio.toFixed(2).padStart(8)}  ±${(noise * 100).toFixed(0).padStart(3)}%  ${before}  ${name}`,
      );
    }
    suspects = stillCostlier(suspects, verdicts);
    if (suspects.length === 0) return true;
    console.log(`attempt ${attempt} of ${TRIES}: costlier than it was: ${suspects.join(", ")}`);
  }
  return false;
}

if (import.meta.main) {
  if (process.argv.includes("--write")) {
    const ratios = (await figures()).map((figure) => {
      const { name, ratio } = verdictOn(figure, null);
      return [name, Number(ratio.toPrecision(3))] as const;
    });
    writeFileSync(REFERENCE, `${JSON.stringify(Object.fromEntries(ratios), null, 2)}\n`);
    console.log(readFileSync(REFERENCE, "utf8"));
  } else if (!(await compare())) process.exit(1);
}
