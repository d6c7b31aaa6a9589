/**
 * Runs the work for one caller at a time. Callers that come meanwhile share one run, which begins afterwards:
 * it finds whatever they changed before they came.
 */
export function coalesceRuns<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | null = null;
  let waiting: Promise<Result> | null = null;
  const begin = (): Promise<Result> => {
    waiting = null;
    running = work().finally(() => {
      running = null;
    });
    return running;
  };
  return () => {
    if (waiting !== null) return waiting;
    if (running === null) return begin();
    waiting = running.then(begin, begin);
    return waiting;
  };
}
