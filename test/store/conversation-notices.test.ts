import { expect, test } from "bun:test";
import { conversationsIn, heldMessage } from "../../src/store/nodes/conversation-notices.ts";

const ROUTE = { conversation: 7, keptMs: 300_000, model: "a/b", host: "h", hostModel: "m" };

test.each<[string, unknown, unknown[]]>([
  ["routes as this version sends them", [ROUTE, { ...ROUTE, more: true }], [ROUTE, { ...ROUTE, more: true }]],
  ["one without its conversation", [{ ...ROUTE, conversation: undefined }, ROUTE], [ROUTE]],
  ["one whose conversation is a text", [{ ...ROUTE, conversation: "7" }, ROUTE], [ROUTE]],
  ["one that is not kept for any time", [{ ...ROUTE, keptMs: null }, ROUTE], [ROUTE]],
  ["one without its host's model", [{ ...ROUTE, hostModel: undefined }, ROUTE], [ROUTE]],
  ["null, and a number", [null, 5, ROUTE], [ROUTE]],
  ["no list", { routes: [ROUTE] }, []],
])("of another version's notification only what is a route is remembered: %s", (_what, sent, routes) => {
  expect(conversationsIn(`n1 ${JSON.stringify(sent)}`)).toEqual({ node: "n1", routes } as never);
});

test.each(["", "n1", "n1 {", "{"])("anybody's notification %p is no route and no answer", (payload) => {
  expect(conversationsIn(payload).routes).toEqual([]);
  expect(heldMessage(payload)).toBeNull();
});
