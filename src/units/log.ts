/** One event for the operator; `fields` never hold keys, hashes, prompts or answers. */
export type Log = (event: string, fields?: Readonly<Record<string, unknown>>) => void;

/** Tells the operator of a mistake of the gateway's own. */
export const faultsTo =
  (log: Log) =>
  (error: unknown, receipt?: string): void =>
    log("fault", {
      ...(receipt === undefined ? {} : { receipt }),
      error: error instanceof Error ? error.stack : String(error),
    });
