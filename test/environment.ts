/**
 * For processes that tests start: nothing from the caller's environment, whose providers' keys must not become
 * hosts, nor their gateway be asked. Bun would read the keys again from a `.env` in the folder.
 */
export function cleanEnvironment(): Record<string, string> {
  const clean: Record<string, string> = { BUN_OPTIONS: "--no-env-file" };
  for (const name of KEPT) {
    const value = process.env[name];
    if (value !== undefined) clean[name] = value;
  }
  return clean;
}

/** By which the runner knows what a test has left running. */
export const RUN_MARK = "GATEWAY_TEST_RUN";

/** The last is what the runner wishes of compilers: a gateway that runs for seconds pays as little for them. */
const KEPT = ["PATH", "HOME", "TMPDIR", RUN_MARK, "BUN_JSC_useFTLJIT"];
