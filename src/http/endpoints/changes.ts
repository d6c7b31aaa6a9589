import { CHANGES, type ChangeAnswer } from "../../api/changes.ts";
import type { ChangeFilter, ChangeScope, LoggedChange } from "../../customers/changes/change.ts";
import type { ChangeAction } from "../../units/change-actions.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import { ownBalances } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import { readTime } from "../fields.ts";
import { operation } from "../operation.ts";
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

interface ChangesQuery {
  readonly limit: number;
  readonly before: string | null;
  readonly since: string | null;
  readonly until: string | null;
  readonly by: string | null;
  readonly action: ChangeAction | null;
  readonly subject: string | null;
}

async function listed(
  scope: ChangeScope | null,
  { limit, before, ...query }: ChangesQuery,
  view: (change: LoggedChange) => ChangeAnswer,
  { books }: HttpDeps,
) {
  const filter = filterOf(query);
  if (refused(filter)) return filter;
  const rows = await books.changes.list(scope, filter, limit + 1, before);
  return page(rows, limit, view);
}

function filterOf({ since, until, by, action, subject }: Omit<ChangesQuery, "limit" | "before">) {
  const from = timeOf("since", since);
  if (refused(from)) return from;
  const to = timeOf("until", until);
  if (refused(to)) return to;
  return { since: from, until: to, by, action, subject } satisfies ChangeFilter;
}

const timeOf = (name: string, value: string | null): EpochMs | null | Refusal =>
  value === null ? null : readTime(name, value);

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
