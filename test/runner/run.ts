import { availableParallelism, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { MANY_ROUNDS } from "../rounds.ts";
import { Batch, FOR_HOURS, type Outcome } from "./batch.ts";
import { batchesOf, mayRunAgain, testFiles } from "./batches.ts";
import { megabytesOf } from "./leftovers.ts";
import { hasRoom, Spare } from "./spare.ts";

/** A file with a gateway, a browser or a database of its own. */
const BYTES_PER_JOB = 768 * 1024 * 1024;

const CHECK_MS = 1_000;

/** More than these have not failed by chance. */
const MAX_AGAIN = 3;

const USAGE = `npm test [-- [--long | --all] [--thorough] [--each] [--jobs N] [--again] [path …]]

Runs the test files in parallel processes: as many as there are cores, and more while these wait.

  --long      those that take minutes, and no others
  --all       both, and more rounds of what is random
  --thorough  the most rounds, which take some files an hour: name them
  --each      every file in a process of its own
  --jobs N    so many processes at once, never more
  --again     what failed runs once more at the end, alone; if it passes then, it is reported as unsteady
  path        only files with this in their path
`;
const { values: wish, positionals: paths } = understood();
if (wish.all) process.env[MANY_ROUNDS] = "many";
if (wish.thorough) process.env[MANY_ROUNDS] = "most";
const files = testFiles(wish.all ? "all" : wish.long ? "long" : "short", paths);
const batchOf = (group: readonly string[]) => new Batch(group, wish.thorough ? FOR_HOURS : undefined);
const running = new Set<Batch>();
const outcomes: Outcome[] = [];
/** What failed at first, and passed alone. */
const unsteady: Outcome[] = [];
const startedMs = performance.now();

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)
  process.on(signal, () => {
    for (const batch of running) batch.kill();
    process.exit(code);
  });

await runAll(batchesOf(files, wish.each).map(batchOf));
if (wish.again) await runAgain();
process.exit(concluded() ? 0 : 1);

async function runAll(waiting: Batch[]): Promise<void> {
  const jobs = Math.min(waiting.length, wish.jobs === undefined ? defaultJobs() : Number(wish.jobs));
  console.log(`${files.length} test files in ${waiting.length} processes, ${jobs} at once`);
  const whole = waiting.length;
  const runNext = async () => {
    const outcome = await run(waiting.shift()!);
    outcomes.push(outcome);
    report(outcome, `${outcomes.length}/${whole}`);
  };
  const lines = Array.from({ length: jobs }, async () => {
    while (waiting.length > 0) await runNext();
  });
  const spare = new Spare();
  const check = () => {
    const megabytes = megabytesOf([...running].map(({ mark }) => mark));
    const load = { running: running.size, jobs, busy: spare.busy(), megabytes };
    if (waiting.length > 0 && wish.jobs === undefined && hasRoom(load)) lines.push(runNext());
  };
  check();
  const watch = setInterval(check, CHECK_MS);
  // Files that are started meanwhile too.
  for (const line of lines) await line;
  clearInterval(watch);
}

async function run(batch: Batch): Promise<Outcome> {
  running.add(batch);
  const outcome = await batch.run();
  running.delete(batch);
  return outcome;
}

async function runAgain(): Promise<void> {
  const failed = outcomes.filter(({ fail }) => fail > 0);
  if (failed.length > MAX_AGAIN) return;
  for (const first of failed.filter(({ files }) => mayRunAgain(files))) {
    const second = await run(batchOf(first.files));
    report(second, "again");
    if (second.fail > 0) continue;
    unsteady.push(first);
    outcomes[outcomes.indexOf(first)] = second;
  }
}

function understood() {
  try {
    const options = parseArgs({
      allowPositionals: true,
      options: {
        long: { type: "boolean", default: false },
        all: { type: "boolean", default: false },
        thorough: { type: "boolean", default: false },
        each: { type: "boolean", default: false },
        jobs: { type: "string" },
        again: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (!options.values.help) return options;
    console.log(USAGE);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

function defaultJobs(): number {
  return Math.max(1, Math.min(availableParallelism(), Math.floor(totalmem() / BYTES_PER_JOB)));
}

function report(
  { files, pass, fail, skip, seconds, cpuSeconds, megabytes, output, left }: Outcome,
  at: string,
): void {
  const counts = [
    `${pass} pass`,
    ...(fail > 0 ? [`${fail} FAIL`] : []),
    ...(skip > 0 ? [`${skip} skip`] : []),
  ];
  const cost = `${seconds.toFixed(1)} s, CPU ${cpuSeconds.toFixed(1)} s, ${Math.round(megabytes)} MB`;
  console.log(
    `${at} ${files.length === 1 ? files[0] : `${files[0]} and ${files.length - 1} more`}: ${counts.join(", ")} (${cost})`,
  );
  if (fail > 0) for (const line of output) console.log(`    ${line}`);
  if (fail > 0 && files.length > 1) console.log(`    Files: ${files.join(" ")}`);
  for (const command of left) console.log(`    Left running, and ended: ${command}`);
}

/** Says what came of it; false if anything failed. */
function concluded(): boolean {
  const sum = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const [pass, fail, skip] = [sum((one) => one.pass), sum((one) => one.fail), sum((one) => one.skip)];
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  const reasons = new Set(
    outcomes.flatMap(({ output }) => output.filter((line) => line.startsWith("skipped: "))),
  );
  console.log(`\nin ${seconds} s, CPU ${Math.round(sum((one) => one.cpuSeconds))} s`);
  for (const reason of reasons) console.log(reason);
  for (const { files, output } of unsteady) {
    console.log(`\nunsteady: ${files.join(" ")}\n  It passed alone. At first it failed:`);
    for (const line of output) console.log(`    ${line}`);
  }
  for (const { files } of outcomes.filter((one) => one.fail > 0)) console.log(`failed: ${files.join(" ")}`);
  console.log(`\n ${pass} pass\n ${skip} skip\n ${fail} fail\n\n${pass} passed, ${fail} failed`);
  return fail === 0 && files.length > 0;
}
