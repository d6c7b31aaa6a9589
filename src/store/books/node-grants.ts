import type { Statement } from "../../ledger/authority.ts";
import { type Grants, onceDurable } from "../../ledger/grants.ts";
import type { Clock } from "../../units/clock.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import type { FollowingBooks, NodeAuthority } from "./node-store.ts";

/** Sends a ledger's statements once they are durable, and tells its grants what comes of them. */
export function statementsTo(
  authority: NodeAuthority,
  journal: FollowingBooks["journal"],
  grants: () => Grants,
  log: Log,
): (statement: Statement) => void {
  let lastTold: unknown = null;
  // The statements of a batch fail together, and are logged once.
  const failed = (error: unknown): void => {
    if (error !== lastTold) log("grants", { error: String(error) });
    lastTold = error;
  };
  const settle = async (statement: Statement) => grants().receive(await authority.settle(statement));
  return onceDurable(journal, (statement) => void settle(statement).catch(failed));
}

/** Keeps the grants' correspondence going; returns what ends it. */
export function tendGrants(grants: Grants, clock: Clock): () => void {
  let turns = 0;
  let timer = clock.after(TEND_MS, again);
  function again(): void {
    timer = clock.after(TEND_MS, again);
    grants.tend();
    if (++turns % IDLE_EVERY === 0) grants.returnIdle();
  }
  return () => timer.cancel();
}

/** Finds the inquiries that no announcement told of. */
export const answerInquiries = (
  authority: NodeAuthority,
  node: string,
  grants: Grants,
  clock: Clock,
): Rounds =>
  new Rounds(clock, LOOK_MS, async () => {
    // A store that is away is told of elsewhere.
    const found = await authority.inquiries(node).catch(() => []);
    for (const { counter, inquiry } of found) grants.recall(counter, inquiry);
    return LOOK_MS;
  });

const TEND_MS = 250;
const LOOK_MS = 1_000;
/** Of `TEND_MS`. */
const IDLE_EVERY = 40;
