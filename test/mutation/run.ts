import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { Glob } from "bun";
import { Random } from "../sim/random.ts";
import { isAccepted } from "./accepted.ts";
import { type Mutant, mutantsOf } from "./mutants.ts";
import { FLOOR, ROOMS, type Room } from "./rooms.ts";
import { sample } from "./sample.ts";
import { quickestFirst, testsIn } from "./tests-of.ts";
import { Bench, type Reach, type Result, type Verdict } from "./trial.ts";

const USAGE = `bun run mutation [-- options] [room …]

Breaks one line at a time in a copy of the tree, and sees whether the tests notice. Exits with 1 if a room's share is
below ${FLOOR * 100}%. Rooms: ${ROOMS.map(({ name }) => name).join(", ")}; all, if none is named.

  --seed N      which mutants are drawn (1)
  --each N      how many of a room (40)
  --in TEXT     only of files with this in their path
  --jobs N      copies of the tree, each with one mutant at a time (1)
  --near        only the tests of the room itself and the type checker, no wider tests
  --wide A,B    tests in these folders and files instead of the rooms' wider ones
  --budget N    seconds of near tests, and of wider ones, that a mutant gets: the quickest that come to it (60)
  --resume      keeps what an earlier run with this seed found
  --survivors   keeps what it found killed, and tries again what survived and is still in the source; with --resume,
                goes on with that
`;
const { values: options, positionals: names } = understood();
const RESULTS = "dist/mutation";
const rooms = ROOMS.filter(({ name }) => names.length === 0 || names.includes(name));
/** One file per room, so that runs of different rooms keep out of each other's. */
const fileOf = (room: string) => `${RESULTS}/${room}-${options.seed}.jsonl`;

interface Drawn {
  readonly room: Room;
  readonly mutant: Mutant;
}

interface Line extends Verdict {
  readonly room: string;
  readonly mutant: Mutant;
  readonly seconds: number;
  /** What survived has been tried with wider tests. */
  readonly wide?: boolean;
}

/** As the table has them; what survives comes last. */
const COUNTED: readonly Result[] = ["killed", "killed by types", "hung", "killed by wider", "survived"];
/** By mutant: the last word on it. */
const lines = new Map<string, Line>();
const benches: Bench[] = [];
const startedMs = performance.now();

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)
  process.on(signal, () => {
    for (const bench of benches) bench.close();
    report();
    console.log(`\nStopped. --resume goes on from here: ${RESULTS}`);
    process.exit(code);
  });

await runAll();
process.exit(report() ? 0 : 1);

async function runAll(): Promise<void> {
  const known = readResults();
  const draw = options.survivors ? (room: Room) => drawnBefore(room, known) : drawnOf;
  const drawn = rooms.flatMap((room) => draw(room).map((mutant) => ({ room, mutant })));
  for (const { mutant } of drawn) {
    const line = known.get(keyOf(mutant));
    const isRetried = options.survivors && !options.resume && line?.result === "survived";
    if (line !== undefined && !isRetried) lines.set(keyOf(mutant), { ...line, mutant });
  }
  console.log(`${drawn.length} mutants, ${drawn.length - lines.size} to be tried`);
  try {
    for (let job = 0; job < Number(options.jobs); job += 1) benches.push(new Bench("."));
    for (const [room, ofRoom] of Map.groupBy(drawn, ({ room }) => room)) await tryNear(room, ofRoom);
    await tryTypes(drawn);
    if (!options.near) await tryWide(drawn);
  } finally {
    for (const bench of benches) bench.close();
  }
}

/** Each mutant with the tests of its own room. */
async function tryNear(room: Room, drawn: readonly Drawn[]): Promise<void> {
  const waiting = new Set(drawn.filter(({ mutant }) => !lines.has(keyOf(mutant))));
  if (waiting.size === 0) return;
  const reaches = await reachOf(drawn, testsIn(room.near));
  await shared(drawn, async (bench, one, at) => {
    if (!waiting.has(one)) return;
    const { tests, seconds } = quickestFirst(reaches, at, Number(options.budget));
    const names = tests.map(({ test }) => test);
    await note(room, one.mutant, false, () => bench.tryNear(one.mutant, names, seconds));
  });
}

