/** Runs `work` one run at a time. Callers that come during a run share the next one, which sees what they changed before. */
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
