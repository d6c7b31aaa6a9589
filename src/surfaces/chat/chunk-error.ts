import { errorOf, fault } from "../host-error.ts";
import { asObject } from "../json.ts";
import type { HostError } from "../surface.ts";

/**
 * What a chunk says of a failure, beside OpenAI's `error`: hosts made with FastAPI tell it as the chunk
 * itself (vLLM and SGLang, `object: "error"`), Groq as the reason for which it stopped early
 * (`x_groq.error`). Null where it is none.
 */
export function errorIn(chunk: Readonly<Record<string, unknown>>): HostError | null {
  const { error, object } = chunk;
  if ((error !== undefined && error !== null) || object === "error")
    return errorOf(chunk, "an error without a message");
  const stopped = asObject(chunk.x_groq)?.error;
  return typeof stopped === "string" && stopped !== "" ? fault(`the host stopped early: ${stopped}`) : null;
}
