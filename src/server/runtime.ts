/**
 * What Bun reads from the environment only, and only as a process begins. When nothing has happened for a
 * minute or two, Bun throws away what it had compiled, and the next requests run in its interpreter until it
 * is compiled again: they cost twice the CPU and wait ten times as long (docs/performance, "After a pause").
 * With the first two, compiled code stays. A young collection visits less than a megabyte; waiting for helping
 * threads, which share the core with everything else, makes its stop twice as long, so one thread does it alone.
 */
export const RUNTIME = {
  BUN_JSC_optimizedCodeAgingQuietAllocationMB: "0",
  BUN_JSC_codeBlockAgingLeaseMultiplier: "1000",
  BUN_JSC_numberOfGCMarkers: "1",
} as const;

/**
 * The command with which this process was started. A single executable holds its own source, under a path that
 * only it can see, and takes options for Bun from `BUN_OPTIONS` alone: on its command line they would be the gateway's.
 */
export const ownCommand = (): string[] => [
  process.execPath,
  ...(Bun.main.startsWith(EMBEDDED) ? [] : [...process.execArgv, Bun.main]),
  ...process.argv.slice(2),
];

/** Where `bun build --compile` puts what it embeds. */
const EMBEDDED = "/$bunfs/";

type Environment = Readonly<Record<string, string | undefined>>;

/** The environment to begin a process with, or null when `env` says all of it already, in whatever way. */
export const withRuntime = (env: Environment): Environment | null =>
  Object.keys(RUNTIME).every((name) => name in env) ? null : { ...RUNTIME, ...env };
