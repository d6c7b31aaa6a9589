import { type NotedPrices, priceEvents } from "../../ledger/price-events.ts";
import type { EpochMs } from "../../units/clock.ts";
import { recording } from "../customers/events.ts";
import { changesOne, type Database, sql } from "../database/database.ts";

/**
 * The prices that some process of the store last put in force: whichever is the first to have others records that as an
 * event. The others find the row as they would have written it.
 */
export class SqlPricesInForce {
  constructor(private readonly db: Database) {}

  /** A process calls this when its own prices have changed, and at its start. One that is behind with model lists is late. */
  note(snapshot: NotedPrices, at: EpochMs): Promise<void> {
    return this.db.change("prices in force", async () => {
      const [row] = await this.db.read<PricesRow>`SELECT number, snapshot FROM prices_in_force`;
      const text = JSON.stringify(snapshot);
      if (row === undefined)
        return {
          result: undefined,
          statements: [
            changesOne(sql`INSERT INTO prices_in_force (one, number, snapshot) VALUES (1, 1, ${text})
              ON CONFLICT DO NOTHING`),
          ],
        };
      const before = JSON.parse(row.snapshot) as NotedPrices;
      if (before.version === snapshot.version || before.modelVersion > snapshot.modelVersion)
        return { result: undefined };
      const number = row.number + 1;
      return {
        result: undefined,
        statements: [
          changesOne(sql`UPDATE prices_in_force SET number = ${number}, snapshot = ${text}
            WHERE number = ${number - 1}`),
          recording(this.db, priceEvents(before, snapshot, { number, at })),
        ],
      };
    });
  }
}

interface PricesRow {
  readonly number: number;
  /** JSON */
  readonly snapshot: string;
}
