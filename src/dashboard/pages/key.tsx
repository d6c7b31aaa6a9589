import { useState } from "preact/hooks";
import type { KeyAnswer, RotatedAnswer } from "../../api/keys.ts";
import { Api } from "../api.ts";
import { moment } from "../format.ts";
import { useKeyChoices, useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { FormDialog, type OneTimeSecret } from "../parts/dialog.tsx";
import { TextField, useField } from "../parts/field.tsx";
import { KeyDialog, keyOnce, RevokeDialog } from "../parts/key-dialog.tsx";
import { KeyCards, keyFacts } from "../parts/key-facts.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { Crumb, Head, Loaded } from "../parts/page.tsx";
import { UsageCharts } from "../parts/usage-charts.tsx";
import { useApi, useGet } from "../resource.ts";
import { go } from "../route.ts";

/** One key: its limits and use, and what can be done with it. */
export function KeyPage({ id }: { id: string }) {
  const api = useApi();
  const { secrets } = useOwner();
  const choices = useKeyChoices();
  const path = `v1/keys/${id}`;
  const key = useGet<KeyAnswer>(path);
  const revoke = async () => {
    await api.delete(path);
    secrets.delete(id);
  };
  return (
    <Loaded of={key}>
      {(data) => (
        <>
          <Crumb to="keys" name="Keys" />
          <Head title={data.name ?? "Unnamed key"}>
            {works(data) && (
              <>
                <Button
                  label="Change limits"
                  dialog={
                    <KeyDialog of={data} choices={choices} save={(fields) => api.patch(path, fields)} />
                  }
                  onDone={key.reload}
                />
                {data.state === "active" && (
                  <Button label="Rotate" dialog={<Rotate of={data} />} onDone={key.reload} />
                )}
                <Button
                  label="Revoke"
                  variant="quiet danger"
                  dialog={<RevokeDialog of={data} revoke={revoke} />}
                  onDone={key.reload}
                />
              </>
            )}
          </Head>
          <p>
            <KeyState of={data} />
          </p>
          <KeyCards of={data} facts={keyFacts(data)}>
            <p class="hint">Days and months are in UTC. Amounts held by open requests count at once.</p>
          </KeyCards>
          <p>
            <a href={`#/receipts?key_id=${data.id}`}>Receipts of this key</a>
          </p>
          <UsageCharts keyId={data.id} />
        </>
      )}
    </Loaded>
  );
}

/**
 * The recovery secret replaces a key at once; 24 hours of grace are given to the programs that still have the key
 * itself, or is signed in.
 */
function Rotate({ of }: { of: KeyAnswer }) {
  const api = useApi();
  const { by, secrets } = useOwner();
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
    return rotated;
  };
  return (
    <FormDialog title="Rotate the key" submit="Rotate" act={rotate} once={rotatedOnce}>
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

const rotatedOnce = (rotated: RotatedAnswer): OneTimeSecret => {
  const { expires_at } = rotated.old_key;
  const note =
    Date.parse(expires_at) > Date.now()
      ? `The old key works until ${moment(expires_at)}.`
      : "The old key has stopped working.";
  return { ...keyOnce(rotated, note), onSaved: () => go(`keys/${rotated.id}`) };
};
