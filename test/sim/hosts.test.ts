import { expect, test } from "bun:test";
import type { HostCall } from "../../src/hosts/transport.ts";
import { epochMs } from "../../src/units/clock.ts";
import { VirtualClock } from "./clock.ts";
import { type Served, SimulatedHosts, THOUGHTS_PER_SECOND } from "./hosts.ts";
import { Random } from "./random.ts";

test("no simulated stream ends before its host has thought for as long as it bills, however few its words are", () => {
  const time = new VirtualClock(epochMs(0));
  const served = new Map<string, Served[]>();
  const hosts = new SimulatedHosts(served, time.life().clock, new Random(1), () => 0);
  for (let n = 0; n < 300; n++) hosts.open(streamed(`r${n}`));
  while (time.step(3_600_000));
  const ended = [...served.values()].flat().filter(({ endedMs }) => endedMs !== null);
  const thinking = ended.filter(({ script }) => script.thoughts > 0);
  expect(thinking.length).toBeGreaterThan(50);
  expect(thinking.filter(({ script }) => script.words < 20).length).toBeGreaterThan(5);
  for (const { script, receivedMs, endedMs } of thinking)
    expect(endedMs! - receivedMs).toBeGreaterThanOrEqual((script.thoughts * 1_000) / THOUGHTS_PER_SECOND);
});

function streamed(name: string): HostCall {
  const messages = [{ role: "user", content: `${name} xxx` }];
  const body = JSON.stringify({ model: "test/model", stream: true, messages });
  const host = { id: "a", baseUrl: "http://a.test/v1" };
  const to = { host, method: "POST", path: "/chat/completions", headers: {} } as const;
  return { to, headers: {}, body: [new TextEncoder().encode(body)] };
}
