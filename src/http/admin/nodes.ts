import { NODES } from "../../api/nodes.ts";
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
