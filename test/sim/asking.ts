import type { NanoUsd } from "../../src/units/usd.ts";
import { check } from "./auditor.ts";

/**
 * The auditor's book of the requests that a fleet has neither admitted nor refused yet. Whoever is refused
 * because a limit was short was short of something at some moment while he waited, by what all nodes together
 * had really spent and held then. A request that was told that nobody knows is not judged.
 */
export class Asking {
  /** Those that had room in all of their limits whenever it was looked. */
  private readonly roomy = new Set<Asked>();
  /** Those of them that were refused. */
  private readonly wronged: Asked[] = [];

  /** `roomOf` is what is really left of a limit now. */
  constructor(private readonly roomOf: (limit: string) => number) {}

  begin(asked: Asked): void {
    if (this.hasRoom(asked)) this.roomy.add(asked);
  }

  /** After every step. */
  judge(): void {
    const limits = this.wronged.map((asked) => JSON.stringify([...asked]));
    check(limits.length === 0, `refused, with room in ${limits} all the while`);
    for (const asked of this.roomy) if (!this.hasRoom(asked)) this.roomy.delete(asked);
  }

  end(asked: Asked, end: "admitted" | "refused" | "unknown"): void {
    const hadRoom = this.roomy.delete(asked) && this.hasRoom(asked);
    if (end === "refused" && hadRoom) this.wronged.push(asked);
  }

  private hasRoom(asked: Asked): boolean {
    for (const [limit, amount] of asked) if (this.roomOf(limit) < amount) return false;
    return true;
  }
}

/** By limit, what a request wants of it. */
export type Asked = ReadonlyMap<string, NanoUsd>;
