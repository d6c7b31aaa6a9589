import { isIP } from "node:net";
import { boundedCache } from "../../units/bounded-cache.ts";
import { type Clock, HOUR_MS, secondsUntil } from "../../units/clock.ts";
import { type Refusal, refuse, retryAfter } from "../../units/errors/refusal.ts";
import type { Networks } from "../../units/networks.ts";

/**
 * The network blocks that a request comes from, the narrowest first: an IPv4 address and its /24; or the /64 of
 * an IPv6 one, because a single subscriber has all of it, and the /48, because some have all of that. `address` is
 * the other end of the connection.
 */
export function blocksOf(address: string | null, headers: Headers, proxies: Networks): Blocks {
  const client = clientOf(address, headers, proxies);
  switch (isIP(client)) {
    case 6:
      return [network(client, 64), network(client, 48)];
    case 4:
      return [client, `${client.slice(0, client.lastIndexOf("."))}.0/24`];
    default:
      return [client];
  }
}

export type Blocks = readonly [narrowest: string, ...wider: string[]];

/**
 * The network that one subscriber may have to himself, of the blocks that a request comes from: the /24 of an IPv4 address,
 * the /48 of an IPv6 one.
 */
export const wideNetwork = (blocks: readonly string[]): string => blocks.at(-1) ?? "";

/**
 * The address of the client itself. A trusted proxy is believed about the address it saw, which it put last
 * into `X-Forwarded-For`; what stands before the first address that is not a trusted proxy's was written by
 * somebody unknown.
 */
function clientOf(address: string | null, headers: Headers, proxies: Networks): string {
  let client = address === null ? "unknown" : plain(address);
  if (!proxies.has(client)) return client;
  const hops = headers.get("x-forwarded-for")?.split(",").slice(-MAX_HOPS) ?? [];
  for (const hop of hops.reverse()) {
    const seen = plain(withoutPort(hop.trim()));
    if (isIP(seen) === 0) return client;
    client = seen;
    if (!proxies.has(client)) return client;
  }
  return client;
}

/** Proxies in a row. */
const MAX_HOPS = 16;

/** Some proxies write `192.0.2.1:49152` and `[2001:db8::1]:49152`. */
const withoutPort = (hop: string): string => WITH_PORT.exec(hop)?.slice(1).find(Boolean) ?? hop;

const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/;

export const isLoopback = (address: string): boolean => address.startsWith("127.") || address === "::1";

/**
 * `::ffff:192.0.2.1` is an IPv4 address on a socket that takes both. It has other spellings, such as
 * `0:0:0:0:0:ffff:c000:201`.
 */
export function plain(address: string): string {
  if (isIP(address) !== 6) return address;
  const groups = groupsOf(address);
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  if (!isMapped) return address;
  const [high, low] = [groups[6]!, groups[7]!];
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

const network = (address: string, bits: 48 | 64): string =>
  `${groupsOf(address)
    .slice(0, bits / 16)
    .map((group) => group.toString(16))
    .join(":")}::/${bits}`;

function groupsOf(address: string): number[] {
  const hexadecimal = address.split("%")[0]!.replace(DOTTED, (_, ...bytes: string[]) => {
    const [a, b, c, d] = bytes.map(Number) as [number, number, number, number];
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [before = "", after] = hexadecimal.split("::");
  const head = before === "" ? [] : before.split(":");
  const tail = after === undefined || after === "" ? [] : after.split(":");
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length);
  return [...head, ...Array<string>(zeros).fill("0"), ...tail].map((group) => Number.parseInt(group, 16));
}

const DOTTED = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/;

/**
 * Limits how often a network block may do something in an hour. When several processes share a throttle, the
 * count is kept elsewhere.
 */
export interface Throttle {
  /** Takes one and returns null, or takes nothing and returns the whole seconds until one is free. */
  take(block: string, limit: number): number | null | Promise<number | null>;
  /** Gives back one that turned out not to count. */
  giveBack(block: string): void;
}

/**
 * Takes one from each of a client's blocks, or from none. Returns the whole seconds until all have one free.
 */
export async function takeOfAll(
  throttle: Throttle,
  blocks: readonly string[],
  limit: number,
): Promise<number | null> {
  for (const [width, block] of blocks.entries()) {
    const wait = await throttle.take(block, width === 0 ? limit : limit * sharesOf(block));
    if (wait === null) continue;
    for (const taken of blocks.slice(0, width)) throttle.giveBack(taken);
    return wait;
  }
  return null;
}

/**
 * Takes one of what there is for all networks together, after `takeOfAll` took one from the client's own. Where
 * there is none, the client has that back: who is refused has not used it.
 */
export async function takeOfEverybody(
  throttle: Throttle,
  blocks: Blocks,
  limit: number,
): Promise<number | null> {
  const wait = await throttle.take(EVERYBODY, limit);
  if (wait !== null) for (const block of blocks) throttle.giveBack(block);
  return wait;
}

/** The network under which a throttle counts what is limited for all together. */
export const EVERYBODY = "everybody";

/**
 * A /48 is often one subscriber's, and sometimes an office's: it may do as much as this many of its /64s. A /24
 * mostly has many subscribers, and can be rented whole for little.
 */
const sharesOf = (wide: string): number => (wide.includes(":") ? 4 : 16);

/**
 * Wrong secrets and signatures, mails and messages asked for, keys made without an account or without credit; and by
 * balance, tests of webhooks.
 */
const THROTTLED = [
  "wrong_secrets",
  "wrong_admin_tokens",
  "wrong_signatures",
  "mails",
  "claims",
  "messages",
  "set_ups",
  "unpaid_keys",
  "webhook_tests",
] as const;
export type Throttled = (typeof THROTTLED)[number];
export type Throttles = Readonly<Record<Throttled, Throttle>>;

export function throttlesOf<One extends Throttle>(make: (what: Throttled) => One): Record<Throttled, One> {
  return Object.fromEntries(THROTTLED.map((what) => [what, make(what)])) as Record<Throttled, One>;
}

/**
 * Counts per block, within the block's own current hour. When there are too many blocks, the idlest are
 * forgotten.
 */
export class AddressThrottle implements Throttle {
  private readonly hours = boundedCache<string, { startedMs: number; taken: number }>(MAX_BLOCKS);

  constructor(private readonly clock: Clock) {}

  take(block: string, limit: number): number | null {
    const nowMs = this.clock.elapsedMs();
    const known = this.hours.get(block);
    const hour =
      known !== undefined && nowMs - known.startedMs < HOUR_MS ? known : { startedMs: nowMs, taken: 0 };
    if (hour.taken >= limit) return secondsUntil(hour.startedMs + HOUR_MS, nowMs);
    hour.taken += 1;
    if (hour !== known) this.hours.set(block, hour);
    return null;
  }

  giveBack(block: string): void {
    const hour = this.hours.get(block);
    if (hour !== undefined && hour.taken > 0) hour.taken -= 1;
  }
}

const MAX_BLOCKS = 100_000;

/** `did` completes "This network address …"; `besides` says what helps besides waiting. */
export const tooOften = (did: string, retryAfterS: number, besides?: string): Refusal =>
  refuse(
    "rate_limited",
    `This network address ${did} within an hour, which is the limit. Retry in ${retryAfterS} s.${besides === undefined ? "" : ` ${besides}`}`,
    retryAfter(retryAfterS),
  );
