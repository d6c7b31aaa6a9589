import {
  type Authority,
  type Grant,
  grant,
  isRetired,
  isShort,
  NOTHING_GRANTED,
  type Standing,
  type Statement,
  usable,
} from "../../src/ledger/authority.ts";
import { type CounterId, isBalanceCounter } from "../../src/ledger/counter.ts";
import { type Debit, taken } from "../../src/ledger/credit.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";

/** What the simulator asks of an Authority, and of who looks into it. */
export interface FleetAuthority {
  /** Null where the ledger's epoch is over. */
  settle(statement: Statement): Grant | null;
  credit(counter: CounterId, amount: NanoUsd): void;
  /** Takes credit back that nobody was granted, once for each key; null where that is too little. */
  debit(key: string, counter: CounterId, requested: Debit["amount"]): NanoUsd | null;
  /** The ledger's epoch is over, and its journal says what it spent; the rest of its grants is free again. */
  close(ledger: string, epoch: number, spent: ReadonlyMap<CounterId, NanoUsd>): void;
  /** Spent by closed epochs and granted to open ones: never above the limit. */
  granted(counter: CounterId): number;
  /** To one epoch that is open, with what it has spent of it and forgotten. */
  grantedTo(counter: CounterId, ledger: string, epoch: number): number;
  stop?(): void;
}

/** Asks the other ledgers to give back what they do not use of a counter, or to say that they do. */
export type SendInquiries = (counter: CounterId, asker: string, inquiry: number) => void;

/** The Authority over a map: what the simulator runs, and what the one on PostgreSQL is measured by. */
export class MemoryAuthority implements Authority, FleetAuthority {
  /** For balances: what was credited, less what was taken back. */
  private readonly credited = new Map<CounterId, NanoUsd>();
  /** What was taken back, by idempotency key. */
  private readonly debits = new Map<string, NanoUsd>();
  private readonly counters = new Map<CounterId, Standings>();
  /** The latest, by counter. */
  private readonly inquiries = new Map<CounterId, number>();

  constructor(private readonly recall: SendInquiries = () => {}) {}

  credit(counter: CounterId, amount: NanoUsd): void {
    this.credited.set(counter, amount);
  }

  settle(statement: Statement): Grant {
    const { ledger, epoch, counter, number, needed } = statement;
    const limit = this.credited.get(counter) ?? statement.limit;
    const standings = this.standings(counter);
    const name = epochName(ledger, epoch);
    const known = standings.get(name) ?? { ...NOTHING_GRANTED, closed: false };
    let elsewhere = (this.granted(counter) - known.granted) as NanoUsd;
    const stated = known.closed ? known : { ...grant(statement, known, elsewhere, limit), closed: false };
    const retired = isRetired(statement, stated, stated.granted);
    if (retired) this.retire(standings, name, stated.granted);
    else standings.set(name, stated);
    const next = retired ? NOTHING_GRANTED : stated;
    const spent = (retired ? stated.granted : ZERO_USD) as NanoUsd;
    elsewhere = (elsewhere + spent) as NanoUsd;
    const granted = isBalanceCounter(counter) ? usable(next, elsewhere, limit) : next.granted;
    const free = limit - elsewhere - granted;
    const short = isShort(granted, elsewhere, limit, needed);
    const others = this.others(statement, short, standings);
    return { counter, number, granted, elsewhere, free, short, ...others, ...(retired ? { retired } : {}) };
  }

  /** What was spent is nobody's any more. */
  private retire(standings: Standings, name: string, spent: NanoUsd): void {
    standings.delete(name);
    const before = standings.get(retiredName(name))?.granted ?? 0;
    const granted = (before + spent) as NanoUsd;
    standings.set(retiredName(name), { ...NOTHING_GRANTED, granted, used: granted, closed: true });
  }

  private others(
    { ledger, epoch, counter, inquiry: awaited }: Statement,
    short: boolean,
    standings: ReadonlyMap<string, Standing & { readonly closed: boolean }>,
  ): Pick<Grant, "spare" | "open" | "inquiry" | "answered"> {
    const inquiry = Math.max(this.inquiries.get(counter) ?? 0, short ? awaited : 0);
    this.inquiries.set(counter, inquiry);
    let [spare, open, answered] = [0, 0, inquiry];
    for (const [name, { granted, used, answeredInquiry, closed }] of standings) {
      if (!short || closed || granted === 0 || name === epochName(ledger, epoch)) continue;
      spare += granted - used;
      open += granted;
      answered = Math.min(answered, answeredInquiry);
    }
    if (spare > 0 || answered < awaited) this.recall(counter, ledger, inquiry);
    return { spare: spare as NanoUsd, open: open as NanoUsd, inquiry, answered };
  }

  debit(key: string, counter: CounterId, requested: Debit["amount"]): NanoUsd | null {
    const known = this.debits.get(key);
    if (known !== undefined) return known;
    const credited = this.credited.get(counter) ?? ZERO_USD;
    const available = credited - this.granted(counter);
    const debit = taken(requested, { available, unspent: credited - this.spentByClosed(counter) });
    if (debit === null) return null;
    const { amount } = debit;
    this.credited.set(counter, (credited - amount) as NanoUsd);
    this.debits.set(key, amount);
    return amount;
  }

  close(ledger: string, epoch: number, spent: ReadonlyMap<CounterId, NanoUsd>): void {
    const name = epochName(ledger, epoch);
    for (const [counter, standings] of this.counters) {
      const standing = standings.get(name);
      if (standing === undefined || standing.closed) continue;
      const retired = standings.get(retiredName(name))?.granted ?? 0;
      const granted = ((spent.get(counter) ?? 0) - retired) as NanoUsd;
      standings.set(name, { ...standing, granted, used: granted, closed: true });
    }
  }

  granted(counter: CounterId): number {
    let sum = 0;
    for (const { granted } of this.standings(counter).values()) sum += granted;
    return sum;
  }

  /** What epochs that are over have spent. */
  private spentByClosed(counter: CounterId): number {
    let sum = 0;
    for (const { granted, closed } of this.standings(counter).values()) if (closed) sum += granted;
    return sum;
  }

  grantedTo(counter: CounterId, ledger: string, epoch: number): number {
    const standings = this.standings(counter);
    const name = epochName(ledger, epoch);
    return (standings.get(name)?.granted ?? 0) + (standings.get(retiredName(name))?.granted ?? 0);
  }

  private standings(counter: CounterId): Standings {
    const known = this.counters.get(counter);
    if (known !== undefined) return known;
    const created: Standings = new Map();
    this.counters.set(counter, created);
    return created;
  }
}

type Standings = Map<string, Standing & { readonly closed: boolean }>;

const retiredName = (epoch: string): string => `${epoch} retired`;

const epochName = (ledger: string, epoch: number): string => `${ledger}#${epoch}`;
