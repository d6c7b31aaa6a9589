import type { Host } from "../../src/catalog/catalog.ts";
import {
  type Destination,
  type HostCall,
  HostFault,
  type HostReply,
  type Transport,
} from "../../src/hosts/transport.ts";

/** How tests speak to a transport. */
export const post = (
  host: Host,
  { method, path, ...call }: Partial<Destination & HostCall> = {},
): HostCall => ({
  to: { host, method: method ?? "POST", path: path ?? "/chat/completions", headers: {} },
  headers: { "content-type": "application/json" },
  body: [new TextEncoder().encode("{}")],
  ...call,
});

export async function replyTo(transport: Transport, call: HostCall): Promise<HostReply> {
  const reply = await transport.open(call).reply;
  if (reply instanceof HostFault) throw new Error(`${reply.kind}: ${reply.message}`);
  return reply;
}

/** The whole body, and the kind of fault that ended it, if one did. */
export async function bodyOf(reply: HostReply): Promise<{ text: string; fault: string | null }> {
  const parts: Uint8Array[] = [];
  for (;;) {
    const next = await reply.read();
    if (next instanceof HostFault || next === null) {
      return { text: Buffer.concat(parts).toString(), fault: next?.kind ?? null };
    }
    parts.push(next);
  }
}

export async function exchanged(transport: Transport, call: HostCall): Promise<string> {
  const { text, fault } = await bodyOf(await replyTo(transport, call));
  if (fault !== null) throw new Error(fault);
  return text;
}

export async function faultOf(transport: Transport, call: HostCall): Promise<HostFault> {
  const reply = await transport.open(call).reply;
  if (!(reply instanceof HostFault)) throw new Error(`answered ${reply.status}`);
  return reply;
}

/** Exactly the next so many bytes, as text. */
export async function nextText(reply: HostReply, length: number): Promise<string> {
  let text = "";
  while (text.length < length) {
    const next = await reply.read();
    if (next === null || next instanceof HostFault) throw new Error(`ended after ${JSON.stringify(text)}`);
    text += Buffer.from(next).toString();
  }
  return text;
}
