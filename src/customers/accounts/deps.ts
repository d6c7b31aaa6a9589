import type { Clock } from "../../units/clock.ts";
import type { RandomBytes } from "../../units/random.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { ContractSignatures } from "../wallets/contract-signatures.ts";
import type { AccountStore } from "./account-store.ts";
import type { Mail } from "./mail.ts";

/** What the operations on accounts work with. `links` follows reloads. */
export interface AccountDeps {
  readonly store: AccountStore;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly contracts: ContractSignatures;
  readonly mailer: Outbox;
  links(): AccountLinks;
  /** Forgets keys and balances once it is durable that they ended or have another owner. */
  readonly keyring: Pick<Keyring, "forget">;
}

interface Outbox {
  /** Takes a mail for delivery. Returns at once, whether or not a mail server will be reached. */
  post(mail: Mail): void;
}

interface AccountLinks {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
}
