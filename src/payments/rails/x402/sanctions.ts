import { readFile, stat } from "node:fs/promises";
import type { Clock, EpochMs } from "../../../units/clock.ts";
import type { Chain } from "./chain.ts";
import { type Address, chainIdOf, type X402Network } from "./network.ts";

/** Whom payers are screened against; nobody is asked where neither is set. */
export interface SanctionsConfig {
  /** A file with an address in each line; what follows a `#` is a comment. */
  readonly list: string | null;
  /** A contract that answers `isSanctioned(address)`; `true` for the one that Chainalysis keeps on the chain. */
  readonly oracle: boolean | Address;
}

/**
 * Screens payers before anything is asked of anybody. Where that is impossible, nobody pays: a list that is missing or
 * unreadable must not let everybody in.
 */
export class Sanctions {
  private listed: SanctionsList | null = null;
  private readAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly config: SanctionsConfig,
    private readonly clock: Pick<Clock, "now" | "elapsedMs">,
  ) {}

  async isHit(payer: Address, network: X402Network, chain: Pick<Chain, "isSanctioned">): Promise<boolean> {
    if (this.config.list !== null) {
      const { addresses } = await this.current(this.config.list);
      if (addresses.has(payer)) return true;
    }
    const oracle = oracleOf(this.config, network);
    return oracle !== null && (await chain.isSanctioned(oracle, payer));
  }

  /** Reads a list that has changed, so that `figures` describe the current one. */
  async refresh(): Promise<void> {
    if (this.config.list !== null) await this.current(this.config.list).catch(() => {});
  }

  /** The list as last read: no address and no age while it is unreadable; null where none is configured. */
  figures(): SanctionsFigures | null {
    if (this.config.list === null) return null;
    if (this.listed === null) return { addresses: 0, ageS: null };
    const { addresses, changedAt } = this.listed;
    return { addresses: addresses.size, ageS: Math.max(0, (this.clock.now() - changedAt) / 1_000) };
  }

  private async current(path: string): Promise<SanctionsList> {
    const nowMs = this.clock.elapsedMs();
    if (this.listed !== null && nowMs - this.readAt < REREAD_MS) return this.listed;
    try {
      const { mtimeMs } = await stat(path);
      if (this.listed?.changedAt !== mtimeMs) this.listed = await readSanctionsList(path);
    } catch (error) {
      this.listed = null;
      throw error;
    }
    this.readAt = nowMs;
    return this.listed;
  }
}

export interface SanctionsFigures {
  readonly addresses: number;
  /** Seconds since the file was changed. */
  readonly ageS: number | null;
}

export interface SanctionsList {
  /** In lower case. */
  readonly addresses: ReadonlySet<string>;
  readonly changedAt: EpochMs;
}

/** Rejects where a line has no address: the list may have another form, be cut short, or be a page that reports an error. */
export async function readSanctionsList(path: string): Promise<SanctionsList> {
  const { mtimeMs } = await stat(path);
  return { addresses: addressesIn(await readFile(path, "utf8")), changedAt: mtimeMs as EpochMs };
}

function addressesIn(text: string): ReadonlySet<string> {
  const addresses = new Set<string>();
  for (const [index, line] of text.split(LINE_END).entries()) {
    // Trimming also removes a byte order mark.
    const entry = line.trim().split("#", 1)[0]!;
    if (entry === "") continue;
    const found = entry.match(ADDRESS);
    if (found === null) throw new Error(`line ${index + 1} of the sanctions list has no address`);
    for (const address of found) addresses.add(address.toLowerCase());
  }
  if (addresses.size === 0) throw new Error("the sanctions list has no address");
  return addresses;
}

const LINE_END = /\r\n|\r|\n/;
/** Not the first digits of something longer, such as a transaction's hash. */
const ADDRESS = /(?<![0-9a-z])0x[0-9a-f]{40}(?![0-9a-z])/gi;

/** The contract to ask on this network; null for none. */
export function oracleOf({ oracle }: SanctionsConfig, network: Pick<X402Network, "network">): Address | null {
  if (typeof oracle !== "boolean") return oracle;
  return oracle ? (ORACLES.get(chainIdOf(network)) ?? ORACLE) : null;
}

const REREAD_MS = 5_000;
/** Where Chainalysis has its oracle on most chains, and where it is elsewhere. */
const ORACLE: Address = "0x40c57923924b5c5c5455c48d93317139addac8fb";
const ORACLES = new Map<number, Address>([[8453, "0x3a91a31cb3dc49b4db9ce721f50a9d076c8d739b"]]);
