import { describe, expect, test } from "bun:test";
import { HEAD_BYTES_MAX } from "../../src/hosts/http1/head.ts";
import { ResponseReader } from "../../src/hosts/http1/reader.ts";

interface Reading {
  status: number | null;
  headers: [string, string][];
  body: string;
  end: string;
  reusable: boolean;
}

/** What a caller would see of these bytes, fed in pieces of the given sizes and then closed. */
function read(text: string, cuts: readonly number[] = [], clean = true): Reading {
  const bytes = Buffer.from(text, "latin1");
  const reader = new ResponseReader();
  let body = "";
  const edges = [0, ...cuts, bytes.length];
  for (let n = 1; n < edges.length; n++) {
    // A copy: the reader may overwrite what it is given.
    const payload = reader.push(Uint8Array.from(bytes.subarray(edges[n - 1]!, edges[n]!)));
    if (payload !== null) body += Buffer.from(payload).toString("latin1");
  }
  reader.end(clean);
  return {
    status: reader.head?.status ?? null,
    headers: [...(reader.head?.headers ?? [])],
    body,
    end: reader.fault?.kind ?? (reader.complete ? "complete" : "open"),
    reusable: reader.complete && reader.head!.keepAlive && !reader.surplus,
  };
}

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const fields = (count: number): string => Array.from({ length: count }, (_, n) => `x-${n}: v\r\n`).join("");

const WELL_FORMED: Record<string, { text: string; body: string; status?: number; reusable: boolean }> = {
  "a body of a declared length": {
    text: `${OK}Content-Length: 5\r\n\r\nhello`,
    body: "hello",
    reusable: true,
  },
  "an empty body": { text: `${OK}content-length: 0\r\n\r\n`, body: "", reusable: true },
  "a status line without a reason": {
    text: "HTTP/1.1 200\r\ncontent-length: 1\r\n\r\nx",
    body: "x",
    reusable: true,
  },
  "an empty reason": { text: "HTTP/1.1 200 \r\ncontent-length: 1\r\n\r\nx", body: "x", reusable: true },
  chunks: { text: `${CHUNKED}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n`, body: "hello world", reusable: true },
  "chunk sizes in either case, with leading zeros": {
    text: `${CHUNKED}00A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n`,
    body: "01234567890123456789a",
    reusable: true,
  },
  "chunk extensions, ignored": {
    text: `${CHUNKED}5;a="b";c\r\nhello\r\n0;last\r\n\r\n`,
    body: "hello",
    reusable: true,
  },
  "trailers, dropped": {
    text: `${CHUNKED}1\r\nx\r\n0\r\nexpires: never\r\nx-sum: 1\r\n\r\n`,
    body: "x",
    reusable: true,
  },
  "chunked written in capitals": {
    text: `${OK}Transfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
    body: "x",
    reusable: true,
  },
  "a body that ends by close": { text: `${OK}\r\nall of it`, body: "all of it", reusable: false },
  "HTTP/1.0": { text: "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", body: "hi", reusable: false },
  "connection: close": {
    text: `${OK}connection: foo, Close\r\ncontent-length: 2\r\n\r\nhi`,
    body: "hi",
    reusable: false,
  },
  "204 without a body": { text: "HTTP/1.1 204 No Content\r\n\r\n", body: "", status: 204, reusable: true },
  "304 whose length speaks of another body": {
    text: "HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n",
    body: "",
    status: 304,
    reusable: true,
  },
  "interim responses, skipped": {
    text: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${OK}content-length: 1\r\n\r\nx`,
    body: "x",
    reusable: true,
  },
  "as many interim responses as are allowed": {
    text: `${"HTTP/1.1 100 Continue\r\n\r\n".repeat(16)}${OK}content-length: 1\r\n\r\nx`,
    body: "x",
    reusable: true,
  },
  "bytes after the end: the answer stands, the socket does not": {
    text: `${OK}content-length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n`,
    body: "x",
    reusable: false,
  },
  "bytes after the last chunk": { text: `${CHUNKED}1\r\nx\r\n0\r\n\r\n0`, body: "x", reusable: false },
  "as many fields as are allowed": {
    text: `${OK}${fields(255)}content-length: 0\r\n\r\n`,
    body: "",
    reusable: true,
  },
};

