import { HostFault, type HostReply, type Read } from "./transport.ts";

/** The whole body, of at most so many bytes. Synchronous when all of it is here, as a small answer usually is with its head. */
export function readWhole(
  reply: HostReply,
  most: number,
): Uint8Array | HostFault | Promise<Uint8Array | HostFault> {
  const first = reply.read();
  if (!(first instanceof Uint8Array) || first.length > most) return readOn(reply, most, [], first);
  const next = reply.read();
  return next === null ? first : readOn(reply, most, [first], next);
}

/** The same behind what was read of it before. */
export async function readOn(
  reply: HostReply,
  most: number,
  chunks: Uint8Array[],
  read: Read | Promise<Read>,
): Promise<Uint8Array | HostFault> {
  let length = chunks[0]?.length ?? 0;
  for (let next = await read; ; next = await reply.read()) {
    if (next instanceof HostFault) return next;
    if (next === null) return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    chunks.push(next);
    length += next.length;
    if (length > most) return new HostFault("malformed", `the answer is larger than ${most} bytes`);
  }
}
