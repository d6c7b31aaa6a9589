import { useContext } from "preact/hooks";
import type { EventAnswer } from "../../api/events.ts";
import type { WebhookAnswer, WebhookSecretAnswer, WebhookTestAnswer } from "../../api/webhooks.ts";
import { BALANCE_EVENT_KINDS } from "../../units/event-kinds.ts";
import { moment } from "../format.ts";
import { Button, DialogEnds } from "../parts/button.tsx";
import { ConfirmButton, FormDialog, type OneTimeSecret } from "../parts/dialog.tsx";
import { eventColumns } from "../parts/event-columns.tsx";
import { Choice, TextField, useField } from "../parts/field.tsx";
import { Rows, usePages } from "../parts/list.tsx";
import { Empty, Head, Listed, Note, Problem } from "../parts/page.tsx";
import { useAction, useApi, useList } from "../resource.ts";

/** Where the owner's programs learn what happens to the balance, and what has happened. */
export function Webhooks() {
  const webhooks = useList<WebhookAnswer>("v1/webhooks");
  const events = usePages<EventAnswer>("v1/events");
  const reload = () => {
    webhooks.reload();
    events.reload();
  };
  return (
    <>
      <Head title="Webhooks" lead="The gateway sends events of this balance to these addresses.">
        <Button label="New webhook" variant="primary" dialog={<WebhookDialog of={null} />} onDone={reload} />
      </Head>
      <Listed
        of={webhooks}
        empty={
          <Empty title="No webhooks yet">
            Add the address of a program of yours, or of one of Slack's incoming webhooks.
          </Empty>
        }
      >
        {(rows) => (
          <ul class="cards">
            {rows.map((webhook) => (
              <WebhookCard key={webhook.id} of={webhook} onChange={reload} />
            ))}
          </ul>
        )}
      </Listed>
      <section class="stack">
        <h2>Last events</h2>
        <Rows
          of={events}
          empty={<Empty title="Nothing has happened in the last 30 days" />}
          columns={eventColumns()}
        />
      </section>
    </>
  );
}

function WebhookCard({ of, onChange }: { of: WebhookAnswer; onChange: () => void }) {
  const api = useApi();
  const path = `v1/webhooks/${of.id}`;
  const about = of.url ?? "mails";
  const test = useAction(async () => {
    const { delivered, problem } = await api.post<WebhookTestAnswer>(`${path}/test`);
    onChange();
    if (!delivered) throw new Error(`The test was not delivered: ${problem}.`);
  });
  const pause = useAction(async () => {
    await api.patch(path, { paused: of.state !== "paused" });
    onChange();
  });
  return (
    <li class="card stack">
      <div class="key-names">
        <h2>{of.url === null ? "Mails to your address" : new URL(of.url).host}</h2>
        {of.url !== null && (
          <p class="copied-id small">
            <span class="mono">{of.url}</span>
          </p>
        )}
        <p class="soft small">
          {of.state === "active" ? "Active" : of.state === "failing" ? "Failing" : "Paused"} ·{" "}
          {of.events === null ? "all events" : of.events.join(", ")}
          {of.format === "slack" && " · for Slack"}
          {of.next_attempt_at !== null && ` · next attempt ${moment(of.next_attempt_at)}`}
        </p>
      </div>
      {of.state !== "active" && of.problem !== null && <Note tone="warn">{of.problem}</Note>}
      <Problem error={test.error ?? pause.error} />
      <div class="row">
        <Button label="Send a test" about={about} action={test} />
        <Button label="Change" about={about} dialog={<WebhookDialog of={of} />} onDone={onChange} />
        {of.format === "signed" && (
          <ConfirmButton
            label="Replace the secret"
            about={about}
            variant="quiet"
            title="Replace the secret"
            yes="Replace it now"
            no="Keep it"
            act={() => api.post<WebhookSecretAnswer>(`${path}/rotate`)}
            once={secretOnce}
            onDone={onChange}
          >
            <p>Deliveries are signed with the new secret from now on.</p>
          </ConfirmButton>
        )}
        <Button label={of.state === "paused" ? "Start again" : "Pause"} about={about} action={pause} />
      </div>
    </li>
  );
}

/** Null for mails to the owner, which have none. */
const secretOnce = ({ id, secret }: WebhookSecretAnswer): OneTimeSecret | null =>
  secret == null
    ? null
    : {
        title: "Save the secret now",
        label: "Webhook secret",
        value: secret,
        file: `${id}.txt`,
        explanation: "Your program verifies deliveries with it. It is shown only this once.",
      };

/** Adds a webhook, or changes one; null for a new one. */
function WebhookDialog({ of }: { of: WebhookAnswer | null }) {
  const api = useApi();
  const { done } = useContext(DialogEnds);
  const url = useField(of?.url ?? "");
  const events = useField(of?.events?.join(", ") ?? "");
  const format = useField<WebhookAnswer["format"]>("signed");
  const isMail = (of?.format ?? format.value) === "mail";
  const path = `v1/webhooks/${of?.id ?? ""}`;
  const save = async () => {
    const named = events.value.split(/[\s,]+/).filter((one) => one !== "");
    const address = isMail ? {} : { url: url.value.trim() };
    const fields = { ...address, events: named.length === 0 ? null : named };
    if (of === null) return api.post<WebhookSecretAnswer>("v1/webhooks", { ...fields, format: format.value });
    await api.patch(path, fields);
    return null;
  };
  const drop = useAction(async () => {
    await api.delete(path);
    done();
  });
  return (
    <FormDialog
      title={of === null ? "New webhook" : "Change the webhook"}
      submit={of === null ? "Create" : "Save"}
      act={save}
      once={(made) => made && secretOnce(made)}
      error={drop.error}
      buttons={of !== null && <Button label="Delete" variant="quiet danger" action={drop} />}
    >
      {!isMail && (
        <TextField label="Address" required hint="It begins with https:// and is on the internet." {...url} />
      )}
      {of === null && (
        <Choice
          label="What is sent"
          options={[
            ["signed", "signed events, for a program"],
            ["slack", "messages, for one of Slack's incoming webhooks"],
            ["mail", "mails to your account's address, at most ten an hour"],
          ]}
          {...format}
        />
      )}
      <TextField
        label="Events"
        hint={`Empty: all. Or some of ${BALANCE_EVENT_KINDS.join(", ")}.`}
        {...events}
      />
    </FormDialog>
  );
}
