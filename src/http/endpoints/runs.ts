import { RUNS, type RunAnswer } from "../../api/runs.ts";
import type { RunUse } from "../../store/ledger/ledger-operations.ts";
import { isoTime } from "../../units/clock.ts";
import { refused } from "../../units/errors/refusal.ts";
import { usdFromNano } from "../../units/usd.ts";
import { actorOf } from "../authentication.ts";
import { readUsd } from "../fields.ts";
import { operation } from "../operation.ts";

/** What owners may do to runs, which requests start by naming them. */
export const runEndpoints = () => [
  operation("PATCH /v1/runs/:id", RUNS.change, async ({ who, fields, params }, { books, ledger, clock }) => {
    const { cap_usd, calls } = fields;
    const cap = cap_usd == null ? cap_usd : readUsd("cap_usd", cap_usd);
    if (refused(cap)) return cap;
    const at = clock.now();
    const { id } = who.balance;
    const limits = { ...(cap === undefined ? {} : { cap }), ...(calls === undefined ? {} : { calls }) };
    const run = await books.runs.revise(id, shortened(params.id), at, limits, actorOf(who));
    return refused(run) ? run : runView(await ledger.useOf(id, run));
  }),
  operation("DELETE /v1/runs/:id", RUNS.end, async ({ who, params }, { books, clock }) => {
    const at = clock.now();
    const run = await books.runs.revise(who.balance.id, shortened(params.id), at, "end", actorOf(who));
    return refused(run) ? run : { id: run.name, ended: true as const };
  }),
];

/** No longer than an id may be. */
const shortened = (id: string): string => id.slice(0, 64);

export const runView = ({ run, spending, calls }: RunUse): RunAnswer => ({
  id: run.name,
  started_at: isoTime(run.startedAt),
  cap_usd: run.cap === null ? null : usdFromNano(run.cap),
  used_usd: usdFromNano(spending.spent),
  held_usd: usdFromNano(spending.held),
  held_at: spending.heldAt === "all_processes" ? calls.heldAt : spending.heldAt,
  calls: run.calls,
  used_calls: calls.spent,
  open_calls: calls.held,
});
