import { StoreUnreachable } from "../../errors/bookkeeping.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { Noted } from "./operations.ts";

/**
 * A change is decided by a function of the present state, which is in the node, beside a database that is the
 * keeper's. So the node is told the state, decides, and proposes what to write; the keeper writes it if the
 * state is still the same, and else tells the new one.
 */
export interface Proposal {
  /** The state as it was told. */
  readonly seen: string;
  readonly decided: unknown;
}

export type Proposed<Result> = Noted<Result> | { readonly state: string };

/** The keeper's side: `write` runs a decision in a transaction. */
export async function proposed<Result>(
  proposal: Proposal | null,
  // biome-ignore lint/suspicious/noExplicitAny: a decision of any kind, of any state
  write: (decide: (...state: any[]) => any) => Promise<Noted<Result>>,
): Promise<Proposed<Result>> {
  try {
    return await write((...told) => {
      const state = JSON.stringify(told, (_, value) => (value instanceof Map ? [...value] : value));
      if (state !== proposal?.seen) throw new StateChanged(state);
      return proposal.decided;
    });
  } catch (error) {
    if (error instanceof StateChanged) return { state: error.state };
    throw error;
  }
}

/** The node's side. */
export async function decideWith<Result>(
  propose: (proposal: Proposal | null) => Promise<Proposed<Result>>,
  // biome-ignore lint/suspicious/noExplicitAny: as the operation's transaction has it
  decide: (...state: any[]) => unknown,
): Promise<Noted<Result> | Refusal> {
  let proposal: Proposal | null = null;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const answer = await propose(proposal);
    if (!("state" in answer)) return answer;
    const decided = decide(...JSON.parse(answer.state));
    if (refused(decided)) return decided;
    proposal = { seen: answer.state, decided };
  }
  throw new StoreUnreachable(`others changed the same ${MAX_ATTEMPTS} times`);
}

/** Nothing was written. */
class StateChanged extends Error {
  constructor(readonly state: string) {
    super("the state is another");
  }
}

const MAX_ATTEMPTS = 20;
