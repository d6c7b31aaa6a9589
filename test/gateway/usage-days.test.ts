import { afterAll, expect, test } from "bun:test";
import { type Clock, DAY_MS, type EpochMs, systemClock } from "../../src/units/clock.ts";
import { open } from "./open.ts";

/** It is noon in UTC, so that no test runs into midnight. */
const started = systemClock.now();
let offsetMs = DAY_MS / 2 - (started % DAY_MS) - 2 * DAY_MS;
const clock: Clock = { ...systemClock, now: () => (systemClock.now() + offsetMs) as EpochMs };
const gateway = await open("", {}, clock);
const { key, recovery_secret } = await gateway.key(1);
const chats = async (count: number) => {
  for (let sent = 0; sent < count; sent++) await gateway.chat(key, { model: "sim/echo" });
};
await chats(1);
offsetMs += DAY_MS;
await chats(2);
offsetMs += DAY_MS;
await chats(3);
afterAll(() => gateway.close());

const midnight = new Date(started - (started % DAY_MS)).toISOString();
const DAYS: [period: string, requests: number, before: number, until: string | null][] = [
  ["today", 3, 2, null],
  ["yesterday", 2, 1, midnight],
  ["month", 6, 0, null],
];

test.each(DAYS)(
  "%s has %d requests, of an owner and of everybody, next to %d",
  async (period, requests, before, until) => {
    const own = (await gateway.send("GET", `/v1/usage?period=${period}`, { bearer: recovery_secret })).json;
    const all = (await gateway.admin(`/admin/usage?period=${period}`)).json;
    const overview = (await gateway.admin(`/admin/overview?period=${period}`)).json;
    const sumOf = (stretches: readonly { requests: number }[]) =>
      stretches.reduce((sum, stretch) => sum + stretch.requests, 0);
    expect([own.until, all.until, overview.until]).toEqual([until, until, until]);
    expect([sumOf(own.stretches), all.total.requests, sumOf(overview.stretches)]).toEqual(
      Array(3).fill(requests),
    );
    expect(own.keys).toMatchObject([{ requests }]);
    const each = all.total.cost_usd / requests;
    expect(Math.round(all.total.cost_before_usd / each)).toBe(before);
  },
);
