import { withoutByteOrderMark } from "../../units/byte-order-mark.ts";
import { textOf } from "../json/bytes.ts";
import { parseJson } from "../json/json.ts";
import { JsonCursor } from "../json/json-cursor.ts";
import { isSpelt, OPEN_BRACKET, QUOTE, skipSpace, skipString } from "../json/json-scan.ts";
import type { GenerationRequest } from "../surface.ts";

/**
 * What a request asked for that was refused as it was read, as far as its body tells: for the receipt. The
 * body is stepped over once more, so that requests that are served carry nothing for this; it may be broken
 * or huge, so only the model's name is parsed.
 */
export function subjectOf(sent: Uint8Array): Subject {
  const body = withoutByteOrderMark(sent);
  const cursor = new JsonCursor();
  let model: string | null = null;
  let firstModel = "";
  let stream: boolean | null = null;
  cursor.begin(body, 0, body.length);
  cursor.enterObject();
  while ((model === null || stream === null) && cursor.nextMember()) {
    const start = cursor.at;
    const isModel = cursor.isNamed("model");
    const isList = cursor.isNamed("models") && body[start] === OPEN_BRACKET;
    const isStream = cursor.isNamed("stream");
    cursor.skip();
    if (isModel) model = textAt(body, start);
    else if (isList) firstModel = textAt(body, skipSpace(body, start + 1, body.length));
    else if (isStream) stream = isSpelt(body, "true", start, cursor.at);
  }
  return { model: model ?? firstModel, stream: stream ?? false };
}

export type Subject = Pick<GenerationRequest, "model" | "stream">;

/** Empty where the value is no text, or breaks off. */
function textAt(body: Uint8Array, start: number): string {
  if (body[start] !== QUOTE) return "";
  return (parseJson(textOf(body, start, skipString(body, start, body.length))) as string | undefined) ?? "";
}
