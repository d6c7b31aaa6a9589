import { LRUCache } from "lru-cache";
import type { Clock } from "../units/clock.ts";

/**
 * The network block that a request comes from: an IPv4 address, or the /64 of an IPv6 one, because a single subscriber
 * has all of it. A proxy on this machine is believed about the address it saw; anybody else could write what they like.
 */
export function blockOf(address: string | null, headers: Headers): string {
  const peer = address === null ? "unknown" : plain(address);
  const forwarded = isLoopback(peer) ? headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() : undefined;
  const client = forwarded === undefined || forwarded === "" ? peer : plain(forwarded.slice(0, MAX_ADDRESS));
  return client.includes(":") ? network64(client) : client;
}

export const isLoopback = (address: string): boolean => address.startsWith("127.") || address === "::1";

const MAX_ADDRESS = 64;

/** `::ffff:192.0.2.1` is an IPv4 address on a socket that takes both. */
export const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "");

function network64(address: string): string {
  const [before = "", after] = address.toLowerCase().split("%")[0]!.split("::");
  const head = before === "" ? [] : before.split(":");
  const tail = after === undefined || after === "" ? [] : after.split(":");
  const zeros =
    after === undefined ? [] : Array<string>(Math.max(0, 8 - head.length - tail.length)).fill("0");
  const groups = [...head, ...zeros, ...tail]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16));
  return `${groups.join(":")}::/64`;
}

/** How many things a block did within the present hour of its own. Of very many blocks, the idlest are forgotten first. */
export class AddressThrottle {
  private readonly hours = new LRUCache<string, { startedMs: number; taken: number }>({ max: MAX_BLOCKS });

  constructor(private readonly clock: Clock) {}

  /** Takes one; or whole seconds until one is free, and takes nothing. */
  take(block: string, limit: number): number | null {
    const nowMs = this.clock.elapsedMs();
    const known = this.hours.get(block);
    const hour =
      known !== undefined && nowMs - known.startedMs < HOUR_MS ? known : { startedMs: nowMs, taken: 0 };
    if (hour.taken >= limit) return Math.max(1, Math.ceil((hour.startedMs + HOUR_MS - nowMs) / 1_000));
    hour.taken += 1;
    if (hour !== known) this.hours.set(block, hour);
    return null;
  }
}

const HOUR_MS = 3_600_000;
const MAX_BLOCKS = 100_000;
