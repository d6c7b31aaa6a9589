import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSimulatedHost } from "../../../src/hosts/simulated/host.ts";
import { systemClock } from "../../../src/units/clock.ts";
import { systemRandom } from "../../../src/units/random.ts";
import { gateway } from "../command.ts";
import { MOVED } from "./litellm-configurations.ts";
import { anyModelAt, readPrinted, reported, tried } from "./printed.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "litellm-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const simulated = startSimulatedHost({ clock: systemClock, random: systemRandom, paceMs: 0 });
const host = anyModelAt(simulated.url);
afterAll(async () => {
  await host.stop(true);
  await simulated.stop();
});

const moved = async (yaml: string) => {
  writeFileSync(join(folder, "config.yaml"), yaml);
  return gateway(["import", "litellm", "config.yaml", "--out", "gateway.yaml"], {}, folder);
};

describe("gateway import litellm", () => {
  test.each(MOVED.map((row) => [row.from, row] as const))(
    "%s",
    async (_, { yaml, models, has = {}, leftOut, secrets = {} }) => {
      const run = await moved(yaml);
      expect([run.code, run.out]).toEqual([0, ""]);

      const file = join(folder, "gateway.yaml");
      const printed = readPrinted(file);
      const hosts = Object.fromEntries(
        printed.models.map(({ id, routes }) => [id, routes.map(({ host }) => host)]),
      );
      for (const [id, of] of Object.entries(models)) expect([id, hosts[id]]).toEqual([id, [...of]]);
      expect(Object.keys(hosts)).toEqual(expect.arrayContaining(Object.keys(models)));
      expect(printed).toMatchObject(has);

      const left = reported(run, "Left out");
      expect(left.map((line, at) => line.slice(0, leftOut[at]?.length))).toEqual([...leftOut]);

      const text = readFileSync(file, "utf8");
      for (const [name, secret] of Object.entries(secrets)) {
        expect(readFileSync(join(folder, "gateway.env"), "utf8")).toContain(`${name}=${secret}\n`);
        expect(text + run.out + run.err).not.toContain(secret);
      }
      if (Object.keys(secrets).length > 0)
        expect(statSync(join(folder, "gateway.env")).mode & 0o777).toBe(0o600);

      const [check, trial] = await tried(file, folder, `http://127.0.0.1:${host.port}/v1`);
      expect([check.code, check.err]).toEqual([0, ""]);
      expect([trial.err, trial.code, trial.out.match(/^FAIL.*/gm)]).toEqual(["", 0, null]);
    },
    30_000,
  );

  test("clients call models by the names that they had", async () => {
    await moved(MOVED[0]!.yaml);
    expect(readPrinted(join(folder, "gateway.yaml")).models.map(({ aliases }) => aliases)).toEqual([
      ["gpt-4o"],
      ["gpt-4o-mini"],
    ]);
  });

  test("writes all models of a pattern whose prices are known", async () => {
    await moved(MOVED.find(({ from }) => from.startsWith("a pattern"))!.yaml);
    const ids = readPrinted(join(folder, "gateway.yaml")).models.map(({ id }) => id);
    expect(ids.filter((id) => id.startsWith("deepseek/")).length).toBeGreaterThan(1);
  });

  test("prints to standard output without --out, and never a secret", async () => {
    writeFileSync(join(folder, "config.yaml"), MOVED.find(({ from }) => from.startsWith("Anthropic"))!.yaml);
    const run = await gateway(["import", "litellm", "config.yaml"], {}, folder);
    expect([run.code, run.out]).toEqual([0, expect.stringContaining("models:")]);
    expect(run.out + run.err).not.toContain("in-the-clear");
  });

  const REFUSED: [what: string, yaml: string, message: string, code: number][] = [
    ["a file without a model_list", "models: []\n", "has no model_list", 2],
    ["a file that is no YAML", "model_list: [\n", "is no YAML", 2],
    [
      "a file of which nothing can be carried",
      "model_list: [{ model_name: b, litellm_params: { model: bedrock/x } }]\n",
      "no model could be carried over",
      1,
    ],
  ];
  test.each(REFUSED)("refuses %s", async (_, yaml, message, code) => {
    const run = await moved(yaml);
    expect([run.code, run.err]).toEqual([code, expect.stringContaining(message)]);
  });

  test("never writes over a file", async () => {
    writeFileSync(join(folder, "gateway.yaml"), "mine");
    const run = await moved(MOVED.find(({ from }) => from.startsWith("Anthropic"))!.yaml);
    expect([run.code, run.err]).toEqual([2, expect.stringContaining("exists, and nothing was written")]);
    expect(readFileSync(join(folder, "gateway.yaml"), "utf8")).toBe("mine");
  });
});
