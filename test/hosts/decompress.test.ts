import { expect, test } from "bun:test";
import zlib from "node:zlib";
import { decompressed } from "../../src/hosts/http1/decompress.ts";
import { HostFault, type Read } from "../../src/hosts/transport.ts";

const EVENTS = ["data: one\n\n", "data: two\n\n", "data: three\n\n"];
const CUT = new HostFault("truncated", "The connection was cut.");

/** How a compressed body goes wrong behind events that have arrived, and what its reader gets last. */
const ENDINGS: Record<string, { rest: Read[]; fault: HostFault["kind"] }> = {
  "is cut": { rest: [CUT], fault: "truncated" },
  "ends early": { rest: [null], fault: "truncated" },
  "cannot be inflated": { rest: [Buffer.alloc(64, 0xff), null], fault: "malformed" },
};

for (const [how, { rest, fault }] of Object.entries(ENDINGS)) {
  test(`a slow reader gets all that came before a body ${how}`, async () => {
    const reads: Read[] = [...EVENTS.map(compressed), ...rest];
    const reply = decompressed({
      status: 200,
      headers: new Map([["content-encoding", "deflate"]]),
      cancelled: false,
      read: async () => (reads.length > 1 ? reads.shift()! : reads[0]!),
      takeBody() {
        throw new Error("only the inflated body is read");
      },
    });
    let text = "";
    let read = await reply.read();
    for (; read instanceof Uint8Array; read = await reply.read()) {
      text += Buffer.from(read).toString();
      // What waits could be lost meanwhile.
      await Bun.sleep(20);
    }
    expect(text).toBe(EVENTS.join(""));
    expect(read).toMatchObject({ kind: fault });
  });
}

/** Each can be inflated as soon as it is there, and the body goes on behind it. */
const compressed = (text: string): Buffer =>
  zlib.deflateRawSync(text, { finishFlush: zlib.constants.Z_SYNC_FLUSH });
