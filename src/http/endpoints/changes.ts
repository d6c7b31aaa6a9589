import { CHANGES, type ChangeAnswer } from "../../api/changes.ts";
import type { ChangeScope, LoggedChange } from "../../customers/changes/change.ts";
import { isoTime } from "../../units/clock.ts";
import { refused } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import { ownBalances } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import { readSpan } from "../fields.ts";
import { operation, type QueryOf } from "../operation.ts";
import { page } from "../reply.ts";

/** The log of changes: an owner's own, and everybody's for the operator. */
export const changeEndpoints = () => [
  operation("GET /v1/changes", CHANGES.own, ({ who, query }, deps) => {
    const account = who.by === "session" ? who.accountBalances.account.id : null;
    return listed({ balances: ownBalances(who), account }, query, ownersView, deps);
  }),
  operation("GET /admin/changes", CHANGES.all, ({ query }, deps) => {
    const { balance_id: balance } = query;
    const scope = balance === null ? null : { balances: [balance as BalanceId], account: null };
    return listed(scope, query, changeView, deps);
  }),
];

async function listed(
  scope: ChangeScope | null,
  query: QueryOf<typeof CHANGES.own>,
  view: (change: LoggedChange) => ChangeAnswer,
  { books }: HttpDeps,
) {
  const { limit, before, by, action, subject } = query;
  const span = readSpan(query);
  if (refused(span)) return span;
  const rows = await books.changes.list(scope, { ...span, by, action, subject }, limit + 1, before);
  return page(rows, limit, view);
}

const changeView = (change: LoggedChange): ChangeAnswer => ({
  id: change.id,
  object: "change",
  at: isoTime(change.at),
  by: change.by,
  action: change.action,
  subject: change.subject,
  balance_id: change.balance,
  before: change.before,
  after: change.after,
  network: change.network || null,
  request_id: change.request || null,
});

/** Who of the operators it was, and where they work, is not their customers' to know. */
const ownersView = (change: LoggedChange): ChangeAnswer =>
  change.by.kind === "owner" || change.by.kind === "key"
    ? changeView(change)
    : { ...changeView(change), by: { kind: change.by.kind, id: null, name: null }, network: null };
