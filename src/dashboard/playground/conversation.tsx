import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Api, ApiRefusal } from "../api.ts";
import { count, milliseconds, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { Choice, Form, SearchChoice } from "../parts/field.tsx";
import { Note, Problem } from "../parts/page.tsx";
import { useAction } from "../resource.ts";
import { ChatImages } from "./chat-images.tsx";
import { ChatSettings, useChatSettings } from "./chat-settings.tsx";
import { type ChatAnswer, type ChatMessage, contentOf, streamChat } from "./chat-stream.ts";
import { canAnswer, firstToAnswer, MAX_ANSWER_TOKENS, type ModelChoice } from "./model-choices.ts";

/** Messages to models, and what each answer took. Kept for as long as the page is shown. */
export function Conversation({ secret, keyId, models }: ConversationProps) {
  const { me } = useOwner();
  const [model, setModel] = useState(() => (firstToAnswer(models, me) ?? models[0]!).id);
  const chosen = models.find(({ id }) => id === model)!;
  const talk = useTalk(secret, chosen);
  const { turns, coming, send } = talk;
  return (
    <section class="card chat">
      {models.length > MANY ? (
        <SearchChoice
          label="Model"
          all="Part of an id"
          value={model}
          onValue={(id) => id !== "" && setModel(id)}
          options={models.map(({ id }) => id)}
        />
      ) : (
        <Choice
          label="Model"
          value={model}
          onValue={setModel}
          options={models.map(({ id, name }) => [id, name])}
        />
      )}
      <ChatSettings fields={talk.settings.fields} request={talk.nextRequest()} />
      <Warning chosen={chosen} models={models} />
      <div class="talk" role="log" aria-label="Conversation" aria-busy={coming !== null}>
        {turns.length === 0 && coming === null && <p class="soft">Send a message to begin.</p>}
        {turns.map((turn, index) => (
          <TurnView key={index} turn={turn} />
        ))}
        {coming !== null && <TurnView turn={coming} streaming />}
      </div>
      <Problem error={send.error} />
      <NextStep error={send.error} keyId={keyId} model={model} models={models} onModel={setModel} />
      <NextMessage of={talk} readsImages={chosen.readsImages} />
    </section>
  );
}

/** The turns so far, what is typed next, and the way to the model. */
function useTalk(secret: string, { id: model, readsImages }: ModelChoice) {
  const { refresh } = useOwner();
  const [turns, setTurns] = useState<readonly ChatTurn[]>([]);
  const [draft, setDraft] = useState("");
  const [images, setImages] = useState<readonly string[]>([]);
  const [coming, setComing] = useState<AnsweredTurn | null>(null);
  const settings = useChatSettings();
  // They stay for a model that reads them.
  const sent = readsImages ? images : [];
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);

  const send = useAction(async () => {
    const content = draft.trim();
    if (content === "") return;
    const { system, ...parameters } = settings.read();
    const allTurns = [...turns, { role: "user", content, images: sent } as const];
    const stop = new AbortController();
    abort.current = stop;
    let turn: AnsweredTurn = { role: "assistant", content: "", model, answer: null };
    setTurns(allTurns);
    setDraft("");
    setImages([]);
    setComing(turn);
    try {
      await streamChat(
        new Api(secret),
        { model, messages: messagesOf(allTurns, system), ...parameters },
        (answer) => setComing((turn = { ...turn, content: answer.text, answer })),
        stop.signal,
      );
      if (turn.content === "") throw new Error(SILENT);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      setComing(null);
      if (turn.content !== "") setTurns([...allTurns, turn]);
      else {
        // Nothing came of it: the words go back to where they can be sent again.
        setTurns(turns);
        setDraft(content);
        setImages(images);
      }
      refresh();
    }
  });

  /** What would be sent now; where a setting is mistaken, without it. */
  const nextRequest = () => {
    const next = draft.trim() === "" && turns.length > 0 ? turns : [...turns, draftTurn(draft, sent)];
    try {
      const { system, ...parameters } = settings.read();
      return { model, messages: messagesOf(next, system), ...parameters };
    } catch {
      return { model, messages: messagesOf(next, ""), maxTokens: MAX_ANSWER_TOKENS, temperature: null };
    }
  };

  const stop = () => abort.current?.abort();
  return { turns, coming, draft, setDraft, images, setImages, settings, send, stop, nextRequest };
}

function NextMessage({ of, readsImages }: { of: ReturnType<typeof useTalk>; readsImages: boolean }) {
  const { turns, coming, draft, setDraft, images, setImages, send, stop } = of;
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (turns.length > 0) end.current?.scrollIntoView({ block: "nearest" });
  }, [turns, coming]);
  return (
    <Form onSubmit={send.run}>
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
      {readsImages && <ChatImages images={images} onImages={setImages} />}
      <div class="row" ref={end}>
        {/* Were they one element, the click that stops would go on to send: its button is the other one by then. */}
        {send.busy ? (
          <Button key="stop" label="Stop" onClick={stop} />
        ) : (
          <button key="send" type="submit" class="primary" disabled={draft.trim() === ""}>
            Send
          </button>
        )}
        <span class="hint">Enter sends; Shift+Enter starts a new line.</span>
      </div>
    </Form>
  );
}

/** With more models than that, the user searches for one. */
const MANY = 20;

interface ConversationProps {
  readonly secret: string;
  readonly keyId: string;
  /** At least one. */
  readonly models: readonly ModelChoice[];
}

