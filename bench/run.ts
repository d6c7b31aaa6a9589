/**
 * `bun run bench [suite] [--option value]`: one suite, or all but those that run by name only. The top of its file says
 * what a suite measures and which options it has.
 */
const SUITES = ["micro", "events", "failover", "macro", "neighbour", "transport", "allocations"] as const;
const BY_NAME = [
  "attacks",
  "bodies",
  "crossings",
  "scaling",
  "workers",
  "pause",
  "payments",
  "peers",
  "regression",
  "settle",
  "sizing",
  "soak",
  "values",
] as const;

const [selected] = process.argv.slice(2);
const chosen =
  selected === undefined ? SUITES : [...SUITES, ...BY_NAME].filter((suite) => suite === selected);
if (chosen.length === 0) {
  console.error(`There is no suite "${selected}": ${[...SUITES, ...BY_NAME].join(", ")}.`);
  process.exit(1);
}
for (const suite of chosen) {
  console.log(`\n## ${suite}\n`);
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/${suite}.ts`, ...process.argv.slice(3)], {
    stdout: "inherit",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) process.exit(1);
}
