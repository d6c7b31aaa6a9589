import { expect, test } from "bun:test";
import { json, sse, status } from "../fakes/behaviours.ts";
import { type Behaviour, type FakeHost, hostRow } from "../fakes/host.ts";
import { chatError, chatText } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { read, requestBody } from "./test-gateway.ts";

/**
 * A host's sentence may repeat the prompt. The client receives it; a receipt, which is stored, keeps the
 * host's code only.
 */
const PROMPT = "the canary in the prompt";
const { startHost, openGateway, serving } = openedPerTest();

const CASES: [string, Behaviour, number, string][] = [
  ["a verdict on the request", status(400, {}, `I do not like "${PROMPT}"`), 400, "status 400: fake_error"],
  ["a failure", status(500, {}, `failed at "${PROMPT}"`), 200, "status 500: fake_error"],
  ["an error as the first event", sse([chatError(`failed at "${PROMPT}"`)]), 200, "server_error"],
];

test.each(CASES)("%s: no word of the prompt stays in the receipt", async (_what, says, answered, kept) => {
  const { gateway } = await serving([[says], [sse(chatText().events)]]);
  const messages = [{ role: "user", content: PROMPT }];
  const answer = await gateway.send(
    "chat.completions",
    requestBody("chat.completions", { stream: true, messages }),
  );
  expect(answer.status).toBe(answered);
  if (answered === 400) expect(await read(answer)).toContain("canary");
  else await read(answer);
  const receipt = gateway.receipt(answer);
  expect(receipt.attempts[0].detail).toBe(kept);
  expect(JSON.stringify(receipt)).not.toContain("canary");
});

const KEY = "sk-operators-own-key-1";
const HEADER = "operators-header-1";
type Says = (leak: string) => Behaviour;
const DELTA = chatText([" one", " two"]).events.slice(0, 2);
const LEAKS: [what: string, stream: boolean, says: Says][] = [
  ["a verdict", false, (leak) => status(400, {}, leak)],
  ["a verdict on a stream", true, (leak) => status(422, {}, leak)],
  ["a code", false, (leak) => json({ error: { message: "no", code: leak.split(" ")[0] } }, 400)],
  ["a field", false, (leak) => json({ error: { message: "no", param: leak } }, 400)],
  ["an error with 200", false, (leak) => json({ error: { message: leak, type: "invalid_request_error" } })],
  ["a failure", false, (leak) => json({ error: { message: leak, code: KEY } }, 500)],
  ["a page", false, (leak) => status(400, {}, `<html><body>${leak}</body></html>`)],
  ["an error in a stream", true, (leak) => sse([...DELTA, chatError(leak)])],
];

test.each(LEAKS)("%s: nobody sees the operator's key and address", async (_what, stream, says) => {
  const leak = () => `${KEY} and ${HEADER} at ${fake.url}/v1`;
  const fake: FakeHost = await startHost(() => says(leak()));
  const gateway = await openGateway([hostRow(fake, { id: "h", apiKey: KEY, headers: { "x-own": HEADER } })]);
  const messages = [{ role: "user", content: "Hello" }];
  const answer = await gateway.send(
    "chat.completions",
    requestBody("chat.completions", { stream, messages }),
  );
  const text = `${await read(answer)} ${JSON.stringify(gateway.receipt(answer))}`;
  for (const secret of [KEY, HEADER, "127.0.0.1", new URL(fake.url).port]) expect(text).not.toContain(secret);
});
