import { expect } from "bun:test";
import { LEASE_MS } from "../../src/ledger/node-lease.ts";
import { type Clock, type EpochMs, systemClock } from "../../src/units/clock.ts";
import { json, status } from "../fakes/behaviours.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/** Several gateways of one store, or one, whose only host fails for a while. */
export async function hostThatFails(gateways: number, store: string): Promise<void> {
  let later = 0;
  const clock: Clock = {
    ...systemClock,
    now: () => (systemClock.now() + later) as EpochMs,
    elapsedMs: () => systemClock.elapsedMs() + later,
  };
  let isDown = true;
  const host = await startFakeHost(() => (isDown ? status(500) : json(chatText(["Yes."]).whole)));
  const nodes = await Promise.all(
    Array.from({ length: gateways }, () =>
      open(
        `${store}
hosts: [{ id: h, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:
  - id: test/model
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 1, output: 1 }
    routes: [{ host: h, model: m }]
`,
        {},
        clock,
      ),
    ),
  );
  const { key } = await nodes[0]!.key(1);
  const send = () =>
    Promise.all(nodes.map((node) => node.chat(key, { model: "test/model", max_tokens: 10 })));
  const events = async () =>
    (await nodes.at(-1)!.admin("/admin/events")).json.data.filter(({ type }: { type: string }) =>
      type.startsWith("host."),
    );
  // Three failures open its circuit.
  for (let n = 0; n < 3; n++) await send();
  // Less than a lease of a node, which would need a new one.
  const untilEvents = (count: number) =>
    until(async () => {
      later += LEASE_MS / 2;
      for (let tries = 0; tries < TRIES_A_JUMP; tries++) {
        await send();
        if ((await events()).length >= count) return true;
        await Bun.sleep(100);
      }
      return false;
    });
  await untilEvents(1);
  isDown = false;
  await untilEvents(2);
  later += LEASE_MS / 2;
  await send();
  const recorded = await events();
  expect(recorded.map(({ type }: { type: string }) => type)).toEqual(["host.up", "host.down"]);
  expect(recorded[0]).toMatchObject({ balance_id: null, data: { host: "h" } });
  for (const node of nodes) await node.close();
  await host.close();
}

const TRIES_A_JUMP = 2;
