import type { Mutant } from "./mutant.ts";

const STEP = "src/rails/x402/next-step.ts";
const RAIL = "src/rails/x402/x402.ts";

/** What `sim:payments` has to notice. */
export const PAYMENT_MUTANTS: readonly Mutant[] = [
  {
    breaks: "a payment is credited in any state that it is in, again too",
    file: STEP,
    edits: [
      [
        '  if (payment.state === "credited") return { kind: "write", change: { transaction, lookAt: later } };\n',
        "",
      ],
    ],
  },
  {
    breaks: "a credited payment is not watched to finality",
    file: STEP,
    edits: [["const later = isFinal ? null : epochMs(now + WATCH_MS);", "const later = null;"]],
  },
  {
    breaks: "a transfer that a reorganisation undid stays credited",
    file: STEP,
    edits: [['    if (state === "credited")', "    if (false)"]],
  },
  {
    breaks: "one that was not needed is not watched",
    file: RAIL,
    edits: [['state: "unused", reason, lookAt: this.later() }', 'state: "unused", reason, lookAt: null }']],
  },
  {
    breaks: "an authorization that is known is a new payment",
    file: RAIL,
    edits: [
      [
        "const external = externalOf(signed);",
        "const external = externalOf(signed) + this.deps.clock.elapsedMs();",
      ],
    ],
  },
];
