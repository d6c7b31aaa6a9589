import { useState } from "preact/hooks";
import type { EntryAnswer } from "../../api/catalog.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { List } from "../../api/schema.ts";
import { Api } from "../api.ts";
import { useMint, useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { ActionForm, TextField, useField } from "../parts/field.tsx";
import { Empty, Head, Loaded, Problem } from "../parts/page.tsx";
import { useAction, useResource } from "../resource.ts";
import { Conversation } from "./conversation.tsx";
import { modelChoices } from "./model-choices.ts";

/** Talks to a model with one of the balance's own keys, as any program would. */
export function Playground() {
  const { secrets } = useOwner();
  // The last one whose plaintext this tab knows.
  const [secret, setSecret] = useState<string | null>(() => [...secrets.values()].at(-1) ?? null);
  return (
    <>
      <Head
        title="Playground"
        lead="Requests are sent with one of your keys, and cost the same as anywhere else."
      />
      {secret === null ? <NeedsKey onKey={setSecret} /> : <WithKey secret={secret} />}
    </>
  );
}

function WithKey({ secret }: { secret: string }) {
  const found = useResource(
    async (api) => {
      const models = api.get<List<EntryAnswer>>("v1/catalog");
      const { data } = await new Api(secret).get<List<KeyAnswer>>("v1/keys");
      return { key: data[0]!, models: modelChoices((await models).data, data[0]!.allowed_models) };
    },
    [secret],
  );
  return (
    <Loaded of={found}>
      {({ key, models }) =>
        models.length === 0 ? (
          <Empty title="No model can be called right now">
            Either every host is out of order (<a href="status">status</a>), or this{" "}
            <a href={`#/keys/${key.id}`}>key</a> allows no model that is served.
          </Empty>
        ) : (
          <Conversation secret={secret} keyId={key.id} models={models} />
        )
      }
    </Loaded>
  );
}

function NeedsKey({ onKey }: { onKey: (secret: string) => void }) {
  const mint = useMint();
  const { secrets } = useOwner();
  const pasted = useField("");
  const use = useAction(async () => {
    const secret = pasted.value.trim();
    const { data } = await new Api(secret).get<List<KeyAnswer>>("v1/keys");
    if (data[0] !== undefined) secrets.set(data[0].id, secret);
    onKey(secret);
  });
  const create = useAction(async () =>
    onKey((await mint({ name: "playground", daily_limit_usd: PLAYGROUND_USD })).key),
  );
  return (
    <div class="grid-2">
      <section class="card">
        <h2>Use a key you have</h2>
        <p class="soft">It stays in this tab's memory and is forgotten when the tab is closed or reloaded.</p>
        <ActionForm action={use} submit="Use it">
          <TextField label="API key" type="password" placeholder="or-live-…" required {...pasted} />
        </ActionForm>
      </section>
      <section class="card">
        <h2>Or create one for the playground</h2>
        <p class="soft">
          Named “playground”, with a cap of ${PLAYGROUND_USD} per day. Revoke it whenever you like.
        </p>
        <Problem error={create.error} />
        <Button label="Create a playground key" action={create} />
      </section>
    </div>
  );
}

const PLAYGROUND_USD = 1;
