import type { OperatorsEvent } from "../../api/events.ts";
import type { OperatorsWebhookAnswer, WebhookTestAnswer } from "../../api/webhooks.ts";
import { EVENT_KINDS } from "../../units/event-kinds.ts";
import { count, moment } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { EventTable } from "../parts/event-table.tsx";
import { Choice } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Listed, Problem } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { TableCard } from "../parts/table.tsx";
import { useAction, useList, useLive } from "../resource.ts";
import { useQuery } from "../route.ts";
import { useOperator } from "./operator.ts";

/** What happened to balances, and how deliveries to the endpoints of the configuration go. */
export function Events() {
  const api = useOperator();
  const [{ type }, setFilters] = useQuery(FILTERS);
  const webhooks = useList<OperatorsWebhookAnswer>(api, "admin/webhooks");
  useLive(webhooks);
  const events = usePages<OperatorsEvent>(api, `admin/events${type === "" ? "" : `?type=${type}`}`);
  return (
    <>
      <Head
        title="Events"
        lead="Events of balances and prices in the last 30 days, and the endpoints that they were sent to."
      />
      <Listed
        of={webhooks}
        empty={<Empty title="No endpoints">The configuration names none under webhooks.</Empty>}
      >
        {(rows) => (
          <TableCard
            of={rows}
            by={({ id }) => id}
            columns={[
              ["Endpoint", "", ({ id, origin }) => <Endpoint id={id} origin={origin} />],
              ["Events", "small", ({ events }) => events?.join(", ") ?? "all"],
              ["State", "", (one) => <State of={one} />],
              ["Waiting", "end", ({ waiting }) => (waiting === null ? "—" : count(waiting))],
              ["", "end", ({ id, origin }) => <TestButton id={id} origin={origin} />],
            ]}
          />
        )}
      </Listed>
      <div class="filters">
        <Choice
          label="Event"
          value={type}
          onValue={(chosen) => setFilters({ type: chosen })}
          options={[["", "All events"], ...EVENT_KINDS.map((one) => [one, one] as const)]}
        />
      </div>
      <Listed of={events} empty={<Empty title="No events" />}>
        {(rows) => (
          <EventTable
            of={rows}
            columns={[["Balance", "", ({ balance_id }) => <Balance id={balance_id} />]]}
          />
        )}
      </Listed>
      <ShowOlder of={events} />
    </>
  );
}

const FILTERS = ["type"] as const;

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
  const api = useOperator();
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

const Balance = ({ id }: { id: string | null }) =>
  id === null ? (
    <>—</>
  ) : (
    <a class="mono" href={`#/balances/${id}`}>
      {id}
    </a>
  );
