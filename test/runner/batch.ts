import { cleanEnvironment, RUN_MARK } from "../environment.ts";
import { MANY_ROUNDS } from "../rounds.ts";
import { isLong } from "./batches.ts";
import { endLeftovers } from "./leftovers.ts";

/** How a process of `bun test` went. */
export interface Outcome {
  readonly files: readonly string[];
  readonly pass: number;
  readonly fail: number;
  readonly skip: number;
  readonly seconds: number;
  /** User and system time of the process and of what it waited for. */
  readonly cpuSeconds: number;
  /** Resident memory of the largest of these processes, at its height. */
  readonly megabytes: number;
  /** What it printed besides the tests that passed. */
  readonly output: readonly string[];
  /** What was still running when it had ended, and was then ended. */
  readonly left: readonly string[];
}

/** How long the tests may take, where they run, and whether the first that fails ends them. */
export interface Limits {
  readonly testMs: number;
  readonly batchMs: number;
  readonly folder?: string;
  readonly toFirstFailure?: boolean;
}

/** Test files that share a process. */
export class Batch {
  /** Begins with that of a run which this one is part of. */
  readonly mark = `${process.env[RUN_MARK] ?? ""}/${crypto.randomUUID()}`;
  private child: Bun.Subprocess<"ignore", "pipe", "pipe"> | null = null;

  constructor(
    readonly files: readonly string[],
    private readonly limits: Limits = PATIENT,
  ) {}

  async run(): Promise<Outcome> {
    const startedMs = performance.now();
    const child = Bun.spawn(
      [process.execPath, "test", ...this.options(), ...this.files.map((file) => `./${file}`)],
      {
        cwd: this.limits.folder ?? process.cwd(),
        env: {
          ...cleanEnvironment(),
          ...wishes(),
          ...this.forSeconds(),
          [RUN_MARK]: this.mark,
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    this.child = child;
    const outputs = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    const timer = setTimeout(() => child.kill("SIGKILL"), this.limits.batchMs);
    const code = await child.exited;
    clearTimeout(timer);
    // Before the outputs, which it may hold open.
    const left = endLeftovers(this.mark);
    const lines = (await outputs).join("\n").split("\n");
    const { cpuTime, maxRSS } = child.resourceUsage()!;
    const failed = countOf(lines, "fail");
    return {
      files: this.files,
      pass: countOf(lines, "pass"),
      // A process that ends badly has failed, whatever its tests say.
      fail: code === 0 ? failed : Math.max(failed, 1),
      skip: countOf(lines, "skip"),
      seconds: (performance.now() - startedMs) / 1_000,
      cpuSeconds: Number(cpuTime.total) / 1e6,
      megabytes: maxRSS / 1e6,
      output: [...lines.filter((line) => !NOISE.test(line)), ...endOf(child)],
      left,
    };
  }

  private options(): string[] {
    const { testMs, toFirstFailure } = this.limits;
    return ["--timeout", String(testMs), ...(toFirstFailure === true ? ["--bail"] : [])];
  }

  private forSeconds(): Record<string, string> {
    return this.files.some(isLong) ? {} : FOR_SECONDS;
  }

  /** With everything that it started. */
  kill(): void {
    this.child?.kill("SIGKILL");
    endLeftovers(this.mark);
  }
}

/**
 * What runs for seconds takes a quarter less time without the compiler that is for what runs for hours, and a third
 * less memory if the heap does not grow as the memory of the machine would let it.
 */
const FOR_SECONDS = { BUN_JSC_useFTLJIT: "0", BUN_JSC_forceRAMSize: `${512 * 1024 * 1024}` };
/** A loop that never yields outlives bun's own timeout of a test. */
const PATIENT: Limits = { testMs: 10 * 60_000, batchMs: 20 * 60_000 };
/** With `--thorough`. */
export const FOR_HOURS: Limits = { testMs: 2 * 3_600_000, batchMs: 6 * 3_600_000 };

/** Which tests the caller insists on, with what, and how often. */
function wishes(): Record<string, string> {
  const kept = ["CI", "CHROMIUM", MANY_ROUNDS].map((name) => [name, process.env[name]]);
  return Object.fromEntries(kept.filter(([, value]) => value !== undefined));
}

/** As bun's summary has it. */
function countOf(lines: readonly string[], what: string): number {
  const summary = new RegExp(`^ *(\\d+) ${what}$`);
  return Number(lines.map((line) => summary.exec(line)?.[1]).findLast((count) => count !== undefined) ?? 0);
}

function endOf({ signalCode }: Bun.Subprocess): string[] {
  return signalCode === null ? [] : [`The process was ended by ${signalCode}.`];
}

const NOISE =
  /^\s*$|^bun test v|^\((pass|skip)\)|^test\/\S+:$|^ *\d+ (pass|fail|skip|errors?|expect\(\) calls)$|^Ran \d+ test/;
