import { type CommandContext, counted, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/** One thing that `doctor` examined. Only `fail` keeps a gateway from serving as it should. */
export interface Finding {
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  /** What was seen, with its number. */
  readonly detail: string;
  /** What to do about it; null when there is nothing to do. */
  readonly next: string | null;
}

export const ok = (check: string, detail: string): Finding => ({ check, state: "ok", detail, next: null });
export const warning = (check: string, detail: string, next: string): Finding => ({
  check,
  state: "warn",
  detail,
  next,
});
export const failing = (check: string, detail: string, next: string | null): Finding => ({
  check,
  state: "fail",
  detail,
  next,
});

/** `ok`, or a warning with the same detail. */
export const okIf = (isGood: boolean, check: string, detail: string, next: string): Finding =>
  isGood ? ok(check, detail) : warning(check, detail, next);

/** Names what failed of checks, of which each is another thing, and counts it of trials. */
export function showFindings(
  findings: readonly Finding[],
  kind: "check" | "trial",
  { json }: { readonly json: boolean },
  context: CommandContext,
): void {
  const failed = findings.filter(({ state }) => state === "fail");
  show(context, json, { ok: failed.length === 0, findings }, findings.flatMap(linesOf));
  if (failed.length === 0) return;
  const which = kind === "check" ? `: ${failed.map(({ check }) => check).join(", ")}` : "";
  throw new CommandFailure(
    EXIT.found,
    `${failed.length} of ${counted(findings.length, kind)} failed${which}`,
  );
}

const linesOf = ({ check, state, detail, next }: Finding): string[] => [
  `${MARKS[state]} ${check}: ${detail}`,
  ...(next === null ? [] : [`       ${next}`]),
];

const MARKS = { ok: "ok    ", warn: "warn  ", fail: "FAIL  " } as const;
