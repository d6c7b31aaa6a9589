import { refused } from "../../units/errors/refusal.ts";
import { contains } from "../json/bytes.ts";
import { asObject, type Json } from "../json/json.ts";
import { parseReply } from "../passing/reply.ts";
import { BodyChanges } from "../request/body-changes.ts";
import { readRequestBody } from "../request.ts";

/**
 * Codex has a conversation that grows too long shortened by ending `input` with `compaction_trigger`; the
 * answer is one item of type `compaction`, which it sends in the place of what it stands for. OpenAI encrypts
 * that item. Hosts of other languages write a summary in words, which the item then carries: for the
 * client it is opaque like OpenAI's, and any host can read it.
 */
export const asksForSummary = ({ input }: Json): boolean =>
  Array.isArray(input) && asObject(input.at(-1))?.type === TRIGGER;

export const TRIGGER = "compaction_trigger";

export const SUMMARY_REQUEST =
  "Summarize this conversation for the model that will continue it and will see nothing else of it: the task and its constraints, decisions and their reasons, files and commands that matter, results, what is left to do. Answer with the summary alone.";

export const summaryMark = (summary: string): string => `${MARK}${summary}`;

/** Null for an item that the gateway did not make, which only OpenAI can read. */
export const readSummary = ({ encrypted_content: content }: Json): string | null =>
  typeof content === "string" && content.startsWith(MARK)
    ? `Summary of the conversation so far:\n\n${content.slice(MARK.length)}`
    : null;

/**
 * A body of `/v1/responses/compact` as an ordinary request that asks for the same. One that cannot be read stays as
 * it is: it is refused where all are read.
 */
export function compactionRequest(sent: Uint8Array): Uint8Array {
  const read = readRequestBody(sent, "responses");
  if (refused(read)) return sent;
  const { input, stream } = read.json;
  if (typeof input !== "string" && !Array.isArray(input)) return sent;
  const items = typeof input === "string" ? [{ type: "message", role: "user", content: input }] : input;
  const changes = new BodyChanges();
  changes.set("input", JSON.stringify([...items, { type: TRIGGER }]));
  if (stream !== undefined) changes.set("stream", "false");
  return changes.applyTo(read.body);
}

/** The answer to that in the form of `/v1/responses/compact`; null where the conversation was not shortened. */
export function readCompaction(body: Uint8Array): Json | null {
  const { id, created_at, output, usage, status } = parseReply(body) ?? {};
  if (status !== "completed" || !Array.isArray(output)) return null;
  const kept = output.filter((item) => asObject(item)?.type === "compaction");
  return kept.length === 0 ? null : { id, object: "response.compaction", created_at, output: kept, usage };
}

/** Items with summaries of the gateway as what they say, for hosts that expect their own kind of item. */
export function withPlainSummaries(input: readonly unknown[], body: Uint8Array): readonly unknown[] {
  if (!contains(body, MARK_BYTES)) return input;
  return input.map((value) => {
    const item = asObject(value);
    const text = item?.type === "compaction" ? readSummary(item) : null;
    return text === null ? value : { type: "message", role: "user", content: [{ type: "input_text", text }] };
  });
}

const MARK = "gwsummary:1:";
const MARK_BYTES = Buffer.from(MARK);
