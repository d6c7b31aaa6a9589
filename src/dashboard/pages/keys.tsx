import { useState } from "preact/hooks";
import { useKeyChoices, useMint, useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { FirstCall } from "../parts/first-call.tsx";
import { KeyDialog, keyOnce } from "../parts/key-dialog.tsx";
import { KeyList } from "../parts/key-list.tsx";
import { Head } from "../parts/page.tsx";

/** All keys of the balance, those that work first. */
export function Keys() {
  const { me } = useOwner();
  const choices = useKeyChoices();
  const create = useMint();
  const [round, setRound] = useState(0);
  return (
    <>
      <Head title="Keys" lead="One key for each program or agent, each with its own limits.">
        <Button
          label="New key"
          variant="primary"
          dialog={<KeyDialog defaults={me.key_defaults} choices={choices} save={create} once={keyOnce} />}
          onDone={() => setRound(round + 1)}
        />
      </Head>
      <KeyList key={round} />
      <FirstCall />
    </>
  );
}
