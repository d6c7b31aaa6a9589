import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { TestGateway } from "./test-gateway.ts";

/** A gateway with room for 150,000 bytes of large bodies, and a limit of 100,000 for each. */
let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  gateway = new TestGateway();
  key = (await gateway.setUp()).key;
});
afterEach(() => gateway.stop());

const QUICKLY = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const PACK = {
  gzip: gzipSync,
  br: (body: Uint8Array) => brotliCompressSync(body, QUICKLY),
  zstd: zstdCompressSync,
};
type Coding = keyof typeof PACK;
const CODINGS = Object.keys(PACK) as Coding[];

async function send(
  body: Uint8Array | ReadableStream,
  coding: string,
  bearer = key,
  path = "/v1/chat/completions",
) {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-encoding": coding },
    body: body as BodyInit,
  });
  const { error } = (await response.json()) as {
    error?: { code: string; param: string | null; message: string };
  };
  return { status: response.status, error };
}

/** Text that packs to about half. */
const prompt = (bytes: number): Uint8Array => {
  const random = Buffer.alloc(Math.ceil(bytes / 2), "");
  crypto.getRandomValues(random);
  return Buffer.from(random.toString("hex").slice(0, bytes));
};
const free = () => expect([gateway.bodies.taken, gateway.bodies.waiting]).toEqual([0, 0]);

describe.each(CODINGS)("a body packed with %s", (coding) => {
  const pack = (bytes: Uint8Array) => PACK[coding](bytes);

  test.each([12, 60_000, 70_000, 100_000])("of %d bytes arrives unpacked", async (bytes) => {
    const whole = prompt(bytes);
    expect((await send(pack(whole), coding)).status).toBe(200);
    expect(Buffer.from(gateway.calls[0]!.body).equals(Buffer.from(whole))).toBe(true);
    free();
  });

  test("arrives in chunks of unknown length too", async () => {
    const whole = prompt(90_000);
    const stream = new Blob([pack(whole)]).stream();
    expect((await send(stream, coding)).status).toBe(200);
    expect(gateway.calls[0]!.body).toHaveLength(90_000);
    free();
  });

  test("holds no more room than it unpacked to, while its answer is awaited", async () => {
    let taken = 0;
    const { generate } = gateway;
    gateway.generate = (call) => {
      taken = gateway.bodies.taken;
      return generate(call);
    };
    await send(pack(prompt(80_000)), coding);
    expect(taken).toBe(80_000);
  });

  test.each([100_001, 64_000_000])(
    "of %d bytes once unpacked is 413, however few were sent",
    async (bytes) => {
      const bomb = pack(Buffer.alloc(bytes, "x"));
      expect(bomb.length).toBeLessThan(100_000);
      const { status, error } = await send(bomb, coding);
      expect([status, error?.code]).toEqual([413, "payload_too_large"]);
      expect(error?.message).toContain("100000 bytes");
      expect(gateway.calls).toEqual([]);
      free();
    },
  );

  test.each([200, 80_000])(
    "that is none, or cut off, of %d bytes is refused by its header",
    async (bytes) => {
      for (const broken of [Buffer.alloc(bytes, 0xff), pack(prompt(bytes)).subarray(0, bytes / 4)]) {
        const { status, error } = await send(broken, coding);
        // A zstd body that is cut off has what came.
        if (status === 200 && coding === "zstd") continue;
        expect([status, error?.code, error?.param]).toEqual([400, "invalid_request", "Content-Encoding"]);
      }
      free();
    },
  );

  test("is unpacked for nobody without a key, or above its rate", async () => {
    const wrong = `or-live-${"1".repeat(32)}`;
    expect((await send(pack(prompt(50)), coding, wrong)).status).toBe(401);
    gateway.overRate = true;
    expect((await send(pack(prompt(50)), coding)).status).toBe(429);
    expect(gateway.calls).toEqual([]);
    free();
  });

  test("of which more is sent than is allowed unpacked is not read", async () => {
    const { status } = await send(prompt(100_001), coding);
    expect(status).toBe(413);
  });
});

test.each(["GZIP", " gzip ", "x-gzip"])("a header that says %p is understood", async (named) => {
  expect((await send(gzipSync(prompt(100)), named)).status).toBe(200);
  expect(gateway.calls[0]!.body).toHaveLength(100);
});

test("identity is a body as it is", async () => {
  expect((await send(prompt(100), "identity")).status).toBe(200);
  expect(gateway.calls[0]!.body).toHaveLength(100);
});

test.each(["deflate", "gzip, zstd", "gzip, gzip", "compress", "__proto__"])(
  "%p is refused, naming what is read",
  async (named) => {
    const { status, error } = await send(deflateSync(prompt(100)), named);
    expect([status, error?.code, error?.param]).toEqual([400, "invalid_request", "Content-Encoding"]);
    expect(error?.message).toContain("gzip, br or zstd");
    expect(gateway.calls).toEqual([]);
  },
);

test("zstd that needs a window of more than 8 MB to be unpacked is refused", async () => {
  const params = { [constants.ZSTD_c_windowLog]: 25, [constants.ZSTD_c_contentSizeFlag]: 0 };
  const wide = zstdCompressSync(Buffer.alloc(40_000_000, "x"), { params });
  const { status } = await send(wide, "zstd");
  expect(status).toBe(400);
});

test("tokens of a packed body are counted", async () => {
  const { status } = await send(gzipSync(prompt(100)), "gzip", key, "/v1/messages/count_tokens");
  expect(status).toBe(200);
});
