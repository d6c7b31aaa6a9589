import type { NanoUsd } from "../../src/units/usd.ts";
import { check } from "./auditor.ts";

/**
 * The auditor's book of the requests that a fleet has neither admitted nor refused yet. Whoever is refused
 * because a limit was short was short of something by what each node had really spent and held at some moment
 * while he waited. The moments may differ: each node says what it has left when it is asked, and what one gives
 * back after that, another may have taken before it answers. A request that was told that nobody knows is not
 * judged.
 */
export class Asking {
  /** By limit, what each node has used of it at most since the request began; only while that leaves room. */
  private readonly roomy = new Map<Asked, Map<string, Map<string, number>>>();
  /** Those of them that were refused. */
  private readonly wronged: Asked[] = [];

  /** `use` is what is really used of a limit now. */
  constructor(private readonly use: (limit: string) => Use) {}

  begin(asked: Asked): void {
    this.roomy.set(asked, new Map([...asked.keys()].map((limit) => [limit, new Map()])));
    this.look(asked);
  }

  /** After every step. */
  judge(): void {
    const limits = this.wronged.map((asked) => JSON.stringify([...asked]));
    check(limits.length === 0, `refused, with room in ${limits} all the while`);
    for (const asked of this.roomy.keys()) this.look(asked);
  }

  end(asked: Asked, end: "admitted" | "refused" | "unknown"): void {
    this.look(asked);
    if (this.roomy.delete(asked) && end === "refused") this.wronged.push(asked);
  }

  private look(asked: Asked): void {
    for (const [limit, most] of this.roomy.get(asked) ?? []) {
      const { of, by } = this.use(limit);
      for (const [node, used] of by) most.set(node, Math.max(used, most.get(node) ?? 0));
      const used = [...most.values()].reduce((sum, one) => sum + one, 0);
      if (used + asked.get(limit)! > of) this.roomy.delete(asked);
    }
  }
}

/** What each node has spent and holds of a limit. */
export interface Use {
  readonly of: number;
  readonly by: ReadonlyMap<string, number>;
}

/** By limit, what a request wants of it. */
export type Asked = ReadonlyMap<string, NanoUsd>;
