import type { Grants } from "../../ledger/grants.ts";
import type { Membership } from "../../ledger/membership.ts";
import type { Figure } from "../../units/figure.ts";
import type { FollowingBooks } from "./node-store.ts";

/** What the metrics tell of a node. */
export function nodeFigures(
  grants: Grants,
  { journal, shipped, batches }: FollowingBooks,
  node: Membership,
): Figure[] {
  const { counters, granted, stranded, statements, recalls } = grants.figures;
  return [
    {
      name: "gateway_lease_seconds",
      help: "Seconds left of this node's lease on keys and grants.",
      value: node.leaseLeftMs / 1_000,
      together: "least",
    },
    { name: "gateway_grant_counters", help: "Counters that this node holds a grant of.", value: counters },
    {
      name: "gateway_granted_usd",
      help: "USD of balances granted to this node in this epoch.",
      value: granted / 1e9,
    },
    {
      name: "gateway_stranded_usd",
      help: "USD of gateway_granted_usd that is neither spent nor held.",
      value: stranded / 1e9,
    },
    {
      name: "gateway_grant_statements",
      help: "Statements for grants, since start.",
      value: statements,
      type: "counter",
    },
    {
      name: "gateway_grant_recalls",
      help: "Times that other nodes ran short of what this node held.",
      value: recalls,
      type: "counter",
    },
    {
      name: "gateway_ship_lag",
      help: "Ended requests that are durable in the journal and not yet in the shared store.",
      value: journal.unappliedCount,
    },
    {
      name: "gateway_shipped_ends",
      help: "Ended requests shipped to the shared store since start.",
      value: shipped,
      type: "counter",
    },
    {
      name: "gateway_shipped_batches",
      help: "Transactions that gateway_shipped_ends took.",
      value: batches,
      type: "counter",
    },
  ];
}
