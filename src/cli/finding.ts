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

export const linesOf = ({ check, state, detail, next }: Finding): string[] => [
  `${MARKS[state]} ${check}: ${detail}`,
  ...(next === null ? [] : [`       ${next}`]),
];

const MARKS = { ok: "ok    ", warn: "warn  ", fail: "FAIL  " } as const;
