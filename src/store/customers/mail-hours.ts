import type { MailHours } from "../../customers/mail/event-mail.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { AccountId } from "../../units/id.ts";
import { type Database, sql } from "../database/database.ts";

export class SqlMailHours implements MailHours {
  constructor(private readonly db: Database) {}

  async take(account: AccountId, hour: EpochMs, max: number): Promise<number | null> {
    const taken = await this.db.commit([
      sql`INSERT INTO event_mails (account_id, hour, sent) VALUES (${account}, ${hour}, 1)
        ON CONFLICT (account_id) DO UPDATE SET hour = excluded.hour,
          sent = CASE WHEN event_mails.hour = excluded.hour THEN event_mails.sent + 1 ELSE 1 END
        WHERE event_mails.hour <> excluded.hour OR event_mails.sent < ${max}`,
    ]);
    if (taken?.[0] !== 1) return null;
    const [row] = await this.db.read<{ sent: number }>`
      SELECT sent FROM event_mails WHERE account_id = ${account}`;
    return row!.sent;
  }
}
