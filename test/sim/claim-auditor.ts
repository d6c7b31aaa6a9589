import type { Database } from "bun:sqlite";
import type { Clock } from "../../src/units/clock.ts";
import type { AccountId, BalanceId } from "../../src/units/id.ts";
import { type Auditor, check } from "./world.ts";

export type Person = "owner" | "thief";

/** Something that somebody was given, as they know it. */
export interface Credential {
  readonly name: string;
  readonly kind: "key" | "recovery secret" | "session";
  readonly secret: string;
  /** The key's id. */
  readonly id: string;
  readonly holder: Person;
  /** What it was made with; null for what set-up and sign-in make. */
  readonly by: Credential | null;
  /** The account of a session. */
  readonly account: AccountId | null;
  /** When it was asked for. */
  readonly at: number;
}

/** Something that somebody does with a credential. */
export interface Deed {
  readonly name: string;
  readonly by: Credential;
  readonly at: number;
  /** Whether the credential had ended when it was asked for. */
  readonly isLate: boolean;
}

/**
 * Knows who should have the balance from what people were answered: what was made with what, and when a claim was taken
 * back. From that answer on, nothing that came of the claim spends, reads or changes anything, and only an account for
 * which the owner claims with the recovery secret has the balance. Turns number requests and answers, in order.
 */
export class ClaimAuditor implements Auditor {
  /** Null before set-up. */
  balance: BalanceId | null = null;
  /** Whose the balance is, and since when. */
  account: AccountId | null = null;
  sinceMs = 0;
  /** What was answered to have ended. */
  private readonly ended = new Set<Credential>();
  /** Accounts that the owner has let have the balance since it was last taken back. */
  private readonly mayHave = new Set<AccountId>();
  /** The keys as they were when that was answered. */
  private seen = new Map<string, SeenKey>();
  /** The run's revision when it was last read. */
  private seenRevision = 0;
  private takenBackAt = -1;
  private allRevokedAt = -1;
  private turns = 0;

  constructor(
    private readonly db: Database,
    private readonly time: Pick<Clock, "elapsedMs">,
  ) {}

  turn(): number {
    return this.turns++;
  }

  deed(what: string, by: Credential): Deed {
    const at = this.turn();
    return { name: `${what} ${at}`, by, at, isLate: this.hasEnded(by) };
  }

  get wasTakenBack(): boolean {
    return this.takenBackAt >= 0;
  }

  /** The owner is about to claim. */
  lets(accounts: readonly AccountId[]): void {
    for (const account of accounts) this.mayHave.add(account);
  }

  /** The answer of an undo, a detachment or a deletion; `keys` are those that it has revoked, of which the owner knew. */
  takenBack(keys: readonly Credential[] | null): void {
    this.takenBackAt = this.turn();
    if (keys !== null) this.allRevokedAt = this.takenBackAt;
    for (const key of keys ?? []) this.ended.add(key);
    this.mayHave.clear();
    const rows = this.db.query<SeenKey & { id: string }, []>("SELECT id, name, state FROM keys");
    this.seen = new Map(rows.all().map((key) => [key.id, key]));
    const run = this.db.query<{ revision: number }, []>("SELECT max(revision) AS revision FROM runs");
    this.seenRevision = run.get()!.revision;
  }

  ends(credential: Credential): void {
    this.ended.add(credential);
  }

  hasEnded(credential: Credential): boolean {
    const { kind, by, at } = credential;
    if (this.ended.has(credential) || this.isOfEndedClaim(credential)) return true;
    // What a key has rotated itself to is revoked with it, or came too late.
    return kind === "key" && by?.kind === "key" && at < this.allRevokedAt;
  }

  private isOfEndedClaim(credential: Credential): boolean {
    const { kind, account, at } = credential;
    if (kind === "session") return this.wasTakenBack && !this.mayHave.has(account!);
    return isOfClaim(credential) && at < this.takenBackAt;
  }

  /** At the instant in which something is taken for it. */
  spends(key: Credential): void {
    check(!this.hasEnded(key), `${key.name} spends after it ended`);
  }

  letIn({ name, by, isLate }: Deed): void {
    check(!isLate || !this.hasEnded(by), `${name}: ${by.name} was let in after it ended`);
  }

  /**
   * A change of a key was answered. With a credential of a claim that ended meanwhile, it had to be done before that was
   * answered, as `isDone` tells from what the key was then.
   */
  changed({ name, by }: Deed, key: string, isDone: (seen: SeenKey) => boolean): void {
    if (!this.isOfEndedClaim(by)) return;
    const seen = this.seen.get(key);
    check(seen !== undefined && isDone(seen), `${name}: ${by.name} changed ${key} after it ended`);
  }

  /** An owner's change of the run was answered: as `changed`, where each change counts its revision up. */
  changedRun({ name, by }: Deed, revision: number): void {
    if (!this.isOfEndedClaim(by)) return;
    check(revision <= this.seenRevision, `${name}: ${by.name} changed a run after it ended`);
  }

  watch(): void {
    if (this.balance === null) return;
    const { account_id: account } = this.db
      .query<{ account_id: AccountId | null }, [string]>("SELECT account_id FROM balances WHERE id = ?")
      .get(this.balance)!;
    if (account !== this.account) this.sinceMs = this.time.elapsedMs();
    this.account = account;
    check(
      account === null || !this.wasTakenBack || this.mayHave.has(account),
      `${account} has what was taken back from it`,
    );
  }
}

interface SeenKey {
  readonly name: string | null;
  readonly state: string;
}

/** Whether a session made it, or something that a session has made. */
export const isOfClaim = ({ kind, by }: Credential): boolean =>
  kind === "session" || (by !== null && isOfClaim(by));
