import type { Clock } from "../../units/clock.ts";
import type { PostgresRegistry } from "./postgres-registry.ts";

/**
 * Closes nodes that had no journal and are gone for good; returns what ends it. Only a node does so that has
 * had its own lease for a while: when PostgreSQL comes back everybody's has run out, and everybody is about
 * to renew it.
 */
export function closeGoneNodes({ registry, usable, clock, log }: Watch): () => void {
  let timer = clock.after(CHECK_MS, check);
  let stopped = false;
  let usableChecks = 0;

  async function check(): Promise<void> {
    usableChecks = usable() ? usableChecks + 1 : 0;
    if (usableChecks >= SURE_CHECKS) await closeGone();
    if (!stopped) timer = clock.after(CHECK_MS, check);
  }

  async function closeGone(): Promise<void> {
    try {
      for (const name of await registry.gone()) {
        log("node closed", { name, found: await registry.close(name) });
      }
    } catch (error) {
      log("nodes", { error: String(error) });
    }
  }

  return () => {
    stopped = true;
    timer.cancel();
  };
}

interface Watch {
  readonly registry: Pick<PostgresRegistry, "gone" | "close">;
  /** This node has a lease. */
  readonly usable: () => boolean;
  readonly clock: Pick<Clock, "after">;
  log(event: string, fields: Readonly<Record<string, unknown>>): void;
}

const CHECK_MS = 5_000;
const SURE_CHECKS = 3;
