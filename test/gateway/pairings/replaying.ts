import { json } from "../../fakes/behaviours.ts";
import type { Behaviour, FakeRequest } from "../../fakes/host.ts";
import type { Transcript } from "../../fakes/hosts/transcript.ts";

/** The transcript's bytes, in the form that the request asks for. */
export function replaying({ stream, whole }: Transcript, request: FakeRequest): Behaviour {
  if (request.json().stream !== true) return json(whole);
  return async (wire) => {
    await wire.write(
      `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${Buffer.byteLength(stream)}\r\n\r\n${stream}`,
    );
  };
}