const REFUSED: Record<string, { text: string; end: "malformed" | "reset" | "truncated"; body?: string }> = {
  "nothing at all": { text: "", end: "reset" },
  "half a head": { text: "HTTP/1.1 200 OK\r\ncontent-le", end: "reset" },
  "an interim response and no more": { text: "HTTP/1.1 100 Continue\r\n\r\n", end: "reset" },
  "another protocol": { text: "SSH-2.0-OpenSSH_9.6\r\n", end: "malformed" },
  "HTTP/2's preface": { text: "HTTP/2 200\r\n\r\n", end: "malformed" },
  "a status of two digits": { text: "HTTP/1.1 20 OK\r\n\r\n", end: "malformed" },
  "a status below 100": { text: "HTTP/1.1 099 OK\r\n\r\n", end: "malformed" },
  "lone line feeds": { text: "HTTP/1.1 200 OK\ncontent-length: 0\n\n", end: "malformed" },
  "one lone line feed": { text: `${OK}a: b\nc: d\r\n\r\n`, end: "malformed" },
  "a lone carriage return": { text: `${OK}a: b\rc: d\r\n\r\n`, end: "malformed" },
  "a NUL in a value": { text: `${OK}a: b\0c\r\n\r\n`, end: "malformed" },
  "a folded field": { text: `${OK}a: b\r\n c\r\ncontent-length: 0\r\n\r\n`, end: "malformed" },
  "a blank before the colon": { text: `${OK}content-length : 0\r\n\r\n`, end: "malformed" },
  "a field without a colon": { text: `${OK}content-length\r\n\r\n`, end: "malformed" },
  "a field without a name": { text: `${OK}: 0\r\n\r\n`, end: "malformed" },
  "too many fields": { text: `${OK}${fields(257)}\r\n`, end: "malformed" },
  "a head that is too large": { text: `${OK}a: ${"b".repeat(HEAD_BYTES_MAX)}\r\n\r\n`, end: "malformed" },
  "a protocol switch": { text: "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n", end: "malformed" },
  "interim responses without end": { text: "HTTP/1.1 100 Continue\r\n\r\n".repeat(17), end: "malformed" },
  "two lengths that agree": {
    text: `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\nx`,
    end: "malformed",
  },
  "two lengths in one field": { text: `${OK}content-length: 1, 2\r\n\r\nx`, end: "malformed" },
  "a negative length": { text: `${OK}content-length: -1\r\n\r\n`, end: "malformed" },
  "a signed length": { text: `${OK}content-length: +1\r\n\r\nx`, end: "malformed" },
  "a hexadecimal length": { text: `${OK}content-length: 0x1\r\n\r\nx`, end: "malformed" },
  "an empty length": { text: `${OK}content-length:\r\n\r\n`, end: "malformed" },
  "a length beyond exact numbers": {
    text: `${OK}content-length: 9007199254740993\r\n\r\n`,
    end: "malformed",
  },
  "length and chunked": {
    text: `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`,
    end: "malformed",
  },
  "gzip as transfer-encoding": { text: `${OK}transfer-encoding: gzip, chunked\r\n\r\n`, end: "malformed" },
  "chunked twice": {
    text: `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n`,
    end: "malformed",
  },
  "identity as transfer-encoding": { text: `${OK}transfer-encoding: identity\r\n\r\n`, end: "malformed" },
  "chunked in HTTP/1.0": { text: "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", end: "malformed" },
  "a body shorter than its length": {
    text: `${OK}content-length: 9\r\n\r\nhalf`,
    end: "truncated",
    body: "half",
  },
  "a cut chunk": { text: `${CHUNKED}5\r\nhel`, end: "truncated", body: "hel" },
  "no last chunk": { text: `${CHUNKED}5\r\nhello\r\n`, end: "truncated", body: "hello" },
  "a last chunk without its blank line": { text: `${CHUNKED}1\r\nx\r\n0\r\n`, end: "truncated", body: "x" },
  "a chunk longer than its size": { text: `${CHUNKED}1\r\nxyz\r\n`, end: "malformed", body: "x" },
  "a chunk without a size": { text: `${CHUNKED}\r\n`, end: "malformed" },
  "a chunk size with 0x": { text: `${CHUNKED}0x5\r\nhello\r\n`, end: "malformed" },
  "a negative chunk size": { text: `${CHUNKED}-1\r\n`, end: "malformed" },
  "a chunk size with a blank": { text: `${CHUNKED}5 \r\nhello\r\n`, end: "malformed" },
  "a chunk size beyond exact numbers": { text: `${CHUNKED}fffffffffffff\r\n`, end: "malformed" },
  "a chunk size that ends in a lone line feed": { text: `${CHUNKED}5\nhello`, end: "malformed" },
  "chunk data that ends in a lone line feed": {
    text: `${CHUNKED}1\r\nx\n0\r\n\r\n`,
    end: "malformed",
    body: "x",
  },
  "an extension that is too long": { text: `${CHUNKED}1;${"e".repeat(2000)}\r\nx`, end: "malformed" },
  "a line feed inside an extension": { text: `${CHUNKED}1;a\nb\r\nx`, end: "malformed" },
  "trailers that are too long": { text: `${CHUNKED}0\r\nt: ${"t".repeat(20_000)}\r\n\r\n`, end: "malformed" },
  "a folded trailer": { text: `${CHUNKED}0\r\na: b\r\n c\r\n\r\n`, end: "malformed" },
};

