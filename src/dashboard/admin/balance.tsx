import { useState } from "preact/hooks";
import type { BalanceAnswer, ConfigAnswer, Decision } from "../../api/admin.ts";
import type { List } from "../../api/answers.ts";
import type { KeyAnswer, KeyFields, MintedAnswer } from "../../api/keys.ts";
import { causeOf } from "../../units/errors/suspension.ts";
import { atLeast, atMost, moment, usd, words } from "../format.ts";
import { BalanceChanges } from "../parts/change-table.tsx";
import { CopiedId } from "../parts/copy-button.tsx";
import { FormDialog, useDialog } from "../parts/dialog.tsx";
import { Choice, TextField, useField } from "../parts/field.tsx";
import { Figure } from "../parts/figure.tsx";
import { Crumb, Head, Section } from "../parts/frame.tsx";
import { KeyDialog } from "../parts/key-dialog.tsx";
import { Empty, Loaded, Note, Problem } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { KeyChoice } from "../parts/receipt-browser.tsx";
import { ReceiptPages } from "../parts/receipt-pages.tsx";
import { ShowKeyOnce } from "../parts/show-key-once.tsx";
import { type Column, TableCard } from "../parts/table.tsx";
import { useAction, useGet, useResource } from "../resource.ts";
import { useQuery } from "../route.ts";
import { type BalanceDialogProps, noted } from "./balance-dialog.ts";
import { BalanceBudgets } from "./budgets.tsx";
import { BalanceCredits, CreditDialog, DebitDialog } from "./credits.tsx";
import { DetachDialog } from "./detach.tsx";
import { KeyTable } from "./key-table.tsx";
import { useOperator } from "./operator.ts";
import { PriceListDialog } from "./price-list.tsx";
import { priceListsIn } from "./price-lists.ts";
import { RoleButton } from "./role-button.tsx";