type ChatTurn =
  | AnsweredTurn
  | { readonly role: "user"; readonly content: string; readonly images: readonly string[] };

interface AnsweredTurn {
  readonly role: "assistant";
  readonly content: string;
  /** Which gave it. */
  readonly model: string;
  /** Null until its response began. */
  readonly answer: ChatAnswer | null;
}

const draftTurn = (draft: string, images: readonly string[]): ChatTurn => ({
  role: "user",
  content: draft.trim() || "Hello!",
  images,
});

const messagesOf = (turns: readonly ChatTurn[], system: string): ChatMessage[] => [
  ...(system === "" ? [] : [{ role: "system" as const, content: system }]),
  ...turns.map((turn) => ({
    role: turn.role,
    content: turn.role === "user" ? contentOf(turn.content, turn.images) : turn.content,
  })),
];

const SILENT = `The model returned no text. A model that thinks first may have used up its ${count(MAX_ANSWER_TOKENS)} tokens: ask for something shorter, raise the longest answer in the settings, or choose another model.`;

function TurnView({ turn, streaming = false }: { turn: ChatTurn; streaming?: boolean }) {
  const Markdown = useMarkdown();
  if (turn.role === "user") {
    return (
      <div class="said user">
        <div class="soft small">You</div>
        <div class="said-text">{turn.content}</div>
        {turn.images.map((image, index) => (
          <img key={image} class="said-image" src={image} alt={`Sent, ${index + 1}`} />
        ))}
      </div>
    );
  }
  const { content, model, answer } = turn;
  return (
    <div class="said assistant">
      <div class="soft small">{model}</div>
      <div class={streaming ? "streaming" : ""}>
        {content === "" && (
          <span class="soft">{answer?.firstTokenMs == null ? "Waiting…" : "Thinking…"}</span>
        )}
        {Markdown === null ? <div class="said-text">{content}</div> : <Markdown text={content} />}
      </div>
      {!streaming && answer !== null && <Took of={answer} />}
    </div>
  );
}

/** What the answer used, cost and took; of one that was stopped, only what is known. */
const Took = ({ of: { usage, firstTokenMs, totalMs, receipt, finishReason } }: { of: ChatAnswer }) => (
  <ul class="took soft small">
    {totalMs === null && <li>stopped</li>}
    {finishReason === "length" && <li class="warn">cut off at its longest</li>}
    {usage !== null && (
      <li>
        {count(usage.inputTokens)} → {count(usage.outputTokens)} tokens
      </li>
    )}
    {usage?.costUsd != null && <li>{usd(usage.costUsd)}</li>}
    {firstTokenMs !== null && <li>first token after {milliseconds(firstTokenMs)}</li>}
    {totalMs !== null && <li>{milliseconds(totalMs)} in all</li>}
    {receipt !== null && (
      <li>
        <a href={`#/receipts/${receipt}`}>
          Receipt<span class="unseen"> of this answer</span>
        </a>
      </li>
    )}
  </ul>
);

/** The reader of Markdown, which no other page needs; null until it is here. */
function useMarkdown(): FunctionComponent<{ text: string }> | null {
  const [part, setPart] = useState<typeof import("./markdown.tsx") | null>(null);
  useEffect(() => {
    // Without it, answers are shown as they came.
    import("./markdown.tsx").then(setPart).catch(() => {});
  }, []);
  return part?.Markdown ?? null;
}

/** Before a refusal says so. */
function Warning({ chosen, models }: { chosen: ModelChoice; models: readonly ModelChoice[] }) {
  const { me } = useOwner();
  if (canAnswer(chosen, me)) return null;
  const other = firstToAnswer(models, me);
  const credit = me.available_usd <= 0 ? "There is no credit" : `There is ${usd(me.available_usd)} of credit`;
  return (
    <Note tone="warn">
      {chosen.price === null
        ? "Today's free requests are used up"
        : `${credit} on this balance, which does not cover an answer of this model`}
      : <a href="#/credit">add credit</a>
      {other === null ? "; no other model can answer now." : `, or choose ${other.name}.`}
    </Note>
  );
}

/** What helps with a refusal, a click away. */
function NextStep({ error, keyId, model, models, onModel }: NextStepProps) {
  const { me } = useOwner();
  if (!(error instanceof ApiRefusal)) return null;
  const others = models.filter(({ id }) => id !== model);
  const other = firstToAnswer(others, me);
  const step = STEPS[error.code];
  if (step === undefined && other === null) return null;
  return (
    <div class="row next-step">
      {other !== null && error.code !== "invalid_api_key" && (
        <Button label={`Switch to ${other.name}`} onClick={() => onModel(other.id)} />
      )}
      {step === "credit" && <a href="#/credit">Add credit</a>}
      {step === "key" && <a href={`#/keys/${keyId}`}>See this key's limits</a>}
    </div>
  );
}

interface NextStepProps {
  readonly error: unknown;
  readonly keyId: string;
  /** The one that was asked. */
  readonly model: string;
  readonly models: readonly ModelChoice[];
  readonly onModel: (id: string) => void;
}

const STEPS: Readonly<Record<string, "credit" | "key" | undefined>> = {
  insufficient_credit: "credit",
  budget_exhausted: "key",
  rate_limited: "key",
  invalid_api_key: "key",
  invalid_request: "key",
};
