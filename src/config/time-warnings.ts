import type { Config } from "./config.ts";

/** Times under a second, which somebody may have written in seconds: as written, nearly every request would fail. */
export function timeWarnings({ generation, drainMs, graceMs }: TimedConfig): string[] {
  const times: Readonly<Record<string, number | null>> = {
    "generation.first_token_ms": generation.firstTokenMs,
    "generation.chunk_gap_ms": generation.chunkGapMs,
    "generation.keepalive_ms": generation.keepaliveMs,
    "generation.total_ms": generation.totalMs,
    drain_ms: drainMs,
    grace_ms: graceMs,
  };
  return Object.entries(times).flatMap(([name, ms]) =>
    ms === null || ms === 0 || ms >= 1_000 ? [] : [`${name} is ${ms}: is that in milliseconds?`],
  );
}

type TimedConfig = Pick<Config, "generation" | "drainMs" | "graceMs">;
