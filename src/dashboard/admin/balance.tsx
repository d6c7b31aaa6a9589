import { useState } from "preact/hooks";
import type { BalanceAnswer, Decision } from "../../api/admin.ts";
import type { List } from "../../api/answers.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import { causeOf } from "../../errors/suspension.ts";
import { moment, usd, words } from "../format.ts";
import { Dialog, DialogButtons } from "../parts/dialog.tsx";
import { Choice, Form, TextField } from "../parts/field.tsx";
import { Figure } from "../parts/figure.tsx";
import { Head } from "../parts/frame.tsx";
import { keyName, keyNames } from "../parts/key-state.tsx";
import { Loaded, Note, Problem } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { ReceiptPages } from "../parts/receipt-pages.tsx";
import { TableCard } from "../parts/table.tsx";
import { useAction, useResource } from "../resource.ts";
import { useQuery } from "../route.ts";
import { type BalanceDialogProps, noted } from "./balance-dialog.ts";
import { BalanceBudgets } from "./budgets.tsx";
import { BalanceCredits, CreditDialog, DebitDialog } from "./credits.tsx";
import { DetachDialog } from "./detach.tsx";
import { KeyRow } from "./key-row.tsx";
import { useOperator } from "./operator.ts";

/** One balance: its money, keys and requests, credit, and suspension. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a page.
export function Balance({ id }: { id: string }) {
  const api = useOperator();
  const balance = useResource(() => api.get<BalanceAnswer>(`admin/balances/${id}`), [api, id]);
  const keys = usePages<KeyAnswer>(api, `admin/balances/${id}/keys`);
  const [filter, setFilter] = useQuery(["key_id"]);
  const [open, setOpen] = useState<"credit" | "debit" | "suspend" | "detach" | null>(null);
  const [round, setRound] = useState(0);
  const done = () => {
    setOpen(null);
    balance.reload();
    setRound(round + 1);
  };
  const lift = useAction(async (account: string | null) => {
    // Whichever of the two was suspended: lifting what is not suspended changes nothing.
    for (const subject of account === null ? [id] : [account, id]) {
      await api.post(`admin/accounts/${subject}/unsuspend`, {});
    }
    done();
  });
  return (
    <>
      <p class="crumb">
        <a href="#/balances">Balances</a>
      </p>
      <Loaded of={balance}>
        {(data) => (
          <>
            <Head title="Balance" lead={data.id}>
              <button type="button" class="primary" onClick={() => setOpen("credit")}>
                Add credit
              </button>
              <button
                type="button"
                class="quiet"
                disabled={data.available_usd === 0}
                onClick={() => setOpen("debit")}
              >
                Take credit back
              </button>
              {data.account_id !== null && (
                <button type="button" class="quiet danger" onClick={() => setOpen("detach")}>
                  Detach
                </button>
              )}
              {data.suspended === null ? (
                <button type="button" class="quiet danger" onClick={() => setOpen("suspend")}>
                  Suspend
                </button>
              ) : (
                <button
                  type="button"
                  class="quiet"
                  disabled={lift.busy}
                  onClick={() => lift.run(data.account_id)}
                >
                  Lift suspension
                </button>
              )}
            </Head>
            <Problem error={lift.error} />
            <Decisions of={data} round={round} />
            {data.closed && (
              <Note tone="warn">
                <p>Closed by its owner: its keys have ended, and nobody can use credit that is added.</p>
              </Note>
            )}
            <div class="grid-3">
              <Figure label="Available" value={usd(data.available_usd)} />
              <Figure label="Held by open requests" value={usd(data.held_usd)} />
              <Figure
                label="Account"
                value={data.email ?? data.wallet ?? data.account_id ?? "none"}
                hint={`${data.account_id ?? "balance"}, since ${moment(data.created_at)}`}
              />
            </div>
            {open === "credit" && <CreditDialog of={data} onClose={() => setOpen(null)} onDone={done} />}
            {open === "debit" && <DebitDialog of={data} onClose={() => setOpen(null)} onDone={done} />}
            {open === "detach" && <DetachDialog of={data} onClose={() => setOpen(null)} onDone={done} />}
            {open === "suspend" && <SuspendDialog of={data} onClose={() => setOpen(null)} onDone={done} />}
          </>
        )}
      </Loaded>
      <section aria-labelledby="keys">
        <h2 id="keys">Keys</h2>
        <Loaded of={keys}>
          {(data) => (
            <TableCard
              columns={[
                "Key",
                ["State", "wide-only"],
                ["Today", "end wide-only"],
                ["This month", "end"],
                ["Actions", "unseen"],
              ]}
            >
              {data.map((key) => (
                <KeyRow key={key.id} of={key} onChanged={keys.reload} />
              ))}
            </TableCard>
          )}
        </Loaded>
        <ShowOlder of={keys} />
      </section>
      <BalanceBudgets id={id} />
      <BalanceCredits id={id} round={round} />
      <section aria-labelledby="receipts">
        <h2 id="receipts">Requests</h2>
        <div class="filters">
          <Choice
            label="Key"
            value={filter.key_id}
            onValue={(key_id) => setFilter({ key_id })}
            options={keyOptions(keys.data ?? [], filter.key_id)}
          />
        </div>
        <ReceiptPages
          key={filter.key_id}
          keyNames={keyNames(keys.data ?? [])}
          empty={<p class="soft">Requests that were refused before they began are not listed.</p>}
          ask={(before, limit) => {
            const more = { ...(filter.key_id === "" ? {} : filter), ...(before === null ? {} : { before }) };
            return api.get(
              `admin/balances/${id}/receipts?${new URLSearchParams({ limit: String(limit), ...more })}`,
            );
          }}
        />
      </section>
    </>
  );
}

/** Only a page of the keys is known; the one that a link names may be older. */
function keyOptions(keys: readonly KeyAnswer[], chosen: string): (readonly [string, string])[] {
  const known = keys.map((key) => [key.id, keyName(key)] as const);
  const isKnown = chosen === "" || keys.some(({ id }) => id === chosen);
  return [["", "All keys"], ...known, ...(isKnown ? [] : [[chosen, chosen] as const])];
}

