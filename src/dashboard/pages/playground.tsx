import { useEffect, useRef, useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { EntryAnswer } from "../../api/catalog.ts";
import type { KeyAnswer, MintedAnswer } from "../../api/keys.ts";
import { Api } from "../api.ts";
import { type ChatMessage, streamChat } from "../chat-stream.ts";
import { useOwner } from "../owner.ts";
import { Choice, Form, TextField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Loaded, Note, Problem } from "../parts/notice.tsx";
import { useAction, useResource } from "../resource.ts";

/** Talks to a model with one of the balance's own keys, as any program would. */
export function Playground() {
  const { api } = useOwner();
  const models = useResource(() => api.get<List<EntryAnswer>>("v1/catalog"), [api]);
  const [key, setKey] = usePlaygroundKey();
  return (
    <>
      <Head
        title="Playground"
        lead="Requests are sent with one of your keys, and cost the same as anywhere else."
      />
      {key === null ? (
        <NeedsKey onKey={setKey} />
      ) : (
        <Loaded of={models}>{({ data }) => <Conversation secret={key} models={choices(data)} />}</Loaded>
      )}
    </>
  );
}

/** The first key whose plaintext this tab knows. */
function usePlaygroundKey(): [string | null, (secret: string) => void] {
  const { secrets } = useOwner();
  const [key, setKey] = useState<string | null>(() => [...secrets.values()].at(-1) ?? null);
  return [key, setKey];
}

interface ModelChoice {
  readonly id: string;
  readonly name: string;
  readonly free: boolean;
}

/** A model's free route has a name of its own, which costs nothing. */
const choices = (models: readonly EntryAnswer[]): readonly ModelChoice[] =>
  models
    .filter(({ available, surfaces }) => available && surfaces.includes("chat.completions"))
    .flatMap(({ id, name, free, price }) => [
      ...(free ? [{ id: `${id}:free`, name: `${name} (free)`, free }] : []),
      ...(price === null ? [] : [{ id, name, free: price.input === 0 && price.output === 0 }]),
    ]);

/** Without credit, only a free model can answer. */
const firstChoice = (models: readonly ModelChoice[], availableUsd: number): string =>
  ((availableUsd > 0 ? undefined : models.find(({ free }) => free)) ?? models[0])?.id ?? "";

function NeedsKey({ onKey }: { onKey: (secret: string) => void }) {
  const { api, me, secrets } = useOwner();
  const [pasted, setPasted] = useState("");
  const use = useAction(async () => {
    const secret = pasted.trim();
    const { data } = await new Api(secret).get<List<KeyAnswer>>("v1/keys");
    if (data[0] !== undefined) secrets.set(data[0].id, secret);
    onKey(secret);
  });
  const create = useAction(async () => {
    const made = await api.on(me.balance_id).post<MintedAnswer>("v1/keys", {
      name: "playground",
      daily_limit_usd: PLAYGROUND_USD,
    });
    secrets.set(made.id, made.key);
    onKey(made.key);
  });
  return (
    <div class="grid-2">
      <section class="card">
        <h2>Use a key you have</h2>
        <p class="soft">It stays in this tab's memory and is forgotten when the tab is closed or reloaded.</p>
        <Form onSubmit={use.run}>
          <TextField
            label="API key"
            type="password"
            value={pasted}
            onValue={setPasted}
            placeholder="or-live-…"
            required
          />
          <Problem error={use.error} />
          <button type="submit" class="primary" disabled={use.busy}>
            Use it
          </button>
        </Form>
      </section>
      <section class="card">
        <h2>Or create one for the playground</h2>
        <p class="soft">
          Named “playground”, with a cap of ${PLAYGROUND_USD} per day. Revoke it whenever you like.
        </p>
        <Problem error={create.error} />
        <button type="button" class="quiet" disabled={create.busy} onClick={() => create.run()}>
          Create a playground key
        </button>
      </section>
    </div>
  );
}

const PLAYGROUND_USD = 1;
const MAX_TOKENS = 1_024;

function Conversation({ secret, models }: { secret: string; models: readonly ModelChoice[] }) {
  const { me, refresh } = useOwner();
  const [model, setModel] = useState(() => firstChoice(models, me.available_usd));
  const [said, setSaid] = useState<readonly ChatMessage[]>([]);
  const [draft, setDraft] = useState("");
  const [answer, setAnswer] = useState<string | null>(null);
  const [receipt, setReceipt] = useState<string | null>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);

  const send = useAction(async () => {
    const content = draft.trim();
    if (content === "") return;
    const messages = [...said, { role: "user", content } as const];
    const stop = new AbortController();
    abort.current = stop;
    let text = "";
    setSaid(messages);
    setDraft("");
    setReceipt(null);
    setAnswer("");
    try {
      const id = await streamChat(
        new Api(secret),
        { model, messages, maxTokens: MAX_TOKENS },
        (more) => setAnswer((text += more)),
        stop.signal,
      );
      setReceipt(id);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      setAnswer(null);
      if (text !== "") setSaid([...messages, { role: "assistant", content: text }]);
      else {
        // Nothing came of it: the words go back to where they can be sent again.
        setSaid(said);
        setDraft(content);
      }
      refresh();
    }
  });

  if (models.length === 0) return <p class="soft">No model can be called right now.</p>;
  return (
    <section class="card chat">
      <Choice
        label="Model"
        value={model}
        onValue={setModel}
        options={models.map(({ id, name }) => [id, name] as const)}
      />
      {me.available_usd <= 0 && <WithoutCredit chosen={model} models={models} />}
      <div class="talk" role="log" aria-label="Conversation" aria-busy={answer !== null}>
        {said.length === 0 && <p class="soft">Send a message to begin.</p>}
        {said.map((message, index) => (
          <Said key={index} message={message} />
        ))}
        {answer !== null && <Said message={{ role: "assistant", content: answer }} streaming />}
      </div>
      {receipt !== null && (
        <p class="small">
          <a href={`#/receipts/${receipt}`}>Receipt of this answer</a>
        </p>
      )}
      <Problem error={send.error} />
      <Form class="say" onSubmit={send.run}>
        <label class="unseen" for="message">
          Message
        </label>
        <textarea
          id="message"
          rows={3}
          value={draft}
          placeholder="Message"
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              send.run();
            }
          }}
        />
        <div class="row">
          {/* Were they one element, the click that stops would go on to send: its button is the other one by then. */}
          {send.busy ? (
            <button key="stop" type="button" class="quiet" onClick={() => abort.current?.abort()}>
              Stop
            </button>
          ) : (
            <button key="send" type="submit" class="primary" disabled={draft.trim() === ""}>
              Send
            </button>
          )}
          <span class="hint">Enter sends; Shift+Enter starts a new line.</span>
        </div>
      </Form>
    </section>
  );
}

/** Before a refusal says so: a paid model answers nobody without credit. */
function WithoutCredit({ chosen, models }: { chosen: string; models: readonly ModelChoice[] }) {
  if (models.find(({ id }) => id === chosen)?.free) return null;
  const free = models.find((model) => model.free);
  return (
    <Note tone="warn">
      <p>
        There is no credit on this balance, and this model is paid for: <a href="#/credit">add credit</a>
        {free === undefined ? "; no model here is free." : `, or choose ${free.name}.`}
      </p>
    </Note>
  );
}

const Said = ({ message, streaming = false }: { message: ChatMessage; streaming?: boolean }) => (
  <div class={`said ${message.role}`}>
    <div class="soft small">{message.role === "user" ? "You" : "Model"}</div>
    <div class={streaming ? "said-text streaming" : "said-text"}>{message.content}</div>
  </div>
);
