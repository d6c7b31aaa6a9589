import { join } from "node:path";

/** This process among the workers of its machine. */
export interface WorkerIdentity {
  /** From 1. */
  readonly number: number;
  /** How many there are. */
  readonly workers: number;
  /** Another process had this place before; what came meanwhile was answered by other workers. */
  readonly isAgain: boolean;
  /** Where each is reached by the others. */
  socketOf(worker: number): string;
}

/** As the supervisor says it in the environment; null for a process that serves alone. */
export function workerIdentity(env: Readonly<Record<string, string | undefined>>): WorkerIdentity | null {
  const { GATEWAY_WORKER: number, GATEWAY_WORKERS: workers, GATEWAY_SOCKETS: folder } = env;
  if (number === undefined || workers === undefined || folder === undefined) return null;
  return {
    number: Number(number),
    workers: Number(workers),
    isAgain: env.GATEWAY_WORKER_AGAIN === "1",
    socketOf: (worker) => join(folder, `worker-${worker}.sock`),
  };
}
