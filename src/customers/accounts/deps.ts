import type { Clock } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { RandomBytes } from "../../units/random.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { AccountStore } from "./account-store.ts";
import type { ContractSignatures } from "./contract-signatures.ts";
import type { Mail } from "./mail.ts";

/** What the operations on accounts work with. `links` answers anew after a reload. */
export interface AccountDeps {
  readonly store: AccountStore;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly contracts: ContractSignatures;
  /** Takes a mail for delivery. Returns at once, whether or not a mail server will be reached. */
  post(mail: Mail): void;
  links(): AccountLinks;
  /** Called once it is durable that keys have ended, or that balances belong to somebody else than before. */
  forget(keys: readonly { readonly hash: SecretHash }[], balances: readonly BalanceId[]): void;
}

interface AccountLinks {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
}
