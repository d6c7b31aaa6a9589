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

/** The same work, which never rejects: it reports a failure once, because a store that is away fails each round alike. */
export function reportingOnce(
  work: () => Promise<void>,
  report: (error: string) => void,
): () => Promise<void> {
  let reported: string | null = null;
  return async () => {
    const error = await work().then(() => null, String);
    if (error !== null && error !== reported) report(error);
    reported = error;
  };
}
