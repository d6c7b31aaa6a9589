import { describe, expect, spyOn, test } from "bun:test";
import {
  type CreateEvent,
  orphanResult,
  readCreateEvent,
} from "../../../src/surfaces/responses/create-event.ts";

/** An event as it comes over a WebSocket. */
function read(json: object): CreateEvent {
  const event = readCreateEvent(Buffer.from(JSON.stringify({ type: "response.create", ...json })));
  if ("why" in event) throw new Error(event.why.message);
  return event;
}

test("what is kept of an event does not keep its whole message in memory", () => {
  const event = read({
    instructions: "x".repeat(1_000_000),
    model: "m",
    input: [{ role: "user", content: "Hi" }],
  });
  const small = [event.items, ...event.members.filter(({ length }) => length < 1_000)];
  expect(small).toHaveLength(2);
  for (const { buffer } of small) expect(buffer.byteLength).toBeLessThan(1_000);
});

const result = (call_id: string) => ({ type: "function_call_output", call_id, output: "4" });
const before = (text: string) => [Buffer.from(JSON.stringify({ content: text }))];

describe("results of calls that nobody made", () => {
  test("are found, whether the call is in the conversation, in the new input or nowhere", () => {
    const call = { type: "function_call", call_id: "new" };
    const known = [Buffer.from(JSON.stringify({ type: "function_call", call_id: "old" }))];
    const input = [result("old"), call, result("new"), result("none")];
    expect(orphanResult(read({ input: input.slice(0, 3) }), known)).toBeNull();
    expect(orphanResult(read({ input }), known)?.details.param).toBe("input[3].call_id");
  });

  // Each was once compared with all of the input.
  test("are looked for in time that grows with their number", () => {
    const input = Array.from({ length: 24_000 }, () => result("a"));
    expect(orphanResult(read({ input }), before("a").concat(Buffer.from('"a"')))).toBeNull();
  });

  test("are looked for in so many bytes, and then left to the host", () => {
    const conversation = before("x".repeat(2_000_000));
    const ids = Array.from({ length: 100 }, (_, n) => `call_${n}`);
    const known = [...conversation, Buffer.from(JSON.stringify(ids))];
    const input = [...ids.map(result), result("none")];
    const includes = spyOn(Buffer.prototype, "includes");
    expect(orphanResult(read({ input }), known)).toBeNull();
    const searched = includes.mock.contexts.reduce((sum: number, bytes) => sum + (bytes as Buffer).length, 0);
    includes.mockRestore();
    expect(searched).toBeLessThan(20_000_000);
    expect(orphanResult(read({ input: [result("none")] }), known)).not.toBeNull();
  });
});
