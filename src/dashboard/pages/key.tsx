import { useState } from "preact/hooks";
import type { KeyAnswer, KeyFields, RotatedAnswer } from "../../api/keys.ts";
import { Api } from "../api.ts";
import { count, moment, usd } from "../format.ts";
import { useKeyChoices } from "../key-choices.ts";
import { useOwner } from "../owner.ts";
import { Dialog, DialogButtons } from "../parts/dialog.tsx";
import { Form, TextField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { KeyForm, listOf } from "../parts/key-form.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { Meter } from "../parts/meter.tsx";
import { Loaded, Problem } from "../parts/notice.tsx";
import { RevokeDialog } from "../parts/revoke-dialog.tsx";
import { ShowKeyOnce } from "../parts/show-key-once.tsx";
import { UsageCharts } from "../parts/usage-charts.tsx";
import { useAction, useResource } from "../resource.ts";

/** One key: its limits and use, and what can be done with it. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a page.
export function KeyPage({ id }: { id: string }) {
  const { api, secrets } = useOwner();
  const choices = useKeyChoices();
  const key = useResource(() => api.get<KeyAnswer>(`v1/keys/${id}`), [api, id]);
  const [open, setOpen] = useState<"limits" | "rotate" | "revoke" | null>(null);
  const [rotated, setRotated] = useState<RotatedAnswer | null>(null);
  const close = () => setOpen(null);

  return (
    <Loaded of={key}>
      {(data) => (
        <>
          <p class="crumb">
            <a href="#/keys">Keys</a>
          </p>
          <Head title={data.name ?? "Unnamed key"}>
            {works(data) && (
              <>
                <button type="button" class="quiet" onClick={() => setOpen("limits")}>
                  Change limits
                </button>
                {data.state === "active" && (
                  <button type="button" class="quiet" onClick={() => setOpen("rotate")}>
                    Rotate
                  </button>
                )}
                <button type="button" class="quiet danger" onClick={() => setOpen("revoke")}>
                  Revoke
                </button>
              </>
            )}
          </Head>
          <p>
            <KeyState of={data} />
          </p>
          <div class="grid-2">
            <section class="card" aria-label="Use">
              <h2>Spending</h2>
              <Meter label="Today" used={data.used_day_usd} held={data.held_usd} cap={data.daily_limit_usd} />
              <Meter
                label="This month"
                used={data.used_month_usd}
                held={data.held_usd}
                cap={data.monthly_limit_usd}
              />
              <p class="hint">Days and months are in UTC. Amounts held by open requests count at once.</p>
            </section>
            <section class="card" aria-label="Limits">
              <h2>Limits</h2>
              <Facts of={data} />
            </section>
          </div>
          <p>
            <a href={`#/receipts?key_id=${data.id}`}>Receipts of this key</a>
          </p>
          <UsageCharts keyId={data.id} />
          {open === "limits" && (
            <Dialog title="Change limits" onClose={close}>
              <KeyForm
                of={data}
                submit="Save"
                choices={choices}
                onCancel={close}
                onSubmit={async (spec: KeyFields) => {
                  await api.patch(`v1/keys/${id}`, spec);
                  close();
                  key.reload();
                }}
              />
            </Dialog>
          )}
          {open === "rotate" && (
            <Rotate
              of={data}
              onClose={close}
              onRotated={(answer) => {
                secrets.set(answer.id, answer.key);
                close();
                setRotated(answer);
                key.reload();
              }}
            />
          )}
          {open === "revoke" && (
            <RevokeDialog
              of={data}
              revoke={() => api.delete(`v1/keys/${data.id}`)}
              onClose={close}
              onRevoked={() => {
                secrets.delete(id);
                close();
                key.reload();
              }}
            />
          )}
          {rotated !== null && (
            <ShowKeyOnce
              minted={rotated}
              onDone={() => {
                setRotated(null);
                location.hash = `#/keys/${rotated.id}`;
              }}
            >
              <p>
                {new Date(rotated.old_key.expires_at).getTime() > Date.now()
                  ? `The old key works until ${moment(rotated.old_key.expires_at)}.`
                  : "The old key has stopped working."}
              </p>
            </ShowKeyOnce>
          )}
        </>
      )}
    </Loaded>
  );
}

const Facts = ({ of }: { of: KeyAnswer }) => (
  <dl class="facts">
    <dt>Id</dt>
    <dd class="mono">{of.id}</dd>
    <dt>Begins with</dt>
    <dd class="mono">{of.prefix}</dd>
    <dt>Created</dt>
    <dd>{moment(of.created_at)}</dd>
    <dt>Expires</dt>
    <dd>{of.expires_at === null ? "never" : moment(of.expires_at)}</dd>
    <dt>Requests per minute</dt>
    <dd>{of.rpm_limit === null ? "no limit" : count(of.rpm_limit)}</dd>
    <dt>Tokens per minute</dt>
    <dd>{of.tpm_limit === null ? "no limit" : count(of.tpm_limit)}</dd>
    <dt>Spend per day</dt>
    <dd>{of.daily_limit_usd === null ? "no limit" : usd(of.daily_limit_usd)}</dd>
    <dt>Spend per month</dt>
    <dd>{of.monthly_limit_usd === null ? "no limit" : usd(of.monthly_limit_usd)}</dd>
    <dt>Models</dt>
    <dd>{of.allowed_models === null ? "all" : of.allowed_models.join(", ")}</dd>
    <dt>Budgets</dt>
    <dd>{of.budget === null ? "none" : listOf(of.budget).join(", ")}</dd>
  </dl>
);

/**
 * The recovery secret replaces a key at once; 24 hours of grace are given to whoever still has the key
 * itself, or is signed in.
 */
function Rotate({ of, onClose, onRotated }: RotateProps) {
  const { api, by, secrets } = useOwner();
  const [how, setHow] = useState<"grace" | "now">("grace");
  const [pasted, setPasted] = useState("");
  const held = secrets.get(of.id);
  const needsKey = by === "recovery" && how === "grace";
  const rotate = useAction(async () => {
    const credential = held ?? pasted.trim();
    if (needsKey && credential === "") throw new Error("Paste the key to be replaced.");
    const speaker = needsKey ? new Api(credential) : api;
    onRotated(await speaker.post<RotatedAnswer>(`v1/keys/${of.id}/rotate`));
  });
  return (
    <Dialog title="Rotate the key" onClose={onClose}>
      <Form onSubmit={rotate.run}>
        <p class="soft">
          The new key takes over the name, the limits and the use so far: rotating never resets a cap.
        </p>
        {by === "recovery" && (
          <fieldset class="picks">
            <legend>The old key</legend>
            <label class="check">
              <input type="radio" name="how" checked={how === "grace"} onChange={() => setHow("grace")} />
              <span>
                works for 24 more hours <span class="soft">(tidying up)</span>
              </span>
            </label>
            <label class="check">
              <input type="radio" name="how" checked={how === "now"} onChange={() => setHow("now")} />
              <span>
                stops now <span class="soft">(lost or leaked)</span>
              </span>
            </label>
          </fieldset>
        )}
        {needsKey && held === undefined && (
          <TextField
            label="The current key"
            type="password"
            value={pasted}
            onValue={setPasted}
            placeholder={`${of.prefix}…`}
            hint="Only the holder of the key gets the 24 hours. If it is lost, stop the old key now."
          />
        )}
        <Problem error={rotate.error} />
        <DialogButtons submit="Rotate" busy={rotate.busy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}

interface RotateProps {
  readonly of: KeyAnswer;
  readonly onClose: () => void;
  readonly onRotated: (answer: RotatedAnswer) => void;
}
