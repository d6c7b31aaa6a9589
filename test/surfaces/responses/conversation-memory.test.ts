import { expect, spyOn, test } from "bun:test";
import {
  type Continuation,
  ConversationMemory,
  Lanes,
} from "../../../src/surfaces/responses/conversation-memory.ts";

const items = (text: string) => [Buffer.from(`{"content":"${text}"}`)];
const text = (found: Continuation | null) =>
  found?.items()?.map((item) => Buffer.from(item).toString()) ?? null;
const after = (items: readonly Uint8Array[]): Continuation => ({
  bytes: 0,
  items: () => items,
  release() {},
});

test("conversations are kept in so many bytes, and those continued longest ago are forgotten first", () => {
  const memory = new ConversationMemory(10_000);
  const connections = [new Lanes(memory, "bal_1"), new Lanes(memory, "bal_1"), new Lanes(memory, "bal_1")];
  for (const [n, lanes] of connections.entries())
    lanes.keep(null, `resp_${n}`, after([]), items("x".repeat(2_500)));
  expect(connections[0]!.resume("resp_0", null)).not.toBeNull();
  const last = new Lanes(memory, "bal_1");
  last.keep(null, "resp_3", after([]), items("x".repeat(2_500)));
  expect(connections.map((lanes, n) => lanes.resume(`resp_${n}`, null) !== null)).toEqual([
    true,
    false,
    true,
  ]);
  expect(memory.bytes).toBeLessThanOrEqual(10_000);
  last.keep(null, "resp_4", after([]), items("x".repeat(20_000)));
  expect(last.resume("resp_4", null)).toBeNull();
  for (const lanes of [...connections, last]) lanes.close();
  expect(memory.bytes).toBe(0);
});

test("the sender that keeps most of them forgets its own, and not the few of others", () => {
  const memory = new ConversationMemory(10_000);
  const [one, many] = [new Lanes(memory, "bal_1"), new Lanes(memory, "bal_2")];
  one.keep(null, "resp_1", after([]), items("x".repeat(2_000)));
  for (let n = 0; n < 20; n++) many.keep(`lane_${n}`, `resp_${n}`, after([]), items("x".repeat(2_000)));
  expect(one.resume("resp_1", null)).not.toBeNull();
  expect(many.resume("resp_19", "lane_19")).not.toBeNull();
  expect(many.resume("resp_0", "lane_0")).toBeNull();
  expect(memory.bytes).toBeLessThanOrEqual(10_000);
});

test("a lane knows its newest response alone, and another lane may go on from it", () => {
  const lanes = new Lanes(new ConversationMemory(10_000), "bal_1");
  lanes.keep("a", "resp_1", after([]), items("one"));
  expect(text(lanes.resume("resp_1", "b"))).toEqual(['{"content":"one"}']);
  lanes.keep("a", "resp_2", after([]), items("two"));
  expect(lanes.resume("resp_1", "a")).toBeNull();
  lanes.failed("b", "resp_2");
  expect(lanes.resume("resp_2", "a")).not.toBeNull();
  lanes.failed("a", "resp_2");
  expect(lanes.resume("resp_2", "a")).toBeNull();
});

test("where hosts give two answers one id, a lane goes on from its own", () => {
  const lanes = new Lanes(new ConversationMemory(10_000), "bal_1");
  lanes.keep("a", "resp_same", after([]), items("of a"));
  lanes.keep("b", "resp_same", after([]), items("of b"));
  expect(text(lanes.resume("resp_same", "b"))).toEqual(['{"content":"of b"}']);
});

test("what stands before the newest compaction is not kept", () => {
  const lanes = new Lanes(new ConversationMemory(10_000), "bal_1");
  const compaction = Buffer.from('{"type":"compaction","encrypted_content":"e"}');
  lanes.keep(null, "resp_1", after(items("old")), [
    Buffer.from('{"content":"\\"compaction\\""}'),
    compaction,
    ...items("new"),
  ]);
  expect(text(lanes.resume("resp_1", null))).toEqual([compaction.toString(), '{"content":"new"}']);
});

test("what a conversation had before is not looked through for a compaction again", () => {
  const lanes = new Lanes(new ConversationMemory(10_000), "bal_1");
  const before = items('\\"compaction\\"');
  const parse = spyOn(JSON, "parse");
  lanes.keep(null, "resp_1", after([...before, ...before]), items("new"));
  expect(parse).toHaveBeenCalledTimes(0);
  parse.mockRestore();
});

test("what a turn continues is not kept for it: it may be forgotten meanwhile, and then what follows is not found", () => {
  const memory = new ConversationMemory(10_000);
  const lanes = new Lanes(memory, "bal_1");
  lanes.keep("a", "resp_1", after([]), items("x".repeat(4_000)));
  const turn = lanes.resume("resp_1", "a")!;
  for (const name of ["b", "c"]) lanes.keep(name, `resp_${name}`, after([]), items("x".repeat(4_000)));
  expect(turn.items()).toBeNull();
  lanes.keep("a", "resp_2", turn, items("more"));
  expect([lanes.resume("resp_1", "a"), lanes.resume("resp_2", "a")]).toEqual([null, null]);
  expect(memory.bytes).toBeLessThanOrEqual(10_000);
});

test("a turn that forks a lane continues what that lane had, though the lane has gone on, and counts until it ends", () => {
  const memory = new ConversationMemory(10_000);
  const lanes = new Lanes(memory, "bal_1");
  lanes.keep("a", "resp_1", after([]), items("one"));
  const before = memory.bytes;
  const fork = lanes.resume("resp_1", "b")!;
  expect(memory.bytes).toBeGreaterThan(before);
  lanes.keep("a", "resp_2", lanes.resume("resp_1", "a")!, items("two"));
  expect(text(fork)).toEqual(['{"content":"one"}']);
  lanes.keep("b", "resp_3", fork, items("three"));
  fork.release();
  expect(text(lanes.resume("resp_3", "b"))).toEqual(['{"content":"one"}', '{"content":"three"}']);
  lanes.close();
  expect(memory.bytes).toBe(0);
});