describe("a response is read", () => {
  for (const [what, { text, body, status = 200, reusable }] of Object.entries(WELL_FORMED)) {
    test(what, () => {
      expect(read(text)).toMatchObject({ status, body, reusable, end: "complete" });
    });
  }

  test("header names lower-cased, values trimmed, repeated fields joined in order", () => {
    const text = `${OK}Set-Cookie: a=1\r\nX-Blank: \t b \t\r\nset-cookie: b=2\r\nX-High: \xa0\xe9\r\ncontent-length: 0\r\n\r\n`;
    expect(read(text).headers).toEqual([
      ["set-cookie", "a=1, b=2"],
      ["x-blank", "b"],
      ["x-high", "\xa0\xe9"],
      ["content-length", "0"],
    ]);
  });

  test("how long the host keeps an idle socket", () => {
    for (const [value, seconds] of [
      ["timeout=5", 5],
      ["max=100, Timeout=15", 15],
      ['timeout="7"', 7],
      ["max=1", null],
      ["x-timeout=5", null],
    ] as const) {
      const reader = new ResponseReader();
      reader.push(Buffer.from(`${OK}keep-alive: ${value}\r\ncontent-length: 0\r\n\r\n`));
      expect(reader.head!.keepAliveS).toBe(seconds);
    }
  });

  test("one slice for all the chunks of one socket read", () => {
    const reader = new ResponseReader();
    const text = `${CHUNKED}${Array.from({ length: 50 }, (_, n) => `8\r\nevent-${String(n).padStart(2, "0")}\r\n`).join("")}`;
    const body = Buffer.from(reader.push(Buffer.from(text))!).toString();
    expect(body).toBe(Array.from({ length: 50 }, (_, n) => `event-${String(n).padStart(2, "0")}`).join(""));
  });
});

describe("a response is refused", () => {
  for (const [what, { text, end, body = "" }] of Object.entries(REFUSED)) {
    test(`${what}: ${end}`, () => {
      expect(read(text)).toMatchObject({ end, body, reusable: false });
    });
  }

  test("a body that ends by close, when the close was a reset", () => {
    expect(read(`${OK}\r\nhalf`, [], false)).toMatchObject({ end: "truncated", body: "half" });
  });

  test("before the whole head has come, when it cannot become one", () => {
    for (const text of ["SSH", "HTTP/1.1 200 OK\n", "\x15\x03\x01"]) {
      const reader = new ResponseReader();
      reader.push(Buffer.from(text, "latin1"));
      expect(reader.fault?.kind).toBe("malformed");
    }
  });
});

describe("how the bytes are split changes nothing", () => {
  const all = { ...WELL_FORMED, ...REFUSED };
  for (const [what, { text }] of Object.entries(all)) {
    test(what, () => {
      const whole = read(text);
      const short = text.length < 3000;
      for (let cut = 0; cut <= text.length; cut += short ? 1 : 997) expect(read(text, [cut])).toEqual(whole);
      expect(
        read(
          text,
          Array.from({ length: text.length }, (_, n) => n),
        ),
      ).toEqual(whole);
      const random = seeded(text.length + 1);
      for (let round = 0; round < 20; round++)
        expect(read(text, randomCuts(text.length, random))).toEqual(whole);
    });
  }
});

test("20,000 spoilt responses end in a body or a fault, the same one at any split", () => {
  const random = seeded(7);
  const seeds = Object.values({ ...WELL_FORMED, ...REFUSED })
    .map(({ text }) => text)
    .filter((text) => text.length < 1000);
  const seen = new Set<string>();
  for (let round = 0; round < 20_000; round++) {
    const text = spoilt(seeds[Math.floor(random() * seeds.length)]!, random);
    const whole = read(text);
    seen.add(whole.end);
    expect(["complete", "reset", "truncated", "malformed"]).toContain(whole.end);
    expect(read(text, randomCuts(text.length, random))).toEqual(whole);
  }
  expect([...seen].sort()).toEqual(["complete", "malformed", "reset", "truncated"]);
});

const SPICE = [
  "\r\n",
  "\n",
  "\r",
  " ",
  "\t",
  ":",
  ";",
  "0",
  "ffffffffffffff",
  "\0",
  "\xff",
  "chunked",
  "content-length: 3\r\n",
  "-",
  "HTTP/1.1 ",
];

/** One to four bytes changed, dropped, doubled, or something added that parsers trip over. */
function spoilt(text: string, random: () => number): string {
  let out = text;
  for (let times = 1 + Math.floor(random() * 4); times > 0; times--) {
    const at = Math.floor(random() * (out.length + 1));
    const kind = Math.floor(random() * 4);
    if (kind === 0)
      out = out.slice(0, at) + String.fromCharCode(Math.floor(random() * 256)) + out.slice(at + 1);
    else if (kind === 1) out = out.slice(0, at) + out.slice(at + 1 + Math.floor(random() * 8));
    else if (kind === 2) out = out.slice(0, at) + out.slice(Math.max(0, at - 8));
    else out = out.slice(0, at) + SPICE[Math.floor(random() * SPICE.length)]! + out.slice(at);
  }
  return out;
}

function randomCuts(length: number, random: () => number): number[] {
  return Array.from({ length: Math.floor(random() * 12) }, () => Math.floor(random() * (length + 1))).sort(
    (a, b) => a - b,
  );
}

/** Mulberry32. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
