import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { until } from "../fakes/until.ts";
import { Network, networkMissing } from "./network.ts";

const missing = networkMissing();
if (missing !== null) console.warn(`skipped: networks of namespaces (${missing})`);

describe.skipIf(missing !== null)("a network of namespaces", () => {
  let network: Network;
  beforeAll(async () => {
    network = await Network.make(["a", "b", "c"], ["b", "c"]);
  });
  afterAll(() => network.remove());

  /** Nobody listens, so a machine that is reached refuses; one that is cut off says nothing. */
  async function receives(from: string, address: string, timeoutS: number): Promise<boolean> {
    const command = ["timeout", String(timeoutS), "bash", "-c", `echo > /dev/tcp/${address}/9`];
    const child = Bun.spawn([...network.on(from), ...command], { stderr: "pipe" });
    const error = await new Response(child.stderr).text();
    return error.includes("Connection refused");
  }
  const reaches = (from: string, address: string) => receives(from, address, 20);
  const isCutOff = async (from: string, address: string) => !(await receives(from, address, 0.5));

  test("every machine reaches every other one", async () => {
    expect(await reaches("a", network.address("b"))).toBe(true);
    expect(await reaches("b", network.address("c"))).toBe(true);
  });

  test("a machine that is deaf to another one receives from the third, and all again when it is healed", async () => {
    await network.deafen("a", "b");
    expect(await isCutOff("a", network.address("b"))).toBe(true);
    expect(await reaches("a", network.address("c"))).toBe(true);
    await network.heal("a");
    expect(await reaches("a", network.address("b"))).toBe(true);
  });

  test("some of what a machine sends and receives is lost, and nothing when it is healed", async () => {
    const tries = Array.from({ length: 40 }, (_, index) => index);
    await network.lose("a", 50);
    const cutOff = await Promise.all(tries.map(() => isCutOff("a", network.address("b"))));
    expect(new Set(cutOff)).toEqual(new Set([true, false]));
    await network.heal("a");
    const reached = await Promise.all(tries.map(() => reaches("a", network.address("b"))));
    expect(new Set(reached)).toEqual(new Set([true]));
  });

  test("a slow link still delivers", async () => {
    await network.slow("a", 100);
    expect(await reaches("a", network.address("b"))).toBe(true);
    await network.heal("a");
  });

  test("the shared address is nobody's, then the one's, then at once the other's", async () => {
    expect(await isCutOff("a", network.sharedAddress)).toBe(true);
    await network.takeShared("b");
    expect(await reaches("a", network.sharedAddress)).toBe(true);
    await network.deafen("a", "b");
    expect(await isCutOff("a", network.sharedAddress)).toBe(true);
    await network.heal("a");
    await network.leaveShared("b");
    expect(await isCutOff("a", network.sharedAddress)).toBe(true);
    await network.takeShared("c");
    expect(await reaches("a", network.sharedAddress)).toBe(true);
  });

  test("this machine has no route into it", async () => {
    const routes = Bun.spawnSync(["ip", "route", "show", "table", "all"]).stdout.toString();
    expect(routes).not.toContain(network.sharedAddress.replace(/\.\d+$/, "."));
  });

  test("when it is removed, nothing is left of it, not even what still ran there", async () => {
    const other = await Network.make(["alone"]);
    const child = Bun.spawn([...other.on("alone"), "sleep", "1000"]);
    // It is there once it has started its program.
    await until(() => readFileSync(`/proc/${child.pid}/comm`, "utf8") === "sleep\n");
    expect(namespaces()).toContain(other.name);
    await other.remove();
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    expect(namespaces()).not.toContain(other.name);
  });

  const namespaces = () => Bun.spawnSync(["ip", "netns", "list"]).stdout.toString();
});
