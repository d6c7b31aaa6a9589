import type { EventAnswer } from "../../api/events.ts";
import type { WebhookAnswer, WebhookSecretAnswer, WebhookTestAnswer } from "../../api/webhooks.ts";
import { BALANCE_EVENT_KINDS } from "../../units/event-kinds.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { type DialogEnds, FormDialog, SaveOnce, useDialog } from "../parts/dialog.tsx";
import { EventTable } from "../parts/event-table.tsx";
import { Choice, TextField, useField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Listed, Note, Problem } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { useAction, useList } from "../resource.ts";

/** Where the owner's programs learn what happens to the balance, and what has happened. */
export function Webhooks() {
  const { api } = useOwner();
  const webhooks = useList<WebhookAnswer>(api, "v1/webhooks");
  const events = usePages<EventAnswer>(api, "v1/events");
  const reload = () => {
    webhooks.reload();
    events.reload();
  };
  const { open: editing, show: edit, ends } = useDialog<WebhookAnswer | "new">(reload);
  const { open: made, show: keep, ends: saved } = useDialog<WebhookSecretAnswer>(reload);
  return (
    <>
      <Head title="Webhooks" lead="The gateway sends events of this balance to these addresses.">
        <Button label="New webhook" variant="primary" onClick={() => edit("new")} />
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
              <WebhookCard
                key={webhook.id}
                of={webhook}
                onEdit={() => edit(webhook)}
                onSecret={keep}
                onChange={reload}
              />
            ))}
          </ul>
        )}
      </Listed>
      <section class="stack">
        <h2>Last events</h2>
        <Listed of={events} empty={<Empty title="Nothing has happened in the last 30 days" />}>
          {(rows) => <EventTable of={rows} />}
        </Listed>
        <ShowOlder of={events} />
      </section>
      {editing !== null && (
        <WebhookDialog of={editing === "new" ? null : editing} onSecret={keep} {...ends} />
      )}
      {made?.secret != null && (
        <SaveOnce
          title="Save the secret now"
          label="Webhook secret"
          value={made.secret}
          file={`${made.id}.txt`}
          explanation="Your program verifies deliveries with it. It is shown only this once."
          onDone={saved.onDone}
        />
      )}
    </>
  );
}

function WebhookCard({ of, onEdit, onSecret, onChange }: WebhookCardProps) {
  const { api } = useOwner();
  const path = `v1/webhooks/${of.id}`;
  const test = useAction(async () => {
    const { delivered, problem } = await api.post<WebhookTestAnswer>(`${path}/test`);
    onChange();
    if (!delivered) throw new Error(`The test was not delivered: ${problem}.`);
  });
  const rotate = useAction(async () => onSecret(await api.post<WebhookSecretAnswer>(`${path}/rotate`)));
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
      <Problem error={test.error ?? rotate.error ?? pause.error} />
      <div class="row">
        <Button label="Send a test" about={of.url ?? "mails"} action={test} />
        <Button label="Change" about={of.url ?? "mails"} onClick={onEdit} />
        {of.format === "signed" && (
          <Button label="Replace the secret" about={of.url ?? "mails"} action={rotate} />
        )}
        <Button
          label={of.state === "paused" ? "Start again" : "Pause"}
          about={of.url ?? "mails"}
          action={pause}
        />
      </div>
    </li>
  );
}

interface WebhookCardProps {
  readonly of: WebhookAnswer;
  readonly onEdit: () => void;
  readonly onSecret: (made: WebhookSecretAnswer) => void;
  readonly onChange: () => void;
}

function WebhookDialog({ of, onSecret, onClose, onDone }: WebhookDialogProps) {
  const { api } = useOwner();
  const url = useField(of?.url ?? "");
  const events = useField(of?.events?.join(", ") ?? "");
  const format = useField<WebhookAnswer["format"]>("signed");
  const isMail = (of?.format ?? format.value) === "mail";
  const path = `v1/webhooks/${of?.id ?? ""}`;
  const save = async () => {
    const named = events.value.split(/[\s,]+/).filter((one) => one !== "");
    const address = isMail ? {} : { url: url.value.trim() };
    const fields = { ...address, events: named.length === 0 ? null : named };
    if (of !== null) await api.patch(path, fields);
    else onSecret(await api.post<WebhookSecretAnswer>("v1/webhooks", { ...fields, format: format.value }));
    onDone();
  };
  const drop = useAction(async () => {
    await api.delete(path);
    onDone();
  });
  return (
    <FormDialog
      title={of === null ? "New webhook" : "Change the webhook"}
      submit={of === null ? "Create" : "Save"}
      act={save}
      onClose={onClose}
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

interface WebhookDialogProps extends DialogEnds {
  /** Null for a new one. */
  readonly of: WebhookAnswer | null;
  readonly onSecret: (made: WebhookSecretAnswer) => void;
}
