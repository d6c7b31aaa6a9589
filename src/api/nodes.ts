import { type Static, Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import { amountUsd, answerOf, count, listOf, namedAnswer, oneOf, time } from "./answers.ts";

const NodeAnswer = namedAnswer("Node", {
  id: Type.String(),
  object: Type.Literal("node"),
  state: oneOf(["alive", "silent", "left"]),
  lease_expires_at: time,
  epoch: count,
  reserved_usd: amountUsd,
  differs_in: Type.Array(Type.String()),
});

export type NodeAnswer = Static<typeof NodeAnswer>;

export const NODES = {
  list: {
    summary: "Lists the gateways that share the store",
    details:
      "A `silent` node has lost its lease without leaving: the part of balances that it was granted, `reserved_usd`, stays reserved for it. `differs_in` names `GATEWAY_ADMIN_TOKEN` and the members of the configuration that are not the same at that node as at the one that answers; it should be empty. With SQLite there are no nodes.",
    who: ["admin"],
    answers: { 200: listOf(NodeAnswer) },
  },
  close: {
    summary: "Frees the balances reserved for a node whose journal is lost for good",
    details:
      "Refused while the node has a lease. A node with `journal: postgres` loses nothing, and is closed automatically within half a minute. For any other node, what it spent but never shipped is not charged; should it come back, its journal is shipped after all.",
    who: ["admin"],
    answers: { 200: answerOf({ id: Type.String(), state: Type.Literal("left") }) },
  },
} as const satisfies Record<string, About>;
