/**
 * `bun run bench [micro|events|failover|macro|neighbour|transport|attacks|scaling|workers|pause|payments|peers|regression|
 * sizing|soak]`: one suite, or all but the last nine, which are asked for by name. Each is described at the top of its file.
 */
const SUITES = ["micro", "events", "failover", "macro", "neighbour", "transport", "allocations"] as const;
const BY_NAME = [
  "attacks",
  "scaling",
  "workers",
  "pause",
  "payments",
  "peers",
  "regression",
  "sizing",
  "soak",
] as const;

const [wanted] = process.argv.slice(2);
const chosen = wanted === undefined ? SUITES : [...SUITES, ...BY_NAME].filter((suite) => suite === wanted);
if (chosen.length === 0) {
  console.error(`There is no suite "${wanted}": ${[...SUITES, ...BY_NAME].join(", ")}.`);
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
