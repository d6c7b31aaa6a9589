import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { Glob } from "bun";
import { Random } from "../sim/random.ts";
import { ACCEPTED, isAccepted } from "./accepted.ts";
import { type Mutant, mutantsOf } from "./mutants.ts";
import { FLOOR, ROOMS, type Room } from "./rooms.ts";
import { sample } from "./sample.ts";
import { Bench, type Result, type Verdict } from "./trial.ts";

const USAGE = `bun run mutation [-- options] [room …]

Breaks one line at a time in a copy of the tree, and sees whether the tests notice. Exits with 1 if a room's share is
below ${FLOOR * 100}%. Rooms: ${ROOMS.map(({ name }) => name).join(", ")}; all, if none is named.

  --seed N      which mutants are drawn (1)
  --each N      how many of a room (40)
  --in TEXT     only of files with this in their path
  --jobs N      copies of the tree, each with one mutant at a time (1)
  --near        only the tests of the room itself and the type checker, no wider tests
  --resume      keeps what an earlier run with this seed found
  --survivors   keeps what it found killed, and tries again what survived
`;
const { values: options, positionals: names } = understood();
const RESULTS = "dist/mutation";
const rooms = ROOMS.filter(({ name }) => names.length === 0 || names.includes(name));
/** One file per room, so that runs of different rooms keep out of each other's. */
const fileOf = (room: string) => `${RESULTS}/${room}-${options.seed}.jsonl`;

interface Line extends Verdict {
  readonly room: string;
  readonly mutant: Mutant;
  readonly seconds: number;
}

const known = readResults();
const lines: Line[] = [];
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
  const drawn = rooms.flatMap((room) => drawnOf(room).map((mutant) => ({ room, mutant })));
  const waiting = drawn.filter(({ room, mutant }) => {
    const line = known.get(keyOf(mutant));
    if (line !== undefined) lines.push({ ...line, mutant, room: room.name });
    return line === undefined;
  });
  console.log(`${drawn.length} mutants, ${waiting.length} to be tried`);
  if (waiting.length === 0) return;
  try {
    for (let job = 0; job < Number(options.jobs); job += 1) benches.push(new Bench("."));
    const seconds = new Map<Room, number>();
    for (const room of new Set(waiting.map(({ room }) => room)))
      seconds.set(room, await benches[0]!.unbroken(room));
    const tryNext = async (bench: Bench) => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        note(await tryOne(bench, next.room, next.mutant, seconds.get(next.room)!), drawn.length);
    };
    await Promise.all(benches.map(tryNext));
  } finally {
    for (const bench of benches) bench.close();
  }
}

async function tryOne(bench: Bench, room: Room, mutant: Mutant, nearSeconds: number): Promise<Line> {
  const beganMs = performance.now();
  const verdict = await bench.try(mutant, room, nearSeconds, !options.near);
  return { room: room.name, ...verdict, seconds: (performance.now() - beganMs) / 1_000, mutant };
}

function note(line: Line, whole: number): void {
  lines.push(line);
  appendFileSync(fileOf(line.room), `${JSON.stringify(line)}\n`);
  const { mutant, result, seconds } = line;
  console.log(
    `${lines.length}/${whole} ${line.room} ${result} (${seconds.toFixed(1)} s) ${mutant.file}:${mutant.line} ${mutant.kind}`,
  );
  if (result === "survived") console.log(`    ${mutant.before}\n  → ${mutant.after}`);
}

/** Equivalent and accepted ones are not drawn: no test can or need notice them. */
function drawnOf(room: Room): Mutant[] {
  const all = room.sources
    .flatMap((folder) => [...new Glob(`${folder}/**/*.{ts,tsx}`).scanSync(".")].sort())
    .filter((path) => path.includes(options.in))
    .flatMap((path) => mutantsOf(path, readFileSync(path, "utf8")));
  const random = new Random(Number(options.seed));
  return sample(all, Number(options.each), random).filter(
    (mutant) => !ACCEPTED.some((one) => isAccepted(one, mutant)),
  );
}

function readResults(): Map<string, Line> {
  mkdirSync(RESULTS, { recursive: true });
  const read: Line[] = [];
  for (const file of rooms.map(({ name }) => fileOf(name))) {
    if (!options.resume && !options.survivors) rmSync(file, { force: true });
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    read.push(
      ...text
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Line),
    );
  }
  const last = new Map(read.map((line) => [keyOf(line.mutant), line]));
  if (options.survivors) for (const [key, { result }] of last) if (result === "survived") last.delete(key);
  return last;
}

function keyOf({ file, line, before, after }: Mutant): string {
  return `${file}:${line} ${before} → ${after}`;
}

/** A table by room, and what survived; false if a room is below the floor. */
function report(): boolean {
  let enough = true;
  console.log(
    "\n| room | tried | killed | by types | hung | survived | killed of tried | s |\n|-|-|-|-|-|-|-|-|",
  );
  for (const { name } of rooms) {
    const own = lines.filter(({ room }) => room === name);
    if (own.length === 0) continue;
    const count = (result: Result) => own.filter((line) => line.result === result).length;
    const share = 1 - count("survived") / own.length;
    enough &&= share >= FLOOR;
    const seconds = Math.round(own.reduce((sum, line) => sum + line.seconds, 0));
    const counts = [count("killed"), count("killed by types"), count("hung"), count("survived")];
    console.log(`| ${[name, own.length, ...counts, `${(share * 100).toFixed(1)}%`, seconds].join(" | ")} |`);
  }
  for (const { mutant, by } of lines.filter(({ result }) => result === "survived"))
    console.log(
      `\n${mutant.file}:${mutant.line} ${mutant.kind}${by === "" ? "" : ` (${by})`}\n    ${mutant.before}\n  → ${mutant.after}`,
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
