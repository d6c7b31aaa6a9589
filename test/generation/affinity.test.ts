import { expect, test } from "bun:test";
import { sse, status } from "../fakes/behaviours.ts";
import { hostRow } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { openTestGateway, read, requestBody } from "./test-gateway.ts";

const { startHost } = openedPerTest();

test("a conversation stays with the host that answered it; others go where they would have gone", async () => {
  const fine = sse(chatText().events);
  const first = await startHost((_, n) => (n === 0 ? status(503) : fine));
  const second = await startHost(() => fine);
  const gateway = await openTestGateway([hostRow(first, { id: "first" }), hostRow(second, { id: "second" })]);
  const turn = async (messages: object[], headers = new Headers()): Promise<string> => {
    const body = requestBody("chat.completions", { messages, stream: true });
    const answer = await gateway.send("chat.completions", body, undefined, headers);
    await read(answer);
    return gateway.receipt(answer).host;
  };
  const opening = { role: "user", content: "Hello" };
  const answered = [opening, { role: "assistant", content: "Hi" }, { role: "user", content: "And?" }];
  const session = new Headers({ "x-session-id": "s1" });

  expect(await turn([opening])).toBe("second");
  expect(await turn(answered)).toBe("second");
  expect(await turn([{ role: "user", content: "Another" }, ...answered.slice(1)])).toBe("first");
  expect(await turn([opening])).toBe("first");
  expect(await turn(answered)).toBe("first");
  expect(await turn([opening], session)).toBe("first");
  expect(first.requests).toHaveLength(5);
  await gateway.close();
});

test.each([
  ["an order", { order: ["second"] }],
  ["a filter", { ignore: ["first"] }],
])("a conversation that its client sent to a host by %s stays there without it", async (_, provider) => {
  const fine = sse(chatText().events);
  const first = await startHost(() => fine);
  const second = await startHost(() => fine);
  const gateway = await openTestGateway([hostRow(first, { id: "first" }), hostRow(second, { id: "second" })]);
  const turn = async (more: object): Promise<string> => {
    const body = requestBody("chat.completions", { ...more, stream: true });
    const session = new Headers({ "x-session-id": "s1" });
    const answer = await gateway.send("chat.completions", body, undefined, session);
    await read(answer);
    return gateway.receipt(answer).host;
  };
  expect(await turn({ provider })).toBe("second");
  expect(await turn({})).toBe("second");
  await gateway.close();
});
