import type { IpcChannel, ToWorker } from "./messages.ts";

/**
 * This process's channel to the supervisor that began it. Without one at its end, nothing is said: the worker
 * soon ends too.
 */
export function channelToSupervisor(): IpcChannel {
  return {
    send(message) {
      if (process.connected) process.send?.(message);
    },
    listen(take) {
      process.on("message", (message) => take(message as ToWorker));
    },
  };
}
