import { fault, NO_OBJECT } from "../host-error.ts";
import { textOf } from "../json/bytes.ts";
import { parseExactObject } from "../json/exact-json.ts";
import type { Json } from "../json/json.ts";
import { eventText } from "../passing/judge.ts";
import type { HostError, Surface } from "../surface.ts";

/**
 * A whole answer is written as the stream that its host would have sent: the opposite of what a collector
 * does. It then takes the way of every stream, so clients of all languages get it as they get those.
 */
export function streamSynthesizer(
  faultIn: (json: Json) => HostError | null,
  synthesize: (json: Json) => Uint8Array | HostError,
): Surface["synthesizeStream"] {
  return (body) => {
    const json = parseExactObject(textOf(body, 0, body.length));
    return json === null ? NO_OBJECT : (faultIn(json) ?? synthesize(json));
  };
}

/** The events so far. */
export class StreamSynthesis {
  private readonly events: string[] = [];
  private length = 0;

  emit(name: string | null, data: object): void {
    if (this.length <= MAX_SYNTHESIZED) this.add(eventText(name, data));
  }

  add(event: string): void {
    this.events.push(event);
    this.length += event.length;
  }

  bytes(): Uint8Array | HostError {
    return this.length > MAX_SYNTHESIZED
      ? fault(`the answer, written as a stream, is larger than ${MAX_SYNTHESIZED} characters`)
      : Buffer.from(this.events.join(""));
  }
}

/**
 * Responses repeat a text up to five times, and every event the ids of what it belongs to, which a sick host
 * may make as long as it likes.
 */
const MAX_SYNTHESIZED = 128 * 1024 * 1024;
