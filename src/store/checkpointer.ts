import type { Clock, Timer } from "../units/clock.ts";

/**
 * SQLite copies its write-ahead log into the database every thousand pages, inside whichever commit comes last, with two
 * syncs: some 5 ms on this loop for each, measured as the loop's p99. A thread of its own does it every second instead,
 * without holding writers up; connections that rely on it turn the automatic one off.
 */
export function startCheckpointer(
  path: string,
  clock: Clock,
  onFault: (error: unknown) => void,
): { stop(): void } {
  const thread = new Worker(new URL("./checkpoint-thread.ts", import.meta.url), {
    ref: false,
  } as WorkerOptions);
  let timer: Timer;
  const again = () => {
    timer = clock.after(EVERY_MS, () => thread.postMessage(path));
  };
  thread.onmessage = ({ data }: MessageEvent<string | null>) => {
    if (data !== null) onFault(data);
    again();
  };
  thread.onerror = (event) => onFault(event.message);
  again();
  return {
    stop() {
      timer.cancel();
      thread.terminate();
    },
  };
}

const EVERY_MS = 1_000;
