import { useState } from "preact/hooks";
import type { KeyAnswer, RotatedAnswer } from "../../api/keys.ts";
import { Api } from "../api.ts";
import { moment } from "../format.ts";
import { useKeyChoices } from "../key-choices.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { type DialogEnds, FormDialog, useDialog } from "../parts/dialog.tsx";
import { TextField, useField } from "../parts/field.tsx";
import { Crumb, Facts, Head } from "../parts/frame.tsx";
import { KeyDialog } from "../parts/key-dialog.tsx";
import { keyFacts } from "../parts/key-facts.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { KeyMeters } from "../parts/meter.tsx";
import { Loaded } from "../parts/notice.tsx";
import { RevokeDialog } from "../parts/revoke-dialog.tsx";
import { ShowKeyOnce } from "../parts/show-key-once.tsx";
import { UsageCharts } from "../parts/usage-charts.tsx";
import { useGet } from "../resource.ts";

/** One key: its limits and use, and what can be done with it. */
export function KeyPage({ id }: { id: string }) {
  const { api, secrets } = useOwner();
  const choices = useKeyChoices();
  const key = useGet<KeyAnswer>(api, `v1/keys/${id}`);
  const { open, show, ends } = useDialog<"limits" | "rotate" | "revoke">(key.reload);
  const [rotated, setRotated] = useState<RotatedAnswer | null>(null);

  return (
    <Loaded of={key}>
      {(data) => (
        <>
          <Crumb to="keys" name="Keys" />
          <Head title={data.name ?? "Unnamed key"}>
            {works(data) && (
              <>
                <Button label="Change limits" onClick={() => show("limits")} />
                {data.state === "active" && <Button label="Rotate" onClick={() => show("rotate")} />}
                <Button label="Revoke" variant="quiet danger" onClick={() => show("revoke")} />
              </>
            )}
          </Head>
          <p>
            <KeyState of={data} />
          </p>
          <div class="grid-2">
            <section class="card" aria-label="Use">
              <h2>Spending</h2>
              <KeyMeters of={data} />
              <p class="hint">Days and months are in UTC. Amounts held by open requests count at once.</p>
            </section>
            <section class="card" aria-label="Limits">
              <h2>Limits</h2>
              <Facts of={keyFacts(data)} />
            </section>
          </div>
          <p>
            <a href={`#/receipts?key_id=${data.id}`}>Receipts of this key</a>
          </p>
          <UsageCharts keyId={data.id} />
          {open === "limits" && (
            <KeyDialog
              of={data}
              choices={choices}
              save={(fields) => api.patch(`v1/keys/${id}`, fields)}
              {...ends}
            />
          )}
          {open === "rotate" && <Rotate of={data} onRotated={setRotated} {...ends} />}
          {open === "revoke" && (
            <RevokeDialog
              of={data}
              revoke={async () => {
                await api.delete(`v1/keys/${id}`);
                secrets.delete(id);
              }}
              {...ends}
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

/**
 * The recovery secret replaces a key at once; 24 hours of grace are given to the programs that still have the key
 * itself, or is signed in.
 */
function Rotate({ of, onClose, onDone, onRotated }: RotateProps) {
  const { api, by, secrets } = useOwner();
  const pasted = useField("");
  const held = secrets.get(of.id);
  // Without the key itself, what can be done at once.
  const [how, setHow] = useState<(typeof WAYS)[number][0]>(held === undefined ? "now" : "grace");
  const needsKey = by === "recovery" && how === "grace";
  const rotate = async () => {
    const credential = held ?? pasted.value.trim();
    if (needsKey && credential === "") throw new Error("Paste the key to be replaced.");
    const speaker = needsKey ? new Api(credential) : api;
    const rotated = await speaker.post<RotatedAnswer>(`v1/keys/${of.id}/rotate`);
    secrets.set(rotated.id, rotated.key);
    onRotated(rotated);
    onDone();
  };
  return (
    <FormDialog title="Rotate the key" submit="Rotate" act={rotate} onClose={onClose}>
      <p class="soft">
        The new key takes over the name, the limits and the use so far: rotating never resets a cap.
      </p>
      {by === "recovery" && (
        <fieldset class="picks">
          <legend>The old key</legend>
          {WAYS.map(([way, effect, reason]) => (
            <label key={way} class="check">
              <input type="radio" name="how" checked={how === way} onChange={() => setHow(way)} />
              <span>
                {effect} <span class="soft">{reason}</span>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      {needsKey && held === undefined && (
        <TextField
          label="The current key"
          type="password"
          placeholder={`${of.prefix}…`}
          hint="Only the holder of the key gets the 24 hours. If it is lost, stop the old key now."
          {...pasted}
        />
      )}
    </FormDialog>
  );
}

const WAYS = [
  ["grace", "works for 24 more hours", "(tidying up)"],
  ["now", "stops now", "(lost or leaked)"],
] as const;

interface RotateProps extends DialogEnds {
  readonly of: KeyAnswer;
  readonly onRotated: (answer: RotatedAnswer) => void;
}
