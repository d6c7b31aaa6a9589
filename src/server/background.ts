import { PaymentWatch } from "../payments/rails/payment-watch.ts";
import { UNUSED_PACE, unusedSlices } from "../store/customers/unused-keys.ts";
import { HOURLY, Retention, type RetentionOptions, slicesOf } from "../store/retention.ts";
import type { BalanceId } from "../units/id.ts";
import type { Events } from "./events.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import type { Rooms } from "./rooms.ts";
import { ServiceEvents } from "./service-events.ts";

/** What a gateway with a port does now and then, without a request: watches, clears away and reports. */
export function openBackground(rooms: Rooms, { deliveries }: Events, parts: GatewayParts) {
  const { config, clock, books, log } = parts;
  const hosts = () => rooms.health.report(config.config.catalog);
  // Endpoints of events first, so that they are sent what the others find.
  const reporters: readonly Reporter[] = [
    ...deliveries,
    rooms.exporter,
    new ServiceEvents({ books, hosts, hostCosts: rooms.hostCosts, config, clock, log }),
  ];
  const all = [...paymentWatches(rooms, parts), ...removals(parts), ...reporters];
  return {
    async prepare(): Promise<void> {
      for (const one of reporters) await one.prepare();
    },
    async stop(): Promise<void> {
      await Promise.all(all.map((one) => one.stop()));
    },
  };
}

interface Stoppable {
  stop(): Promise<void>;
}

interface Reporter extends Stoppable {
  prepare(): Promise<void>;
}

function paymentWatches({ payments }: Rooms, { clock, paymentPace, log }: GatewayParts): PaymentWatch[] {
  const { store, x402, card } = payments;
  const rails = [x402, card].filter((rail) => rail !== null);
  return rails.length === 0 ? [] : [new PaymentWatch(store, rails, paymentPace, clock, log)];
}

/** Remove what the configuration keeps for so many days only. */
function removals({ config: active, clock, books, log }: GatewayParts): Stoppable[] {
  const removal = (
    event: string,
    keepDays: RetentionOptions["keepDays"],
    deleteSlice: RetentionOptions["deleteSlice"],
    pace = HOURLY,
  ) =>
    new Retention({
      clock,
      keepDays,
      deleteSlice,
      pace,
      onDeleted: (rows) => log(event, rows),
      onFault: (error) => log("books", { error: String(error) }),
    });
  const isInUse = (balance: BalanceId) => books.ledger.counters.ofBalance(balance) !== undefined;
  return [
    removal("receipts deleted", () => active.config.receipts.keepDays, slicesOf("receipts", books.fold)),
    removal(
      "changes deleted",
      () => active.config.changes.keepDays,
      slicesOf("changes", (before) => books.changes.forget(before)),
    ),
    removal(
      "unused removed",
      () => active.config.unusedDays,
      unusedSlices(books.keys, { isInUse, forget: (keys, balances) => books.keyring.forget(keys, balances) }),
      UNUSED_PACE,
    ),
  ];
}
