import { readFile, stat } from "node:fs/promises";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { Chain } from "./chain.ts";
import { type Address, chainIdOf, type X402Network } from "./network.ts";

/** Whom payers are screened against; nobody is asked where neither is set. */
export interface SanctionsConfig {
  /** A file with one address in a line; what follows a `#` is a comment. */
  readonly list: string | null;
  /** A contract that answers `isSanctioned(address)`; `true` for the one that Chainalysis keeps on the chain. */
  readonly oracle: boolean | Address;
}

/**
 * Screens payers before anything is asked of anybody. Where it cannot be done, that is an error, and nothing is paid: a
 * list that is gone must not let everybody in.
 */
export class Sanctions {
  private listed: { readonly addresses: ReadonlySet<string>; readonly changedAt: EpochMs } | null = null;
  private readAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly config: SanctionsConfig,
    private readonly clock: Pick<Clock, "now" | "elapsedMs">,
  ) {}

  async isHit(payer: Address, network: X402Network, chain: Pick<Chain, "isSanctioned">): Promise<boolean> {
    if (this.config.list !== null) {
      await this.read(this.config.list);
      if (this.listed!.addresses.has(payer)) return true;
    }
    const oracle = oracleOf(this.config, network);
    return oracle !== null && (await chain.isSanctioned(oracle, payer));
  }

  /** Seconds since the list was changed; null without one, and while it cannot be read. */
  async listAgeS(): Promise<number | null> {
    if (this.config.list === null) return null;
    await this.read(this.config.list).catch(() => {
      this.listed = null;
    });
    return this.knownListAgeS();
  }

  /** The same, as it was when the list was last read. */
  knownListAgeS(): number | null {
    return this.listed === null ? null : Math.max(0, (this.clock.now() - this.listed.changedAt) / 1_000);
  }

  private async read(path: string): Promise<void> {
    const nowMs = this.clock.elapsedMs();
    if (nowMs - this.readAt < REREAD_MS) return;
    const { mtimeMs } = await stat(path);
    if (this.listed?.changedAt !== mtimeMs)
      this.listed = { addresses: addressesIn(await readFile(path, "utf8")), changedAt: mtimeMs as EpochMs };
    this.readAt = nowMs;
  }
}

/** The contract to ask on this network; null for none. */
export function oracleOf({ oracle }: SanctionsConfig, network: Pick<X402Network, "network">): Address | null {
  if (typeof oracle !== "boolean") return oracle;
  return oracle ? (ORACLES.get(chainIdOf(network)) ?? ORACLE) : null;
}

const addressesIn = (text: string): ReadonlySet<string> =>
  new Set(text.split("\n").flatMap((line) => ADDRESS.exec(line)?.[1]?.toLowerCase() ?? []));

const ADDRESS = /^\s*(0x[0-9a-fA-F]{40})\s*(?:[#,;].*)?$/;
const REREAD_MS = 5_000;
/** Where Chainalysis has its oracle on most chains, and where it is elsewhere. */
const ORACLE: Address = "0x40c57923924b5c5c5455c48d93317139addac8fb";
const ORACLES = new Map<number, Address>([[8453, "0x3a91a31cb3dc49b4db9ce721f50a9d076c8d739b"]]);
