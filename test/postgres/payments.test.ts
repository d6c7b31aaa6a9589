import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { PostgresLedgerStore } from "../../src/store/ledger/postgres-ledger-store.ts";
import { SqlPaymentStore } from "../../src/store/payments/payment-store.ts";
import { epochMs, systemClock } from "../../src/units/clock.ts";
import { paymentCases } from "../store/payment-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("payments in PostgreSQL", (cluster) => {
  paymentCases(async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 4, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    await postgres.query(
      (sql) => sql`INSERT INTO balances (id, created_at) VALUES ('bal_a', 1), ('bal_b', 1)`,
    );
    const ledger = new PostgresLedgerStore(new PostgresDatabase(postgres));
    return {
      store: new SqlPaymentStore(new PostgresDatabase(postgres), systemClock),
      credited: async (id) => (await ledger.balance(id)).credited,
      debit: (idempotencyKey, amount, agoMs) =>
        ledger.debit({
          ...{ balanceId: "bal_a", amount, idempotencyKey, note: null },
          at: epochMs(systemClock.now() - agoMs),
        }),
      close: () => postgres.close(),
    };
  });
});
