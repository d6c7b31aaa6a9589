import { AsyncLocalStorage } from "node:async_hooks";
import type { EpochMs } from "../../units/clock.ts";
import type { ChangeAuthor, ChangeId } from "./change.ts";

/**
 * Where changes come from that a store makes meanwhile. It travels with the request's asynchronous calls, so that stores
 * write who has changed something without each call between saying so.
 */
export interface ChangeOrigin {
  /** For one more row of the log; null once the request is answered: what its timers do later is nobody's. */
  stamp(): ChangeStamp | null;
}

export interface ChangeStamp {
  readonly id: ChangeId;
  readonly at: EpochMs;
  /** Null where no credential was shown. */
  readonly by: ChangeAuthor | null;
  readonly network: string;
  readonly request: string;
}

const origins = new AsyncLocalStorage<ChangeOrigin>();

export const withOrigin = <Result>(origin: ChangeOrigin, work: () => Result): Result =>
  origins.run(origin, work);

export const changeStamp = (): ChangeStamp | null => origins.getStore()?.stamp() ?? null;
