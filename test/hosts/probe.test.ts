import { afterEach, expect, test } from "bun:test";
import type { SurfaceName } from "../../src/catalog/catalog.ts";
import { Destinations } from "../../src/hosts/destination.ts";
import { Http1Transport } from "../../src/hosts/http1/transport.ts";
import { probeFree } from "../../src/hosts/probe.ts";
import { json, status } from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { closeAll } from "../fakes/close-all.ts";
import { hostRow, startFakeHost } from "../fakes/host.ts";
import { chatText, responsesText } from "../fakes/transcripts.ts";
import { route } from "../routing/world.ts";

const opened: { close(): unknown }[] = [];
afterEach(() => closeAll(...opened.splice(0)));

/** Whether a host that answers so, and takes no fewer tokens than its language allows, is free. */
async function isFree(spoken: SurfaceName, cost?: number): Promise<boolean> {
  const whole = spoken === "responses" ? responsesText(["Hi"]).whole : chatText(["Hi"]).whole;
  const answer = { ...whole, usage: { ...(whole as { usage: object }).usage, cost } };
  const least = spoken === "responses" ? 16 : 1;
  const host = await startFakeHost((request) => {
    const { max_output_tokens, max_tokens } = request.json();
    return (max_output_tokens ?? max_tokens) < least ? status(400) : json(answer);
  });
  const clock = new ManualClock();
  const transport = new Http1Transport({ clock, onFault: console.error });
  opened.push(transport, host);
  const { id: _, ...on } = hostRow(host, { speaks: [spoken] });
  return probeFree(route("a", { free: true, on }), { transport, destinations: new Destinations(), clock });
}

test.each<[SurfaceName, number | undefined, boolean]>([
  ["chat.completions", undefined, true],
  ["chat.completions", 0, true],
  ["chat.completions", 0.001, false],
  ["responses", undefined, true],
  ["responses", 0.001, false],
])("a route on %s that answers a probe at a cost of %p is free: %p", async (spoken, cost, free) => {
  expect(await isFree(spoken, cost)).toBe(free);
});
