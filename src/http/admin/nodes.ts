import { NODES } from "../../api/nodes.ts";
import type { ChangeLog } from "../../customers/changes/change.ts";
import type { NodeReport } from "../../store/nodes/fleet.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField } from "../../units/errors/refusal.ts";
import { usdFromNano } from "../../units/usd.ts";
import { repeated } from "../fields.ts";
import { operation } from "../operation.ts";
import { list } from "../reply.ts";

/** The gateways that share a store, and the closing of one that will never come back: docs/scaling.md. */
export const adminNodeEndpoints = () => [
  operation("GET /admin/nodes", NODES.list, async (_, { books, config }) => {
    const differences = await config.nodeDifferences();
    return list((await books.nodes.list()).map((node) => view(node, differences.get(node.name) ?? [])));
  }),
  operation("POST /admin/nodes/:id/close", NODES.close, async ({ params: { id } }, { books }) => {
    const node = (await books.nodes.list()).find(({ name }) => name === id);
    // Nothing in the store says by whom a node was closed, so this is written first.
    if (node !== undefined && node.state !== "alive") await logClosing(node, books.changes);
    switch (await books.nodes.close(id)) {
      case "closed":
        return { id, state: "left" as const };
      case "alive":
        return invalidField(
          "id",
          `Node \`${repeated(id)}\` still has a lease: stop it, or wait for the lease to end.`,
        );
      case "unknown":
        return invalidField("id", `There is no node \`${repeated(id)}\`. GET /admin/nodes lists them.`);
    }
  }),
];

const logClosing = ({ name, state }: NodeReport, changes: ChangeLog): Promise<void> =>
  changes.append({
    action: "node.closed",
    subject: name,
    balance: null,
    before: { state },
    after: { state: "left" },
  });

const view = ({ name, state, leaseUntil, epoch, reserved }: NodeReport, differsIn: readonly string[]) => ({
  id: name,
  object: "node" as const,
  state,
  lease_expires_at: isoTime(leaseUntil),
  epoch,
  reserved_usd: usdFromNano(reserved),
  differs_in: [...differsIn],
});
