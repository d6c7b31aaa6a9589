import { useState } from "preact/hooks";
import type { BalanceAnswer, Decision } from "../../api/admin.ts";
import type { KeyAnswer, KeyFields, MintedAnswer } from "../../api/keys.ts";
import type { List } from "../../api/schema.ts";
import { causeOf } from "../../units/errors/suspension.ts";
import { atLeast, atMost, moment, usd } from "../format.ts";
import { BalanceChanges } from "../parts/change-columns.tsx";
import { CopiedId } from "../parts/copy-button.tsx";
import { TextField, useField } from "../parts/field.tsx";
import { KeyDialog, keyOnce } from "../parts/key-dialog.tsx";
import { type Column, Rows, TableCard, usePages } from "../parts/list.tsx";
import { Crumb, Empty, Figure, Head, Loaded, Note, Problem, Section } from "../parts/page.tsx";
import { KeyChoice } from "../parts/receipt-browser.tsx";
import { ReceiptPages } from "../parts/receipt-pages.tsx";
import { useAction, useApi, useGet, useResource } from "../resource.ts";
import { useFilters } from "../route.ts";
import { DetachDialog, PriceListDialog, SuspendDialog } from "./balance-dialogs.tsx";
import { BalanceBudgets } from "./budgets.tsx";
import { BalanceCredits, CreditDialog, DebitDialog } from "./credits.tsx";
import { keyColumns, useKeyChoices } from "./key-columns.tsx";
import { RoleButton } from "./role-button.tsx";

/** One balance: its money, keys and requests, credit, and suspension. */
export function Balance({ id }: { id: string }) {
  const balance = useGet<BalanceAnswer>(`admin/balances/${id}`);
  const keysAt = `admin/balances/${id}/keys`;
  const { filters, field } = useFilters(["key_id"]);
  const [round, setRound] = useState(0);
  const changed = () => {
    balance.reload();
    setRound(round + 1);
  };
  return (
    <>
      <Crumb to="balances" name="Balances" />
      <Loaded of={balance}>{(data) => <Top of={data} round={round} onChanged={changed} />}</Loaded>
      <Keys at={keysAt} of={balance.data} />
      <BalanceBudgets id={id} />
      <BalanceCredits id={id} round={round} />
      <Section title="Requests">
        <div class="filters">
          <KeyChoice keysAt={keysAt} {...field("key_id")} />
        </div>
        <ReceiptPages
          key={filters.key_id}
          keysAt={keysAt}
          empty="Requests that were refused before they began are not listed."
          path={`admin/balances/${id}/receipts`}
          filters={filters}
        />
      </Section>
      <BalanceChanges key={round} path="admin/changes" of={id} />
    </>
  );
}

/** Its money and its owner, and what can be done about them. */
function Top({ of: data, round, onChanged }: TopProps) {
  const { id, account_id, price_list } = data;
  const api = useApi();
  const { priceLists } = useKeyChoices();
  const isPriced = priceLists.length > 0 || price_list !== null;
  const lift = useAction(async () => {
    // Whichever of the two was suspended: lifting what is not suspended changes nothing.
    for (const subject of account_id === null ? [id] : [account_id, id]) {
      await api.post(`admin/accounts/${subject}/unsuspend`, {});
    }
    onChanged();
  });
  const ending = { variant: "quiet danger", onDone: onChanged } as const;
  return (
    <>
      <Head title="Balance" lead={<CopiedId label="the balance's id" value={id} />}>
        <RoleButton
          label="Add credit"
          variant="primary"
          dialog={<CreditDialog of={data} />}
          onDone={onChanged}
        />
        {isPriced && (
          <RoleButton
            label="Price list"
            dialog={<PriceListDialog of={data} names={priceLists} />}
            onDone={onChanged}
          />
        )}
        <RoleButton
          label="Take credit back"
          disabled={data.available_usd === 0}
          dialog={<DebitDialog of={data} />}
          onDone={onChanged}
        />
        {account_id !== null && <RoleButton label="Detach" dialog={<DetachDialog of={data} />} {...ending} />}
        {data.suspended === null ? (
          <RoleButton label="Suspend" dialog={<SuspendDialog of={data} />} {...ending} />
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
          value={data.email ?? data.wallet ?? account_id ?? "none"}
          hint={`${account_id ?? "balance"}, since ${moment(data.created_at)}`}
        />
        {isPriced && (
          <Figure
            label="Prices"
            value={price_list ?? "none"}
            hint={price_list === null ? "the models' own prices" : "price list"}
          />
        )}
      </div>
    </>
  );
}

interface TopProps {
  readonly of: BalanceAnswer;
  /** Counts its changes. */
  readonly round: number;
  readonly onChanged: () => void;
}

/** Its keys; the operator makes one while it is open. */
function Keys({ at, of }: { at: string; of: BalanceAnswer | null }) {
  const api = useApi();
  const search = useField("");
  const keys = usePages<KeyAnswer>(at, { limit: "20", search: search.value });
  const choices = useKeyChoices();
  const create = (spec: KeyFields) => api.post<MintedAnswer>(at, spec);
  const once = (minted: MintedAnswer) =>
    keyOnce(minted, "Send it to its owner in a way that nobody else can read.");
  return (
    <Section title="Keys">
      {of?.closed === false && (
        <div class="row">
          <RoleButton
            label="New key"
            dialog={
              <KeyDialog
                of={null}
                defaults={choices.defaults?.[of.account_id === null ? "accountless" : "account"]}
                choices={choices}
                save={create}
                once={once}
              />
            }
            onDone={keys.reload}
          />
        </div>
      )}
      <div class="filters">
        <TextField label="Search keys" type="search" placeholder="Name or id" {...search} />
      </div>
      <Rows of={keys} empty={<Empty title="No key matches" />} columns={keyColumns(choices, keys.reload)} />
    </Section>
  );
}

/** What was decided about the balance and its account, by whom and why. */
function Decisions({ of: { id, account_id, suspended }, round }: { of: BalanceAnswer; round: number }) {
  const decisions = useResource(
    async (api) => {
      const subjects = account_id === null ? [id] : [account_id, id];
      const lists = await Promise.all(
        subjects.map((subject) => api.get<List<Decision>>(`admin/accounts/${subject}/suspensions`)),
      );
      return lists
        .flatMap(({ data }, index) => data.map((one) => ({ ...one, isOfBalance: subjects[index] === id })))
        .sort((a, b) => b.at.localeCompare(a.at));
    },
    [id, account_id, round],
  );
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
