import type { OperatorsEvent } from "../../api/events.ts";
import type { OperatorsWebhookAnswer, WebhookTestAnswer } from "../../api/webhooks.ts";
import { EVENT_KINDS } from "../../units/event-kinds.ts";
import { count, moment } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { eventColumns } from "../parts/event-columns.tsx";
import { Choice } from "../parts/field.tsx";
import { type Column, Rows, usePages } from "../parts/list.tsx";
import { Empty, Head, Problem } from "../parts/page.tsx";
import { useAction, useApi, useList, useLive } from "../resource.ts";
import { useFilters } from "../route.ts";
import { BalanceId } from "./balance-link.tsx";

/** What happened to balances, and how deliveries to the endpoints of the configuration go. */
export function Events() {
  const { filters, field } = useFilters(["type"]);
  const webhooks = useList<OperatorsWebhookAnswer>("admin/webhooks");
  useLive(webhooks);
  return (
    <>
      <Head
        title="Events"
        lead="Events of balances and prices in the last 30 days, and the endpoints that they were sent to."
      />
      <Rows
        of={webhooks}
        empty={<Empty title="No endpoints">The configuration names none under webhooks.</Empty>}
        columns={ENDPOINTS}
      />
      <div class="filters">
        <Choice label="Event" all="All events" options={EVENT_KINDS} {...field("type")} />
      </div>
      <Rows
        of={usePages<OperatorsEvent>("admin/events", filters)}
        empty={<Empty title="No events" />}
        columns={eventColumns<OperatorsEvent>([
          "Balance",
          "",
          ({ balance_id: id }) => (id === null ? "—" : <BalanceId id={id} />),
        ])}
      />
    </>
  );
}

const ENDPOINTS: readonly Column<OperatorsWebhookAnswer>[] = [
  ["Endpoint", "", ({ id, origin }) => <Endpoint id={id} origin={origin} />],
  ["Events", "small", ({ events }) => events?.join(", ") ?? "all"],
  ["State", "", (one) => <State of={one} />],
  ["Waiting", "end", ({ waiting }) => (waiting === null ? "—" : count(waiting))],
  ["", "end", ({ id, origin }) => <TestButton id={id} origin={origin} />],
];

type EndpointName = Pick<OperatorsWebhookAnswer, "id" | "origin">;

const Endpoint = ({ id, origin }: EndpointName) => (
  <>
    {origin === "mail" ? "Mails to owners" : origin}
    <div class="mono soft small">{id}</div>
  </>
);

const State = ({ of: { state, problem, next_attempt_at } }: { of: OperatorsWebhookAnswer }) => (
  <>
    <span class={state === "active" ? "good" : "bad"}>{state}</span>
    {state !== "active" && problem !== null && <div class="small">{problem}</div>}
    {next_attempt_at !== null && <div class="soft small">next attempt {moment(next_attempt_at)}</div>}
  </>
);

function TestButton({ id, origin }: EndpointName) {
  const api = useApi();
  const test = useAction(async () => {
    const { delivered, problem } = await api.post<WebhookTestAnswer>(`admin/webhooks/${id}/test`);
    if (!delivered) throw new Error(`It was not delivered: ${problem}.`);
  });
  if (origin === "mail") return null;
  return (
    <>
      <Button label="Send a test" about={origin} action={test} />
      <Problem error={test.error} />
    </>
  );
}
