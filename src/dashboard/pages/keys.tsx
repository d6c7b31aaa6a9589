import { useState } from "preact/hooks";
import type { KeyFields, MintedAnswer } from "../../api/keys.ts";
import { useKeyChoices } from "../key-choices.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { FirstCall } from "../parts/first-call.tsx";
import { Head } from "../parts/frame.tsx";
import { KeyDialog } from "../parts/key-dialog.tsx";
import { KeyList } from "../parts/key-list.tsx";
import { ShowKeyOnce } from "../parts/show-key-once.tsx";

/** All keys of the balance, those that work first. */
export function Keys() {
  const { api, me, secrets } = useOwner();
  const choices = useKeyChoices();
  const [round, setRound] = useState(0);
  const creation = useDialog<"new">(() => setRound(round + 1));
  const [minted, setMinted] = useState<MintedAnswer | null>(null);
  const revoke = (id: string) => api.delete(`v1/keys/${id}`);

  const create = async (spec: KeyFields) => {
    const made = await api.on(me.balance_id).post<MintedAnswer>("v1/keys", spec);
    secrets.set(made.id, made.key);
    setMinted(made);
  };

  return (
    <>
      <Head title="Keys" lead="One key for each program or agent, each with its own limits.">
        <Button label="New key" variant="primary" onClick={() => creation.show("new")} />
      </Head>
      <KeyList key={round} api={api} revoke={revoke} />
      <FirstCall />
      {creation.open !== null && (
        <KeyDialog defaults={me.key_defaults} choices={choices} save={create} {...creation.ends} />
      )}
      {minted !== null && <ShowKeyOnce minted={minted} onDone={() => setMinted(null)} />}
    </>
  );
}
