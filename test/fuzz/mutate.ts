import type { Random } from "../sim/random.ts";

/**
 * Spoils bytes as no client or host sends them, and as those who mean harm do: bits, pieces that are cut out,
 * repeated or moved, numbers at their limits, words of HTTP and JSON where they do not belong.
 */
export function mutated(bytes: Buffer, random: Random): Buffer {
  let result = bytes;
  for (let round = 1 + random.below(MAX_CHANGES); round > 0; round--) result = changed(result, random);
  return result.length > MAX_BYTES ? result.subarray(0, MAX_BYTES) : result;
}

const MAX_CHANGES = 3;
const MAX_BYTES = 300_000;

function changed(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + random.below(random.pick([1, 4, 40, 400])));
  const [before, piece, after] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)];
  switch (random.below(10)) {
    case 0: {
      const flipped = Buffer.from(bytes);
      if (at < bytes.length) flipped[at] = flipped[at]! ^ (1 << random.below(8));
      return flipped;
    }
    case 1:
      return Buffer.concat([before, after]);
    case 2:
      return Buffer.concat([
        before,
        ...Array<Buffer>(1 + random.below(random.pick([2, 2, 200]))).fill(piece),
        after,
      ]);
    case 3: {
      const to = random.below(before.length + 1);
      return Buffer.concat([before.subarray(0, to), piece, before.subarray(to), after]);
    }
    case 4:
      return Buffer.concat([
        before,
        Buffer.from(random.bytes(new Uint8Array(1 + random.below(8)))),
        piece,
        after,
      ]);
    case 5:
      return before;
    case 6:
      return withOtherNumber(bytes, random);
    default:
      return Buffer.concat([
        before,
        Buffer.from(random.pick(WORDS), "latin1"),
        random.chance(0.5) ? piece : after,
      ]);
  }
}

/** One of the numbers in it becomes another. */
function withOtherNumber(bytes: Buffer, random: Random): Buffer {
  const numbers = [...bytes.toString("latin1").matchAll(/\d+/g)];
  if (numbers.length === 0) return bytes;
  const { index, 0: digits } = random.pick(numbers);
  const number = Buffer.from(random.pick(NUMBERS));
  return Buffer.concat([bytes.subarray(0, index), number, bytes.subarray(index + digits.length)]);
}

const NUMBERS = [
  "0",
  "-1",
  "1",
  "7",
  "65536",
  "2147483648",
  "9007199254740993",
  "18446744073709551616",
  "1e309",
  "0x10",
  "1.5",
  "00",
  "+1",
  "ffffffffffffffff",
];

const WORDS = [
  "\r\n",
  "\n",
  "\r",
  "\r\n\r\n",
  "\0",
  " ",
  "\t",
  ":",
  ";",
  ",",
  "\xff\xfe",
  "\xef\xbb\xbf",
  "\xed\xa0\x80",
  "Content-Length: 5\r\n",
  "Content-Length: 0\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Transfer-Encoding: gzip, chunked\r\n",
  "Content-Encoding: gzip\r\n",
  "Content-Encoding: br\r\n",
  "Connection: close\r\n",
  "Connection: upgrade\r\nUpgrade: websocket\r\n",
  "Expect: 100-continue\r\n",
  "Trailer: X\r\n",
  "Host: other.example\r\n",
  "Authorization: Bearer x\r\n",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 200 OK\r\n\r\n",
  "HTTP/1.0",
  "HTTP/2.0",
  "GET / HTTP/1.1\r\n\r\n",
  "0\r\n\r\n",
  "5;a=b\r\nhello\r\n",
  "data: [DONE]\n\n",
  "data: {}\n\n",
  "data:\n\n",
  ": comment\n\n",
  "event: error\n",
  "event: ping\n",
  "id: 1\n",
  "retry: 1\n",
  "null",
  "true",
  "{}",
  "[]",
  '""',
  '"',
  "{",
  "}",
  "[",
  "]",
  "\\",
  "\\u0000",
  "\\ud800",
  '"__proto__":{"a":1},',
  '"constructor":1,',
  '"model":"other/model",',
  '"stream":true,',
  '"n":3,',
  '"max_tokens":1,',
  '"max_tokens":99999999999,',
  '"usage":{"prompt_tokens":1e308},',
  "[".repeat(300),
  '{"a":'.repeat(300),
  "%00",
  "%2e%2e/",
  "../",
  "?",
  "#",
  "//",
  "A".repeat(20_000),
  "a: b\r\n".repeat(300),
];

/** A JSON value in which something is of another type, missing, repeated or in another place. */
export function spoilt(value: unknown, random: Random): unknown {
  if (random.chance(0.1)) return random.pick(VALUES);
  if (Array.isArray(value)) {
    if (value.length === 0) return random.pick(VALUES);
    const at = random.below(value.length);
    switch (random.below(4)) {
      case 0:
        return value.toSpliced(at, 1);
      case 1:
        return value.toSpliced(at, 0, value[random.below(value.length)]);
      default:
        return value.with(at, spoilt(value[at], random));
    }
  }
  if (typeof value !== "object" || value === null) return random.pick(VALUES);
  const names = Object.keys(value);
  if (names.length === 0) return random.pick(VALUES);
  const name = random.pick(names);
  const one = (value as Record<string, unknown>)[name];
  switch (random.below(6)) {
    case 0: {
      const { [name]: _, ...rest } = value as Record<string, unknown>;
      return rest;
    }
    case 1:
      return { ...value, [random.pick(names)]: one };
    default:
      return { ...value, [name]: spoilt(one, random) };
  }
}

const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1,
  1.5,
  1e300,
  Number.MAX_SAFE_INTEGER + 1,
  "",
  "x",
  "\ud800",
  "\0",
  "x".repeat(10_000),
  [],
  [[]],
  [null],
  {},
  { a: null },
  { toString: 1, length: -1 },
];
