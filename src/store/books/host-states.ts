import { eventOf } from "../../customers/events/event.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { recording } from "../customers/events.ts";
import { changesOne, type Database, sql } from "../database/database.ts";

/** Whether a host is down, as the processes of the store agree. */
export interface HostState {
  readonly host: string;
  readonly isDown: boolean;
  /** Counts the changes, which makes each of them one event. */
  readonly version: number;
  readonly changedAt: EpochMs;
  /** When some process last saw it fail. */
  readonly failedAt: EpochMs;
}

/** The processes that share a store see a host fail, or serve, at about the same time: the first one to write it makes the event. */
export class SqlHostStates {
  constructor(private readonly db: Database) {}

  async list(): Promise<ReadonlyMap<string, HostState>> {
    const rows = await this.db.read<Omit<HostState, "isDown"> & { readonly isDown: number }>`
      SELECT host, is_down AS "isDown", version, changed_at AS "changedAt", failed_at AS "failedAt" FROM host_states`;
    return new Map(rows.map((row) => [row.host, { ...row, isDown: row.isDown === 1 }]));
  }

  /** It has failed since then. Does nothing where another process has changed the row meanwhile. */
  async down(host: string, before: HostState | undefined, since: EpochMs, at: EpochMs): Promise<void> {
    const version = (before?.version ?? 0) + 1;
    const event = eventOf("host.down", `${host} ${version}`, {
      at,
      balance: null,
      host,
      failing_since: isoTime(since),
    });
    await this.db.commit([
      changesOne(
        before === undefined
          ? sql`INSERT INTO host_states (host, is_down, version, changed_at, failed_at)
              VALUES (${host}, 1, ${version}, ${at}, ${at}) ON CONFLICT DO NOTHING`
          : sql`UPDATE host_states SET is_down = 1, version = ${version}, changed_at = ${at}, failed_at = ${at}
              WHERE host = ${host} AND version = ${before.version}`,
      ),
      recording(this.db, [event]),
    ]);
  }

  /** It serves again. */
  async up({ host, version, changedAt }: HostState, at: EpochMs): Promise<void> {
    const event = eventOf("host.up", `${host} ${version + 1}`, {
      at,
      balance: null,
      host,
      down_since: isoTime(changedAt),
    });
    await this.db.commit([
      changesOne(sql`UPDATE host_states SET is_down = 0, version = ${version + 1}, changed_at = ${at}
        WHERE host = ${host} AND version = ${version}`),
      recording(this.db, [event]),
    ]);
  }

  /** It is still seen to fail, so that no other process takes it for up. */
  async stillDown(host: string, at: EpochMs): Promise<void> {
    await this.db.commit([
      sql`UPDATE host_states SET failed_at = ${at} WHERE host = ${host} AND is_down = 1 AND failed_at < ${at}`,
    ]);
  }
}
