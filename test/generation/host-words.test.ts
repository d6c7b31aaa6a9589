import { afterAll, expect, test } from "bun:test";
import { sse, status } from "../fakes/behaviours.ts";
import { type Behaviour, type FakeHost, hostRow, startFakeHost } from "../fakes/host.ts";
import { chatError, chatText } from "../fakes/transcripts.ts";
import { ask, openHouse, read, type TestHouse } from "./house.ts";

/**
 * A host's sentence may repeat the prompt. The client is told it; a receipt, which is stored, keeps the
 * host's code only.
 */
const PROMPT = "the canary in the prompt";
const hosts: FakeHost[] = [];
const houses: TestHouse[] = [];
afterAll(async () => {
  await Promise.all(houses.map((house) => house.close()));
  await Promise.all(hosts.map((host) => host.close()));
});

const CASES: [string, Behaviour, number, string][] = [
  ["a verdict on the request", status(400, {}, `I do not like "${PROMPT}"`), 400, "status 400: fake_error"],
  ["a failure", status(500, {}, `failed at "${PROMPT}"`), 200, "status 500: fake_error"],
  ["an error as the first event", sse([chatError(`failed at "${PROMPT}"`)]), 200, "server_error"],
];

test.each(CASES)("%s: no word of the prompt stays in the receipt", async (_what, says, answered, kept) => {
  const opened = await Promise.all(
    [says, sse(chatText().events)].map((behaviour) => startFakeHost(() => behaviour)),
  );
  hosts.push(...opened);
  const rows = opened.map((host, n) => hostRow(host, { id: `h${n}`, speaks: ["chat.completions"] }));
  const house = await openHouse(rows);
  houses.push(house);
  const messages = [{ role: "user", content: PROMPT }];
  const answer = await house.send("chat.completions", ask("chat.completions", { stream: true, messages }));
  expect(answer.status).toBe(answered);
  if (answered === 400) expect(await read(answer)).toContain("canary");
  else await read(answer);
  const receipt = house.receipt(answer);
  expect(receipt.attempts[0].detail).toBe(kept);
  expect(JSON.stringify(receipt)).not.toContain("canary");
});
