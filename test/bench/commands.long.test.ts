import { expect, test } from "bun:test";
import { join } from "node:path";

/** Each suite as a small run, with the options that its file names, and a row that its table has. */
const SUITES: [command: string, row: string][] = [
  ["allocations --rounds 1 --seconds 0.2 --streams 64", "all"],
  ["attacks --seconds 0.3 --keys 4 --only requests", "small requests, 60 keys without credit"],
  ["bodies --rounds 1 --loads 2x1", "2 × 1 MB"],
  ["events --rounds 1 --deltas 20 --streams 4", "chat, alike"],
  ["failover --rounds 2", "refused connection"],
  ["macro --rounds 1 --seconds 0.1 --streams 4 --warm 0.1", "gateway"],
  ["neighbour --rounds 1 --seconds 0.2", "bodies of 1 MB"],
  ["pause --rounds 1 --minutes 0.0001 --requests 64", "bare proxy, Bun as it is"],
  ["settle --seconds 0.3 --rate 200", ""],
  ["sizing --seconds 0.1 --rounds 1 --open 100 --memory 20", "whole answers"],
  ["soak --minutes 0.02 --streams 40 --pace steady", "0"],
  ["transport --rounds 1 --posts 40 --streams 4", "fetch"],
];

test.each(SUITES)(
  "`bun run bench %s` prints its table",
  async (command, row) => {
    const child = Bun.spawn(
      [process.execPath, join(import.meta.dir, "../../bench/run.ts"), ...command.split(" ")],
      {
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    if ((await child.exited) !== 0) throw new Error(err);
    const rows = out.split("\n").filter((line) => line.startsWith("| "));
    expect(rows[1]).toMatch(/^(\| --- )+\|$/);
    expect(rows.slice(2).flatMap((line) => line.split(" | "))).toContainEqual(expect.stringContaining(row));
    expect(out).not.toMatch(/NaN|Infinity|undefined/);
  },
  300_000,
);

test("a suite that is not there is named, with those that are", async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../bench/run.ts"), "speed"], {
    stdout: "ignore",
    stderr: "pipe",
  });
  expect(await new Response(child.stderr).text()).toContain('no suite "speed": micro, events,');
  expect(await child.exited).toBe(1);
});
