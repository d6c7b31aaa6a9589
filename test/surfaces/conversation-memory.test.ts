import { expect, spyOn, test } from "bun:test";
import { ConversationMemory, Lanes } from "../../src/surfaces/responses/conversation-memory.ts";

const items = (text: string) => [Buffer.from(`{"content":"${text}"}`)];
const text = (found: readonly Uint8Array[] | null) =>
  found?.map((item) => Buffer.from(item).toString()) ?? null;

test("conversations are kept in so many bytes, and those continued longest ago are forgotten first", () => {
  const memory = new ConversationMemory(10_000);
  const connections = [new Lanes(memory, "bal_1"), new Lanes(memory, "bal_1"), new Lanes(memory, "bal_1")];
  for (const [n, lanes] of connections.entries()) lanes.keep(null, `resp_${n}`, [], items("x".repeat(2_500)));
  expect(connections[0]!.find("resp_0", null)).not.toBeNull();
  const last = new Lanes(memory, "bal_1");
  last.keep(null, "resp_3", [], items("x".repeat(2_500)));
  expect(connections.map((lanes, n) => lanes.find(`resp_${n}`, null) !== null)).toEqual([true, false, true]);
  expect(memory.bytes).toBeLessThanOrEqual(10_000);
  last.keep(null, "resp_4", [], items("x".repeat(20_000)));
  expect(last.find("resp_4", null)).toBeNull();
  for (const lanes of [...connections, last]) lanes.close();
  expect(memory.bytes).toBe(0);
});

test("whoever keeps most of them forgets their own, and not the few of others", () => {
  const memory = new ConversationMemory(10_000);
  const [one, many] = [new Lanes(memory, "bal_1"), new Lanes(memory, "bal_2")];
  one.keep(null, "resp_1", [], items("x".repeat(2_000)));
  for (let n = 0; n < 20; n++) many.keep(`lane_${n}`, `resp_${n}`, [], items("x".repeat(2_000)));
  expect(one.find("resp_1", null)).not.toBeNull();
  expect(many.find("resp_19", "lane_19")).not.toBeNull();
  expect(many.find("resp_0", "lane_0")).toBeNull();
  expect(memory.bytes).toBeLessThanOrEqual(10_000);
});

test("a lane knows its newest response alone, and another lane may go on from it", () => {
  const lanes = new Lanes(new ConversationMemory(10_000), "bal_1");
  lanes.keep("a", "resp_1", [], items("one"));
  expect(text(lanes.find("resp_1", "b"))).toEqual(['{"content":"one"}']);
  lanes.keep("a", "resp_2", [], items("two"));
  expect(lanes.find("resp_1", "a")).toBeNull();
  lanes.failed("b", "resp_2");
  expect(lanes.find("resp_2", "a")).not.toBeNull();
  lanes.failed("a", "resp_2");
  expect(lanes.find("resp_2", "a")).toBeNull();
});

test("where hosts give two answers one id, a lane goes on from its own", () => {
  const lanes = new Lanes(new ConversationMemory(10_000), "bal_1");
  lanes.keep("a", "resp_same", [], items("of a"));
  lanes.keep("b", "resp_same", [], items("of b"));
  expect(text(lanes.find("resp_same", "b"))).toEqual(['{"content":"of b"}']);
});

test("what stands before the newest compaction is not kept", () => {
  const lanes = new Lanes(new ConversationMemory(10_000), "bal_1");
  const compaction = Buffer.from('{"type":"compaction","encrypted_content":"e"}');
  lanes.keep(null, "resp_1", items("old"), [
    Buffer.from('{"content":"\\"compaction\\""}'),
    compaction,
    ...items("new"),
  ]);
  expect(text(lanes.find("resp_1", null))).toEqual([compaction.toString(), '{"content":"new"}']);
});

test("what a conversation had before is not looked through for a compaction again", () => {
  const lanes = new Lanes(new ConversationMemory(10_000), "bal_1");
  const before = items('\\"compaction\\"');
  const parse = spyOn(JSON, "parse");
  lanes.keep(null, "resp_1", [...before, ...before], items("new"));
  expect(parse).toHaveBeenCalledTimes(0);
  parse.mockRestore();
});
