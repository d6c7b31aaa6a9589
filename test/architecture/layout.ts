/**
 * The floors of `src`, the lowest first. A room is a folder at its top. Imports point down, and rooms on one floor do
 * not import each other (docs/architecture.md).
 */
export const FLOORS: readonly (readonly string[])[] = [
  ["units"],
  ["customers", "catalog", "tokens"],
  ["surfaces", "ledger"],
  ["routing", "payments"],
  ["hosts", "api"],
  ["store", "dashboard", "telemetry"],
  ["generation", "config"],
  ["http"],
  ["server"],
  ["cli"],
];

/** The process's entry starts `server`, and counts as one room with it. */
export const roomOf = (path: string): string => (path === "main.ts" ? "server" : path.split("/")[0]!);

export const floorOf = (room: string): number => FLOORS.findIndex((rooms) => rooms.includes(room)) + 1;

/** Arrows between rooms: may only fall. */
export const MAX_ARROWS = 91;

/** Beneath these, a folder does not import its neighbours. */
export const SEPARATE = ["payments/rails"];

/** The only room that imports Elysia, next to those above it. */
export const ELYSIA_ROOM = "http";

/** Where the parts that requests share are created, so that tests and simulators get them from there too. */
export const COMPOSITION = "server/rooms.ts";
export const COMPOSED = [
  "Health",
  "HostSlots",
  "Affinity",
  "OpenStreams",
  "FreeRoutes",
  "ExpectedOutput",
  "SpendableCredit",
];

/** Rooms and files with I/O, a clock or randomness of their own. All others are pure: these are passed in. */
const IMPURE = [
  "cli",
  "config",
  "generation/counting",
  "dashboard",
  "hosts",
  "http",
  "customers/mail/mailer.ts",
  "payments/rails/stripe/stripe-api.ts",
  "payments/rails/x402/chain.ts",
  "payments/rails/x402/gas-node.ts",
  "payments/rails/x402/sanctions.ts",
  "payments/rails/x402/open-settler.ts",
  "server",
  "store",
  "telemetry",
  "units/clock.ts",
  "units/random.ts",
  "customers/wallets",
];

export const isPure = (path: string): boolean =>
  !IMPURE.some((listed) => path === listed || path.startsWith(`${listed}/`) || roomOf(path) === listed);

/** Packages that compute and open nothing, with what is used of those that can do more. */
export const PURE_PACKAGES: Readonly<Record<string, "all" | readonly string[]>> = {
  "@sinclair/typebox": "all",
  "@sinclair/typebox/value": "all",
  "gpt-tokenizer/bpeRanks/cl100k_base": "all",
  "gpt-tokenizer/bpeRanks/o200k_base": "all",
  "gpt-tokenizer/encodingParams/constants": "all",
  "lru-cache": "all",
  "node:async_hooks": ["AsyncLocalStorage"],
  "node:buffer": ["isUtf8"],
  "node:crypto": [
    "createCipheriv",
    "createDecipheriv",
    "createHash",
    "createPrivateKey",
    "createPublicKey",
    "sign",
    "verify",
  ],
  "node:net": ["BlockList", "isIP"],
  "node:zlib": ["inflateSync"],
  "viem/siwe": "all",
  "viem/utils": "all",
};

/** What pure code may use of the runtime: by its whole name, or with every member. */
export const PURE_GLOBALS = [
  ..."Array BigInt Boolean Buffer Error Infinity JSON Map Math NaN Number Object Promise Proxy Reflect".split(
    " ",
  ),
  ..."RegExp Set String Symbol TypeError URL WeakMap WeakSet undefined".split(" "),
  ..."Float64Array Int32Array Uint8Array Uint16Array Uint32Array".split(" "),
  ..."AbortController TextDecoder TextEncoder decodeURIComponent encodeURIComponent".split(" "),
  ..."Bun.CryptoHasher Bun.hash Bun.zstdCompress Bun.zstdDecompress Intl.NumberFormat".split(" "),
  ..."Date.UTC Date.parse".split(" "),
  "new Date(…)",
];
/** Except these: without a member, `Math` may be anything of it. */
export const IMPURE_GLOBALS = ["Math", "Math.random"];

/** Modules with variables that change, and why. */
export const STATE: Readonly<Record<string, string>> = {
  "generation/counting/counting-thread.ts": "a thread's program",
  "server/run.ts": "the process's program",
  "store/database/maintenance-thread.ts": "a thread's program",
  "store/usage/usage-thread.ts": "a thread's program",
  "surfaces/events/event-template.ts": "memory for one synchronous call, used again by the next",
  "tokens/pdf.ts": "a sticky expression, whose position is set before each use",
  "units/base58.ts": "memory for one synchronous call, used again by the next",
};
