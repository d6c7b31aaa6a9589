import type { Address } from "./network.ts";

/** Whom payers are screened against; null where nobody is asked. */
export interface SanctionsConfig {
  /** A file with one address in a line; what follows a `#` is a comment. */
  readonly list: string | null;
  /** A contract that answers `isSanctioned(address)`; `true` for the one that Chainalysis keeps on the chain. */
  readonly oracle: boolean | Address;
}
