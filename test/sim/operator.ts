import type { Credit, Debit, TooMuch } from "../../src/ledger/credit.ts";
import type { Debits } from "../../src/ledger/debits.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import type { Auditor } from "./auditor.ts";
import type { Random } from "./random.ts";
import { check } from "./world.ts";

/**
 * Takes credit back, and asks again under the same idempotency key: where no answer came, because the gateway
 * failed or died, and sometimes where one did.
 */
export class Operator {
  private readonly debits: RequestedDebit[] = [];

  constructor(
    private readonly random: Random,
    private readonly auditor: Auditor,
  ) {}

  act(balance: BalanceId, at: EpochMs, debits: Pick<Debits, "take">): void {
    const { random, debits: earlier } = this;
    const again = random.chance(0.4) ? random.pick(earlier) : undefined;
    if (again !== undefined) return void this.send(again, debits);
    this.take(balance, random.chance(0.15) ? "all" : ((1 + random.below(600_000)) as NanoUsd), at, debits);
  }

  take(balanceId: BalanceId, amount: Debit["amount"], at: EpochMs, debits: Pick<Debits, "take">): void {
    const debit = { balanceId, amount, idempotencyKey: `d${this.debits.length}`, note: null, at };
    const one: RequestedDebit = { debit, answer: null, underWay: 0 };
    this.debits.push(one);
    void this.send(one, debits);
  }

  /** Nobody will answer what was asked. */
  crash(): void {
    for (const one of this.debits) one.underWay = 0;
  }

  /** Asks until it knows of every debit whether it was made. */
  async clear(debits: Pick<Debits, "take">, pass: () => Promise<void>): Promise<void> {
    for (const one of this.debits) {
      while (this.auditor.inDoubt.has(one.debit.idempotencyKey)) {
        void this.send(one, debits);
        await pass();
      }
    }
  }

  private async send(one: RequestedDebit, debits: Pick<Debits, "take">): Promise<void> {
    const { idempotencyKey } = one.debit;
    if (one.answer === null) this.auditor.inDoubt.set(idempotencyKey, one.debit);
    one.underWay += 1;
    // An error says nothing: it may have been made.
    const answer = await debits.take(one.debit).catch(() => null);
    one.underWay -= 1;
    if (answer !== null) this.noteAnswer(one, answer);
  }

  private noteAnswer(one: RequestedDebit, answer: Credit | TooMuch): void {
    const { balanceId, amount, idempotencyKey } = one.debit;
    if ("available" in answer) {
      check(one.answer === null, `${idempotencyKey} was made, and is refused when it is repeated`);
      const isShort = typeof amount === "number" ? answer.available < amount : answer.available === 0;
      check(isShort, `${amount} of ${balanceId} is refused although ${answer.available} is available`);
      if (one.underWay === 0) this.auditor.inDoubt.delete(idempotencyKey);
      return;
    }
    check(one.answer === null || one.answer === answer.amount, `${idempotencyKey} has two answers`);
    check(
      answer.amount < 0 && (amount === "all" || answer.amount === -amount),
      `${idempotencyKey}: wrong amount`,
    );
    if (one.answer === null) this.auditor.credit(balanceId, answer.amount);
    one.answer = answer.amount;
    this.auditor.inDoubt.delete(idempotencyKey);
  }
}

interface RequestedDebit {
  readonly debit: Debit;
  /** The amount that was answered first. */
  answer: NanoUsd | null;
  underWay: number;
}