/** One balance: its money, keys and requests, credit, and suspension. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a page.
export function Balance({ id }: { id: string }) {
  const api = useOperator();
  const balance = useGet<BalanceAnswer>(api, `admin/balances/${id}`);
  const keysAt = `admin/balances/${id}/keys`;
  const search = useField("");
  const keys = usePages<KeyAnswer>(api, `${keysAt}?limit=20&search=${encodeURIComponent(search.value)}`);
  const [filter, setFilter] = useQuery(["key_id"]);
  const [round, setRound] = useState(0);
  const changed = () => {
    balance.reload();
    setRound(round + 1);
  };
  const { open, show, ends } = useDialog<keyof typeof DIALOGS>(changed);
  const lift = useAction(async () => {
    const account = balance.data?.account_id ?? null;
    // Whichever of the two was suspended: lifting what is not suspended changes nothing.
    for (const subject of account === null ? [id] : [account, id]) {
      await api.post(`admin/accounts/${subject}/unsuspend`, {});
    }
    changed();
  });
  const newKey = useDialog<"new">(keys.reload);
  const [minted, setMinted] = useState<MintedAnswer | null>(null);
  const config = useGet<ConfigAnswer>(api, "admin/config");
  const priceLists = priceListsIn(config.data);
  const choices = { models: (config.data?.models ?? []).map((model) => model.id), budgets: [], priceLists };
  const create = async (spec: KeyFields) => setMinted(await api.post(`admin/balances/${id}/keys`, spec));
  const Open = open === null ? null : DIALOGS[open];
  return (
    <>
      <Crumb to="balances" name="Balances" />
      <Loaded of={balance}>
        {(data) => (
          <>
            <Head title="Balance" lead={<CopiedId label="the balance's id" value={data.id} />}>
              <RoleButton label="Add credit" variant="primary" onClick={() => show("credit")} />
              {(priceLists.length > 0 || data.price_list !== null) && (
                <RoleButton label="Price list" onClick={() => show("prices")} />
              )}
              <RoleButton
                label="Take credit back"
                disabled={data.available_usd === 0}
                onClick={() => show("debit")}
              />
              {data.account_id !== null && (
                <RoleButton label="Detach" variant="quiet danger" onClick={() => show("detach")} />
              )}
              {data.suspended === null ? (
                <RoleButton label="Suspend" variant="quiet danger" onClick={() => show("suspend")} />
              ) : (
                <RoleButton label="Lift suspension" action={lift} />
              )}
            </Head>
            <Problem error={lift.error} />
            <Decisions of={data} round={round} />
            {data.closed && (
              <Note tone="warn">
                Closed by its owner: its keys have ended, and nobody can use credit that is added.
              </Note>
            )}
            <div class="grid-3">
              <Figure label="Available" value={usd(data.available_usd)} bound={atLeast(data)} />
              <Figure label="Held by open requests" value={usd(data.held_usd)} bound={atMost(data)} />
              <Figure
                label="Account"
                value={data.email ?? data.wallet ?? data.account_id ?? "none"}
                hint={`${data.account_id ?? "balance"}, since ${moment(data.created_at)}`}
              />
              {(priceLists.length > 0 || data.price_list !== null) && (
                <Figure
                  label="Prices"
                  value={data.price_list ?? "none"}
                  hint={data.price_list === null ? "the models' own prices" : "price list"}
                />
              )}
            </div>
            {Open !== null && <Open of={data} {...ends} />}
          </>
        )}
      </Loaded>
      <Section title="Keys">
        {balance.data?.closed === false && (
          <div class="row">
            <RoleButton label="New key" onClick={() => newKey.show("new")} />
          </div>
        )}
        <div class="filters">
          <TextField label="Search keys" type="search" placeholder="Name or id" {...search} />
        </div>
        <Loaded of={keys}>
          {(data) =>
            data.length === 0 ? (
              <Empty title="No key matches" />
            ) : (
              <KeyTable of={data} onChanged={keys.reload} />
            )
          }
        </Loaded>
        <ShowOlder of={keys} />
      </Section>
      {newKey.open !== null && <KeyDialog choices={choices} save={create} {...newKey.ends} />}
      {minted !== null && (
        <ShowKeyOnce minted={minted} onDone={() => setMinted(null)}>
          <p>Send it to its owner in a way that nobody else can read.</p>
        </ShowKeyOnce>
      )}
      <BalanceBudgets id={id} />
      <BalanceCredits id={id} round={round} />
      <Section title="Requests">
        <div class="filters">
          <KeyChoice
            api={api}
            keysAt={keysAt}
            value={filter.key_id}
            onValue={(key_id) => setFilter({ key_id })}
          />
        </div>
        <ReceiptPages
          key={filter.key_id}
          keysAt={keysAt}
          empty="Requests that were refused before they began are not listed."
          api={api}
          path={`admin/balances/${id}/receipts`}
          filters={filter}
        />
      </Section>
      <BalanceChanges key={round} api={api} path={`admin/changes?balance_id=${id}&limit=20`} />
    </>
  );
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
      .flatMap(({ data }, index) => data.map((one) => ({ ...one, isOfBalance: subjects[index] === id })))
      .sort((a, b) => b.at.localeCompare(a.at));
  }, [api, id, account_id, round]);
  if (decisions.data === null || decisions.data.length === 0) return <Problem error={decisions.error} />;
  const inForce = decisions.data.find(({ reason }) => reason !== null);
  return (
    <>
      {suspended !== null && inForce !== undefined && (
        <Note tone="warn" more={<p>{SUSPENDED}</p>}>
          <strong>Suspended since {moment(inForce.at)}</strong> by {inForce.by}, after {causeOf(suspended)}:{" "}
          {inForce.isOfBalance ? "this balance" : "its whole account"}.
          {inForce.note !== null && ` “${inForce.note}”`}
        </Note>
      )}
      <Section title="Suspensions">
        <TableCard of={decisions.data} by={(one) => `${one.isOfBalance} ${one.at}`} columns={DECISIONS} />
      </Section>
    </>
  );
}

const SUSPENDED =
  "Every request is refused with 403 and costs nothing. Credit, keys and receipts stay as they are; the owner sees them, the reason, and whom to contact. “Lift suspension” takes effect with the next request.";

const DECISIONS: readonly Column<Decision & { readonly isOfBalance: boolean }>[] = [
  ["Time", "when", ({ at }) => moment(at)],
  [
    "Decision",
    "",
    ({ reason, isOfBalance, by }) => (
      <>
        {reason === null ? "Lifted" : `Suspended after ${causeOf(reason)}`}
        <div class="soft small">
          {isOfBalance ? "this balance" : "the account"}, by {by}
        </div>
      </>
    ),
  ],
  ["Note", "", ({ note }) => note ?? <span class="soft">–</span>],
];

function SuspendDialog({ of: { id, account_id }, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const subject = useField(account_id ?? id);
  const reason = useField(REASONS[0]!);
  const note = useField("");
  const suspend = async () => {
    const why = { reason: reason.value, ...noted(note.value) };
    await api.post(`admin/accounts/${subject.value}/suspend`, why);
    onDone();
  };
  return (
    <FormDialog title="Suspend" submit="Suspend now" danger act={suspend} onClose={onClose}>
      <p class="soft">Every request from now on is refused, and the error names the reason.</p>
      {account_id !== null && (
        <Choice
          label="What to suspend"
          options={[
            [account_id, "the whole account"],
            [id, "this balance alone"],
          ]}
          {...subject}
        />
      )}
      <Choice label="Reason" options={REASONS.map((one) => [one, words(one)])} {...reason} />
      <TextField label="Note" hint="For your records: the owner sees only the reason." {...note} />
    </FormDialog>
  );
}

const REASONS = ["chargeback", "sanctions", "acceptable_use"];

const DIALOGS = {
  credit: CreditDialog,
  debit: DebitDialog,
  detach: DetachDialog,
  prices: PriceListDialog,
  suspend: SuspendDialog,
};
