import { ownCommand, withRuntime } from "./server/runtime.ts";

/**
 * `bun run start`: contract, section 1. However it was started, the process first begins again, as itself, in
 * the environment that Bun should have; that takes 15 ms, because nothing else has been loaded yet.
 */
const environment = withRuntime(process.env);
if (environment !== null) {
  try {
    // Does not return.
    process.execve?.(process.execPath, ownCommand(), environment as NodeJS.ProcessEnv);
  } catch {
    // A sandbox may forbid it, and Windows has no such thing: then compiled code does not last.
  }
}
await import("./server/run.ts");
