/** Why a command ends without success, in words for its operator. */
export class CommandFailure extends Error {
  override name = "Failure";

  constructor(
    readonly exitCode: ExitCode,
    message: string,
    /** What to do now, as a sentence; null where the message says it. */
    readonly next: string | null = null,
    /** What was asked for may have been done. */
    readonly inDoubt = false,
  ) {
    super(message);
  }
}

/** Scripts tell by it what kind of failure it was; `--help` lists them. */
export const EXIT = {
  ok: 0,
  /** What was examined is not in order: the books, the configuration, a host. */
  found: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The gateway refused. */
  refused: 3,
  /** The gateway could not be reached. */
  unreachable: 4,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