/** What the near tests of all rooms miss, with the type checker. */
async function tryTypes(drawn: readonly Drawn[]): Promise<void> {
  const left = drawn.filter(({ mutant }) => isLeft(mutant) && !lineOf(mutant)!.wide);
  const failing = await benches[0]!.failingTypes(left.map(({ mutant }) => mutant));
  for (const { room, mutant } of left)
    if (failing.has(mutant))
      await note(room, mutant, false, async () => ({ result: "killed by types", by: "tsc" }));
}

/** What these miss, with the wider tests of all their rooms. */
async function tryWide(drawn: readonly Drawn[]): Promise<void> {
  const left = drawn.filter(({ mutant }) => isLeft(mutant));
  if (left.every(({ mutant }) => lineOf(mutant)?.wide)) return;
  const folders = new Set(options.wide?.split(",") ?? left.flatMap(({ room }) => room.wide));
  const tests = testsIn([...folders]);
  console.log(`\n${left.length} for ${tests.length} files of wider tests`);
  const reaches = await reachOf(left, tests);
  await shared(left, async (bench, { room, mutant }, at) => {
    if (lineOf(mutant)?.wide) return;
    const near = new Set(testsIn(room.near));
    const wider = reaches.filter(({ test }) => !near.has(test));
    const { tests } = quickestFirst(wider, at, Number(options.budget));
    await note(room, mutant, true, () => bench.tryWide(mutant, tests));
  });
}

/** Which mutants each test comes to; those that fail by themselves, or take longer than the budget, are left out. */
async function reachOf(drawn: readonly Drawn[], tests: readonly string[]): Promise<Reach[]> {
  const mutants = drawn.map(({ mutant }) => mutant);
  const digest = Bun.hash(JSON.stringify(mutants)).toString(36);
  const file = `${RESULTS}/reach-${digest}.jsonl`;
  const reaches = readLines<Reach>(file).filter(({ test }) => tests.includes(test));
  const waiting = tests.filter((test) => !reaches.some((reach) => reach.test === test));
  await Promise.all(
    benches.map((bench) =>
      bench.reach(
        mutants,
        Number(options.budget),
        () => waiting.shift(),
        (reach) => {
          reaches.push(reach);
          appendFileSync(file, `${JSON.stringify(reach)}\n`);
        },
      ),
    ),
  );
  const failing = reaches.filter(({ passes }) => !passes).map(({ test }) => test);
  if (failing.length > 0)
    console.log(`These fail by themselves, or take too long, and are left out: ${failing.join(", ")}`);
  return reaches.filter(({ passes }) => passes);
}

/** Each of these in one of the copies. */
async function shared(
  drawn: readonly Drawn[],
  act: (bench: Bench, one: Drawn, at: number) => Promise<void>,
): Promise<void> {
  const waiting = [...drawn.entries()];
  const work = async (bench: Bench) => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      await act(bench, next[1], next[0]);
  };
  await Promise.all(benches.map(work));
}

async function note(room: Room, mutant: Mutant, wide: boolean, act: () => Promise<Verdict>): Promise<void> {
  const beganMs = performance.now();
  const verdict = await act();
  const seconds = (performance.now() - beganMs) / 1_000;
  const line: Line = { room: room.name, ...verdict, seconds, wide, mutant };
  lines.set(keyOf(mutant), line);
  appendFileSync(fileOf(room.name), `${JSON.stringify(line)}\n`);
  console.log(
    `${room.name} ${line.result} (${seconds.toFixed(1)} s) ${mutant.file}:${mutant.line} ${mutant.kind}`,
  );
  if (line.result === "survived") console.log(`    ${mutant.before}\n  → ${mutant.after}`);
}

