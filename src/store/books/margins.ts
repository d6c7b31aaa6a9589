import { type MarginSum, marginEvents } from "../../ledger/margin-events.ts";
import { DAY_MS, type EpochMs } from "../../units/clock.ts";
import { windowAt } from "../../units/window.ts";
import { recording } from "../customers/events.ts";
import { type Database, sql } from "../database/database.ts";

/**
 * What all processes charged and were charged on a day, by model and host, for `margin.negative`. What a process that dies
 * had not added yet is missing here, and nowhere else: usage and exports read the cost of each end.
 */
export class SqlMargins {
  constructor(private readonly db: Database) {}

  /** Adds what was charged lately, and records which models and hosts have cost more than was charged for them that day. */
  async add(sums: readonly MarginSum[], at: EpochMs): Promise<void> {
    const day = windowAt("day", at).startsAt;
    const ordered = sums.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    await this.db.commit([
      ordered.map(
        ({ model, host, charged, cost }) => sql`INSERT INTO margins (day, model, host, charged, cost)
          VALUES (${day}, ${model}, ${host}, ${charged}, ${cost}) ON CONFLICT (day, model, host)
          DO UPDATE SET charged = margins.charged + excluded.charged, cost = margins.cost + excluded.cost`,
      ),
      sql`DELETE FROM margins WHERE day < ${day - KEPT_DAYS * DAY_MS}`,
    ]);
    const present = await this.db.read<MarginSum>`
      SELECT model, host, charged, cost FROM margins WHERE day = ${day}`;
    await this.db.commit(recording(this.db, marginEvents(present, day, at)));
  }
}

const nameOf = ({ model, host }: MarginSum): string => `${model} ${host}`;

const KEPT_DAYS = 30;
