import type { Line, ToWorker } from "./messages.ts";

/**
 * This process's line to the supervisor that began it. Without one at its end, nothing is said: the worker
 * soon ends too.
 */
export function lineToSupervisor(): Line {
  return {
    send(message) {
      if (process.connected) process.send?.(message);
    },
    listen(take) {
      process.on("message", (message) => take(message as ToWorker));
    },
  };
}
