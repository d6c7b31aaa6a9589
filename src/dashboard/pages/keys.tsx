import { useState } from "preact/hooks";
import type { KeyAnswer, KeyFields, MintedAnswer } from "../../api/keys.ts";
import { moment } from "../format.ts";
import { useKeyChoices } from "../key-choices.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { FirstCall } from "../parts/first-call.tsx";
import { Head } from "../parts/frame.tsx";
import { KeyDialog } from "../parts/key-dialog.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { KeyMeters } from "../parts/meter.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { ShowKeyOnce } from "../parts/show-key-once.tsx";

/** All keys of the balance, those that work first. */
export function Keys() {
  const { api, me, secrets } = useOwner();
  const choices = useKeyChoices();
  const keys = usePages<KeyAnswer>(api, "v1/keys");
  const creation = useDialog<"new">(keys.reload);
  const [minted, setMinted] = useState<MintedAnswer | null>(null);
  const [showEnded, setShowEnded] = useState(false);

  const create = async (spec: KeyFields) => {
    const made = await api.on(me.balance_id).post<MintedAnswer>("v1/keys", spec);
    secrets.set(made.id, made.key);
    setMinted(made);
  };

  return (
    <>
      <Head title="Keys" lead="One key for each program or agent, each with its own limits.">
        <Button label="New key" look="primary" onClick={() => creation.show("new")} />
      </Head>
      <Loaded of={keys}>
        {(data) => {
          const working = data.filter(works);
          const ended = data.filter((key) => !works(key));
          return (
            <>
              {working.length === 0 && (
                <Empty title={ended.length === 0 ? "No keys yet" : "No active keys"}>
                  {ended.length === 0 ? "Create the first one." : "Create one, or open an old one below."}
                </Empty>
              )}
              <ul class="cards">{working.map(row)}</ul>
              {ended.length > 0 && (
                <>
                  <button
                    type="button"
                    class="quiet"
                    aria-expanded={showEnded}
                    onClick={() => setShowEnded(!showEnded)}
                  >
                    {showEnded ? "Hide" : "Show"} {ended.length} ended
                  </button>
                  {showEnded && <ul class="cards">{ended.map(row)}</ul>}
                </>
              )}
            </>
          );
        }}
      </Loaded>
      <ShowOlder of={keys} />
      <FirstCall />
      {creation.open !== null && (
        <KeyDialog defaults={me.key_defaults} choices={choices} save={create} {...creation.ends} />
      )}
      {minted !== null && <ShowKeyOnce minted={minted} onDone={() => setMinted(null)} />}
    </>
  );
}

const row = (key: KeyAnswer) => (
  <li key={key.id} class="card key-card">
    <div class="key-names">
      <h2>
        <a href={`#/keys/${key.id}`}>{key.name ?? "Unnamed key"}</a>
      </h2>
      <p class="soft small">
        <span class="mono">{key.prefix}…</span> · since {moment(key.created_at)}
      </p>
      <KeyState of={key} />
    </div>
    <div class="key-meters">
      <KeyMeters of={key} />
    </div>
  </li>
);
