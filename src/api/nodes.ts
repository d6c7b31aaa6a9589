import { type Static, Type } from "@sinclair/typebox";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./schema.ts";

const NodeAnswer = t.namedAnswer("Node", {
  id: Type.String(),
  object: Type.Literal("node"),
  state: t.oneOf(["alive", "silent", "left"]),
  lease_expires_at: t.time,
  epoch: t.count,
  reserved_usd: t.amountUsd,
  differs_in: Type.Array(Type.String()),
});

export type NodeAnswer = Static<typeof NodeAnswer>;

export const NODES = endpointsWith(
  { who: ["admin"] },
  {
    list: {
      summary: "Lists the gateways that share the store",
      details:
        "A `silent` node has lost its lease without leaving: the part of balances that it was granted, `reserved_usd`, stays reserved for it. `differs_in` names `GATEWAY_ADMIN_TOKEN` and the members of the configuration that are not the same at that node as at the one that answers; it should be empty. With SQLite there are no nodes.",
      answers: { 200: t.listOf(NodeAnswer) },
    },
    close: {
      summary: "Frees the balances reserved for a node whose journal is lost for good",
      details:
        "Refused while the node has a lease. A node with `journal: postgres` loses nothing, and is closed automatically within half a minute. For any other node, what it spent but never shipped is not charged; should it come back, its journal is shipped after all.",
      answers: { 200: t.object({ id: Type.String(), state: Type.Literal("left") }) },
    },
  },
) satisfies Record<string, About>;
