import type { Clock } from "../../units/clock.ts";
import { SqlChangeLog } from "../customers/change-log.ts";
import { SqlEventReader } from "../customers/event-reader.ts";
import { SqlOperatorStore } from "../customers/operator-store.ts";
import { SqlOwnWebhookStore } from "../customers/own-webhook-store.ts";
import { SqlWebhookStore } from "../customers/webhook-store.ts";
import type { Database } from "../database/database.ts";
import { SqlExportStore } from "../export/export-store.ts";
import { FleetStore, ModelVersionStore, SigningKeyStore } from "../nodes/fleet.ts";
import { SqlGasLineStore } from "../payments/gas-line-store.ts";
import { SqlPaymentStore } from "../payments/payment-store.ts";
import { SqlPricesInForce } from "./prices-in-force.ts";

/** The stores whose changes no node has to notice. */
export const sqlStores = (db: Database, clock: Pick<Clock, "now">) => ({
  events: new SqlEventReader(db),
  webhooks: new SqlWebhookStore(db),
  ownWebhooks: new SqlOwnWebhookStore(db),
  exports: new SqlExportStore(db),
  payments: new SqlPaymentStore(db, clock),
  gasLine: new SqlGasLineStore(db),
  signingKeys: new SigningKeyStore(db),
  fleet: new FleetStore(db),
  modelVersions: new ModelVersionStore(db),
  pricesInForce: new SqlPricesInForce(db),
  changes: new SqlChangeLog(db),
  operators: new SqlOperatorStore(db),
});

export interface SqlStores extends Readonly<ReturnType<typeof sqlStores>> {}
