import { useState } from "preact/hooks";
import type { KeyAnswer, KeyFields, MintedAnswer } from "../../api/keys.ts";
import type { UsageAnswer } from "../../api/usage.ts";
import { useKeyChoices } from "../key-choices.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { FirstCall } from "../parts/first-call.tsx";
import { Head } from "../parts/frame.tsx";
import { KeyDialog } from "../parts/key-dialog.tsx";
import { KeyList } from "../parts/key-list.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { ShowKeyOnce } from "../parts/show-key-once.tsx";
import { useGet } from "../resource.ts";

/** All keys of the balance, those that work first. */
export function Keys() {
  const { api, me, secrets } = useOwner();
  const choices = useKeyChoices();
  const keys = usePages<KeyAnswer>(api, "v1/keys?limit=1000");
  const creation = useDialog<"new">(keys.reload);
  const [minted, setMinted] = useState<MintedAnswer | null>(null);
  const usage = useGet<UsageAnswer>(api, "v1/usage?period=month");
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
      <Loaded of={keys}>
        {(data) =>
          data.length === 0 ? (
            <Empty title="No keys yet">Create the first one.</Empty>
          ) : (
            <KeyList of={data} usage={usage.data} api={api} revoke={revoke} onRevoked={keys.reload} />
          )
        }
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
