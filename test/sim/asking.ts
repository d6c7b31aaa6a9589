import type { NanoUsd } from "../../src/units/usd.ts";
import type { NodeLife } from "./free-requests.ts";
import { check } from "./world.ts";

/**
 * The auditor's book of the requests that a fleet has neither admitted nor refused yet. A request that is refused
 * because a limit was short was short of something by what each node had really spent and held at some moment
 * while he waited. The moments may differ: each node says what it has left when it is asked, and what one gives
 * back after that, another may have taken before it answers. A request that ended without a verdict is not
 * judged.
 */
export class Asking {
  /** By limit, what each node has used of it at most since the request began; only while that leaves room. */
  private readonly roomy = new Map<
    RequestedAmounts,
    { readonly node: NodeLife; readonly limits: Map<string, Most> }
  >();
  /** Refused requests. */
  private readonly wronged: RequestedAmounts[] = [];

  /** `use` is what is really used of a limit now, here and below. */
  begin(amounts: RequestedAmounts, node: NodeLife, use: UseOf): void {
    const limits = new Map([...amounts.keys()].map((limit) => [limit, { all: 0, by: [] }]));
    this.roomy.set(amounts, { node, limits });
    this.check(amounts, use);
  }

  /** After every step. */
  judge(use: UseOf): void {
    const limits = this.wronged.map((amounts) => JSON.stringify([...amounts]));
    check(limits.length === 0, `refused, with room in ${limits} all the while`);
    for (const [amounts, { node }] of this.roomy) {
      if (node.isGone()) this.roomy.delete(amounts);
      else this.check(amounts, use);
    }
  }

  end(amounts: RequestedAmounts, end: "admitted" | "refused" | "unknown", use: UseOf): void {
    this.check(amounts, use);
    if (this.roomy.delete(amounts) && end === "refused") this.wronged.push(amounts);
  }

  private check(amounts: RequestedAmounts, use: UseOf): void {
    for (const [limit, most] of this.roomy.get(amounts)?.limits ?? []) {
      const { of, by } = use(limit);
      for (let node = 0; node < by.length; node++) {
        const more = by[node]! - (most.by[node] ?? 0);
        if (more <= 0) continue;
        most.by[node] = by[node]!;
        most.all += more;
      }
      if (most.all + amounts.get(limit)! > of) this.roomy.delete(amounts);
    }
  }
}

export type UseOf = (limit: string) => Use;

/** What each node has spent and holds of a limit, by its number. */
interface Use {
  readonly of: number;
  readonly by: readonly number[];
}

/** What each node has used of a limit at most, and all of that. */
interface Most {
  all: number;
  readonly by: number[];
}

/** By limit, what a request wants of it. */
export type RequestedAmounts = ReadonlyMap<string, NanoUsd>;
