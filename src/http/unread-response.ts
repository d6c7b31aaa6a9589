import type { Clock } from "../units/clock.ts";
import type { Refusal } from "../units/errors/refusal.ts";
import type { ReceiptId } from "../units/id.ts";
import { type ErrorForm, refusalBody, refusalResponse } from "./reply.ts";
import { directStream } from "./streaming.ts";

/**
 * Refuses a client that is still sending its body. Closing a socket with unread bytes resets it, and a client
 * that notices the reset before it has read the answer loses the answer (Node's fetch does). So the answer is
 * sent whole, and the connection stays open and unread for a moment, until the client has seen it.
 */
export function unreadResponse(
  refusal: Refusal,
  receipt: ReceiptId,
  form: ErrorForm,
  clock: Clock,
): Response {
  const body = new TextEncoder().encode(refusalBody(refusal, receipt, form));
  const { headers, status } = refusalResponse(refusal, receipt, form);
  headers.set("connection", "close");
  const stream = directStream({
    type: "direct",
    async pull(controller) {
      controller.write(body);
      controller.flush();
      await new Promise<void>((gone) => clock.after(LINGER_MS, gone));
      controller.end();
    },
  });
  return new Response(stream, { status, headers });
}

/** A round trip to the other side of the earth; no longer, because the response's end mark waits for it. */
const LINGER_MS = 300;
