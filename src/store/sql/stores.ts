import type { Clock } from "../../units/clock.ts";
import { SqlFleetStore } from "./fleet-store.ts";
import { SqlGasLineStore } from "./gas-line-store.ts";
import { SqlLowCreditStore } from "./low-credit-store.ts";
import { SqlPaymentStore } from "./payment-store.ts";
import { SqlSigningKeyStore } from "./signing-key-store.ts";
import type { SqlDatabase } from "./statement.ts";

/** The stores whose changes no node has to notice. */
export const sqlStores = (db: SqlDatabase, clock: Pick<Clock, "now">) => ({
  lowCredit: new SqlLowCreditStore(db),
  payments: new SqlPaymentStore(db, clock),
  gasLine: new SqlGasLineStore(db),
  signingKeys: new SqlSigningKeyStore(db),
  fleet: new SqlFleetStore(db),
});
