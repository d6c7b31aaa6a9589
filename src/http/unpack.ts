import { promisify } from "node:util";
import { brotliDecompress, constants, gunzip, zstdDecompress } from "node:zlib";
import { type Refusal, refuse } from "../units/errors/refusal.ts";

/** How a body is packed, as its header says; null for one that is not. */
export function codingOf({ headers }: Request): Coding | null | Refusal {
  const named = headers.get("content-encoding");
  if (named === null) return null;
  const coding = named.trim().toLowerCase();
  if (coding === "" || coding === "identity") return null;
  return Object.hasOwn(UNPACK, coding) ? (coding as Coding) : unknownCoding();
}

/**
 * The body itself; null when it is larger than `most`. Inflation stops there, so that a few kilobytes cannot
 * become gigabytes, and it runs in the runtime's own threads.
 */
export async function unpacked(
  packed: Uint8Array,
  coding: Coding,
  most: number,
): Promise<Uint8Array | null | Refusal> {
  try {
    return await UNPACK[coding](packed, most);
  } catch (error) {
    return (error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE" ? null : notPacked(coding);
  }
}

const [unzip, unbrotli, unzstd] = [promisify(gunzip), promisify(brotliDecompress), promisify(zstdDecompress)];

/** What RFC 9659 lets a sender of `zstd` use: 8 MB. Codex's level uses 2. */
const WINDOW = { params: { [constants.ZSTD_d_windowLogMax]: 23 } };

const UNPACK = {
  gzip: (packed: Uint8Array, maxOutputLength: number) => unzip(packed, { maxOutputLength }),
  "x-gzip": (packed: Uint8Array, maxOutputLength: number) => unzip(packed, { maxOutputLength }),
  br: (packed: Uint8Array, maxOutputLength: number) => unbrotli(packed, { maxOutputLength }),
  zstd: (packed: Uint8Array, maxOutputLength: number) => unzstd(packed, { maxOutputLength, ...WINDOW }),
};

export type Coding = keyof typeof UNPACK;

const HEADER = { param: "Content-Encoding" };

const unknownCoding = (): Refusal =>
  refuse(
    "invalid_request",
    "`Content-Encoding` must be gzip, br or zstd, one of them, or absent; the body was not read.",
    { ...HEADER, bodyUnread: true },
  );

const notPacked = (coding: Coding): Refusal =>
  refuse(
    "invalid_request",
    `\`Content-Encoding\` says ${coding}, and the body cannot be unpacked so.`,
    HEADER,
  );
