import type { ReceiptId } from "../../src/units/id.ts";
import { check } from "./world.ts";

/**
 * The auditor's book of the free requests of one owner, made through any node of the fleet, on the day that
 * it is there. What a node has admitted counts while it is there to remember that; of a node that is gone,
 * what its client received counts, and what it had sent may count.
 */
export class FreeRequests {
  private readonly made = new Map<ReceiptId, FreeRequest>();

  constructor(private readonly limit: number) {}

  get count(): number {
    return this.made.size;
  }

  admitted(receipt: ReceiptId, at: number, node: NodeLife): void {
    this.made.set(receipt, { node, day: dayOf(at), end: "open", isKept: false, wasDelivered: false });
  }

  /** Some of the answer was sent. */
  delivered(receipt: ReceiptId): void {
    this.change(receipt, { wasDelivered: true });
  }

  ended(receipt: ReceiptId, end: "used" | "unused"): void {
    this.change(receipt, { end });
  }

  /** Its node is gone, and it is known that some of the answer was sent. */
  started(receipt: ReceiptId): void {
    this.change(receipt, { end: "used", isKept: true });
  }

  /** Its end will be known, whatever becomes of the node. */
  kept(receipt: ReceiptId): void {
    this.change(receipt, { isKept: true });
  }

  /** After every step. */
  judge(): void {
    const surely = this.sums((one) => isUsed(one) || isRunning(one));
    for (const sum of surely.values())
      check(sum <= this.limit, `${sum} free requests of a day, of ${this.limit}`);
  }

  /** Once everybody was refused one whose day it is. */
  judgeSpent(at: number): void {
    const possibly = this.sums((one) => one.end === "used" || isRunning(one) || isCutOff(one));
    const sum = possibly.get(dayOf(at)) ?? 0;
    check(sum >= this.limit, `no more than ${sum} free requests could be made, of ${this.limit}`);
  }

  /** By day. */
  private sums(counts: (one: FreeRequest) => boolean): Map<number, number> {
    const sums = new Map<number, number>();
    for (const one of this.made.values()) if (counts(one)) sums.set(one.day, (sums.get(one.day) ?? 0) + 1);
    return sums;
  }

  private change(receipt: ReceiptId, to: Partial<FreeRequest>): void {
    const one = this.made.get(receipt);
    if (one !== undefined) Object.assign(one, to);
  }
}

interface FreeRequest {
  readonly node: NodeLife;
  readonly day: number;
  end: "open" | "used" | "unused";
  isKept: boolean;
  wasDelivered: boolean;
}

const isUsed = ({ end, isKept, node }: FreeRequest): boolean => end === "used" && (isKept || !node.isGone());

const isRunning = ({ end, node }: FreeRequest): boolean => end === "open" && !node.isGone();
const isCutOff = ({ end, wasDelivered }: FreeRequest): boolean => end === "open" && wasDelivered;

const dayOf = (at: number): number => Math.floor(at / 86_400_000);

/** One life of a node; gone once it is dead or closed. */
export interface NodeLife {
  isGone(): boolean;
}