/** What was decided about the balance and its account, by whom and why. */
function Decisions({ of: { id, account_id, suspended }, round }: { of: BalanceAnswer; round: number }) {
  const api = useOperator();
  const decisions = useResource(async () => {
    const subjects = account_id === null ? [id] : [account_id, id];
    const lists = await Promise.all(
      subjects.map((subject) => api.get<List<Decision>>(`admin/accounts/${subject}/suspensions`)),
    );
    return lists
      .flatMap(({ data }, index) => data.map((decision) => ({ ...decision, subject: subjects[index]! })))
      .sort((a, b) => b.at.localeCompare(a.at));
  }, [api, id, account_id, round]);
  if (decisions.data === null || decisions.data.length === 0) return <Problem error={decisions.error} />;
  const inForce = decisions.data.find(({ reason }) => reason !== null);
  return (
    <>
      {suspended !== null && inForce !== undefined && (
        <Note tone="warn">
          <p>
            <strong>Suspended since {moment(inForce.at)}</strong> by {inForce.by}, after {causeOf(suspended)}:{" "}
            {inForce.subject === id ? "this balance" : "its whole account"}.
            {inForce.note !== null && ` “${inForce.note}”`}
          </p>
          <p>
            Every generation is answered with 403 and charged nothing. Credit, keys and receipts stay as they
            are; the owner can see them, and is told the reason and whom to contact. “Lift suspension” serves
            the next request.
          </p>
        </Note>
      )}
      <section aria-labelledby="decisions">
        <h2 id="decisions">Suspensions</h2>
        <TableCard columns={["Time", "Decision", "Note"]}>
          {decisions.data.map(({ subject, at, reason, by, note }) => (
            <tr key={`${subject} ${at}`}>
              <td class="when">{moment(at)}</td>
              <td>
                {reason === null ? "Lifted" : `Suspended after ${causeOf(reason)}`}
                <div class="soft small">
                  {subject === id ? "this balance" : "the account"}, by {by}
                </div>
              </td>
              <td>{note ?? <span class="soft">–</span>}</td>
            </tr>
          ))}
        </TableCard>
      </section>
    </>
  );
}

function SuspendDialog({ of: { id, account_id }, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const [subject, setSubject] = useState(account_id ?? id);
  const [reason, setReason] = useState<string>(REASONS[0]);
  const [note, setNote] = useState("");
  const suspend = useAction(async () => {
    await api.post(`admin/accounts/${subject}/suspend`, { reason, ...noted(note) });
    onDone();
  });
  return (
    <Dialog title="Suspend" onClose={onClose}>
      <Form onSubmit={suspend.run}>
        <p class="soft">
          From the next request on, every request is refused, and the error names the reason.
        </p>
        {account_id !== null && (
          <Choice
            label="What to suspend"
            value={subject}
            onValue={setSubject}
            options={[
              [account_id, "the whole account"],
              [id, "this balance alone"],
            ]}
          />
        )}
        <Choice
          label="Reason"
          value={reason}
          onValue={setReason}
          options={REASONS.map((one) => [one, words(one)] as const)}
        />
        <TextField
          label="Note"
          value={note}
          onValue={setNote}
          hint="For your records: the owner is told only the reason."
        />
        <Problem error={suspend.error} />
        <DialogButtons submit="Suspend now" busy={suspend.busy} danger onClose={onClose} />
      </Form>
    </Dialog>
  );
}

const REASONS = ["chargeback", "sanctions", "acceptable_use"] as const;
