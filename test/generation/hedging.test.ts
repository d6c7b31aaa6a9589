import { expect, test } from "bun:test";
import { LOST_HEDGE } from "../../src/ledger/receipt.ts";
import { silence, sse } from "../fakes/behaviours.ts";
import { hostRow } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { heldNano, openTestGateway, read, requestBody } from "./test-gateway.ts";

const { startHost } = openedPerTest();

test("the host that was asked as well and was slower is left, and not charged for", async () => {
  const slow = await startHost(() => silence());
  const fast = await startHost(() => sse(chatText().events));
  const attempts = {
    firstTokenMs: 30_000,
    maxHosts: 3,
    hedgeMs: 20,
    chunkGapMs: 120_000,
    totalMs: 1_200_000,
  };
  const rows = [hostRow(slow, { id: "slow" }), hostRow(fast, { id: "fast" })];
  const [hedged, alone] = [
    await openTestGateway(rows, { settings: { attempts } }),
    await openTestGateway(rows.slice(1)),
  ];
  const body = requestBody("chat.completions", { stream: true });

  const answer = await hedged.send("chat.completions", body);
  expect(await read(answer)).toEndWith("data: [DONE]\n\n");
  await (await slow.arrived(0)).gone;
  const receipt = hedged.receipt(answer);
  expect(
    receipt.attempts.map(({ host: id, outcome }: { host: string; outcome: string }) => `${id} ${outcome}`),
  ).toEqual([`slow ${LOST_HEDGE}`, "fast opened"]);
  expect(receipt).toMatchObject({ state: "settled", host: "fast" });

  const plain = await alone.send("chat.completions", body);
  await read(plain);
  expect(receipt.cost_usd).toBe(alone.receipt(plain).cost_usd);
  expect(await heldNano(hedged)).toBe(0 as never);
  await hedged.close();
  await alone.close();
});