/** Equivalent and accepted ones are not drawn: no test can or need notice them. */
function drawnOf(room: Room): Mutant[] {
  const all = room.sources
    .flatMap((folder) => [...new Glob(`${folder}/**/*.{ts,tsx}`).scanSync(".")].sort())
    .filter((path) => path.includes(options.in))
    .flatMap((path) => mutantsOf(path, readFileSync(path, "utf8")));
  const random = new Random(Number(options.seed));
  return sample(all, Number(options.each), random).filter((mutant) => !isAccepted(mutant));
}

/** What an earlier run drew, where it is by now. */
function drawnBefore({ name }: Room, known: ReadonlyMap<string, Line>): Mutant[] {
  const before = [...known.values()].filter(({ room }) => room === name).map(({ mutant }) => mutant);
  const now = [...new Set(before.map(({ file }) => file))]
    .filter((file) => existsSync(file))
    .flatMap((file) => mutantsOf(file, readFileSync(file, "utf8")));
  const keys = new Set(before.map(keyOf));
  return now.filter((mutant) => keys.delete(keyOf(mutant)) && !isAccepted(mutant));
}

function readResults(): Map<string, Line> {
  mkdirSync(RESULTS, { recursive: true });
  const files = rooms.map(({ name }) => fileOf(name));
  if (!options.resume && !options.survivors) for (const file of files) rmSync(file, { force: true });
  const read = files.flatMap((file) => readLines<Line>(file));
  return new Map(read.map((line) => [keyOf(line.mutant), line]));
}

function readLines<T>(file: string): T[] {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}

function lineOf(mutant: Mutant): Line | undefined {
  return lines.get(keyOf(mutant));
}

/** The near tests missed it, whatever wider ones found since. */
function isLeft(mutant: Mutant): boolean {
  const line = lineOf(mutant);
  return line?.result === "survived" || line?.wide === true;
}

function keyOf({ file, before, after }: Mutant): string {
  return `${file} ${before} → ${after}`;
}

/** A table by room, and what survived; false if a room is below the floor. */
function report(): boolean {
  let enough = true;
  const columns = ["room", "tried", ...COUNTED, "killed of tried", "s"];
  console.log(`\n| ${columns.join(" | ")} |\n|${"-|".repeat(columns.length)}`);
  for (const { name } of rooms) {
    const own = [...lines.values()].filter(({ room }) => room === name);
    if (own.length === 0) continue;
    const counts = COUNTED.map((result) => own.filter((line) => line.result === result).length);
    const share = 1 - counts.at(-1)! / own.length;
    enough &&= share >= FLOOR;
    const seconds = Math.round(own.reduce((sum, line) => sum + line.seconds, 0));
    console.log(`| ${[name, own.length, ...counts, `${(share * 100).toFixed(1)}%`, seconds].join(" | ")} |`);
  }
  for (const { result, mutant } of lines.values())
    if (result === "survived")
      console.log(
        `\n${mutant.file}:${mutant.line} ${mutant.kind}\n    ${mutant.before}\n  → ${mutant.after}`,
      );
  console.log(`\nin ${Math.round((performance.now() - startedMs) / 1_000)} s`);
  return enough;
}

function understood() {
  const accepted = {
    seed: { type: "string", default: "1" },
    each: { type: "string", default: "40" },
    in: { type: "string", default: "" },
    jobs: { type: "string", default: "1" },
    near: { type: "boolean", default: false },
    wide: { type: "string" },
    budget: { type: "string", default: "60" },
    resume: { type: "boolean", default: false },
    survivors: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  } as const;
  try {
    const parsed = parseArgs({ allowPositionals: true, options: accepted });
    const unknown = parsed.positionals.find((name) => !ROOMS.some((room) => room.name === name));
    if (unknown !== undefined) throw new Error(`There is no room ${unknown}.`);
    if (!parsed.values.help) return parsed;
    console.log(USAGE);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}
