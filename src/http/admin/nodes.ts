import { Type } from "@sinclair/typebox";
import type { About } from "../../api/about.ts";
import { amountUsd, answerOf, count, listOf, oneOf, time } from "../../api/answers.ts";
import type { Refusal } from "../../errors/refusal.ts";
import type { NodeReport } from "../../store/nodes.ts";
import { isoTime } from "../../units/clock.ts";
import { usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint, Exchange } from "../endpoint.ts";
import { invalidField, repeated } from "../fields.ts";
import { ok, type Reply } from "../reply.ts";
import { guarded } from "./token.ts";

/** The gateways that share a store, and the closing of one that will never come back: docs/scaling.md. */
export const adminNodeEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/admin/nodes", about: NODES.list, handle: guarded(list) },
  { method: "POST", path: "/admin/nodes/:id/close", about: NODES.close, handle: guarded(close) },
];

const NodeAnswer = answerOf(
  {
    id: Type.String(),
    object: Type.Literal("node"),
    state: oneOf(["alive", "silent", "left"]),
    lease_expires_at: time,
    epoch: count,
    reserved_usd: amountUsd,
  },
  "Node",
);

const NODES = {
  list: {
    summary: "Lists the gateways that share the store",
    details:
      "A `silent` node has lost its lease without leaving: the part of balances that it was granted, `reserved_usd`, stays reserved for it. With SQLite there are no nodes.",
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

async function list(_: Exchange, { nodes }: HttpDeps): Promise<Reply> {
  return ok({ object: "list", data: (await nodes.list()).map(view) });
}

const view = ({ name, state, leaseUntil, epoch, reserved }: NodeReport) => ({
  id: name,
  object: "node",
  state,
  lease_expires_at: isoTime(leaseUntil),
  epoch,
  reserved_usd: usdFromNano(reserved),
});

async function close({ params }: Exchange, { nodes }: HttpDeps): Promise<Reply | Refusal> {
  const id = params.id ?? "";
  switch (await nodes.close(id)) {
    case "closed":
      return ok({ id, state: "left" });
    case "alive":
      return invalidField(
        "id",
        `Node \`${repeated(id)}\` still has a lease: stop it, or wait for the lease to end.`,
      );
    case "unknown":
      return invalidField("id", `There is no node \`${repeated(id)}\`.`);
  }
}
