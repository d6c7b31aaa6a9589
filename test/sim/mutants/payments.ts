import { type Mutant, mutantsOf } from "./mutant.ts";

/** What `sim:payments` has to notice. */
export const PAYMENT_MUTANTS: readonly Mutant[] = [
  ...mutantsOf("src/payments/rails/x402/next-step.ts", {
    "a payment is credited in any state that it is in, again too": [
      '  if (payment.state === "credited") return write({ transaction, nextPollAt });\n',
      "",
    ],
    "a credited payment is not watched to finality": [
      "const nextPollAt = isFinal ? null : later;",
      "const nextPollAt = null;",
    ],
    "a transfer that a reorganisation undid stays credited": [
      '    if (state === "credited")',
      "    if (false)",
    ],
  }),
  ...mutantsOf("src/payments/rails/x402/x402.ts", {
    "one that was not needed is not watched": [
      'state: "unused", reason, nextPollAt: this.transfers.later() }',
      'state: "unused", reason, nextPollAt: null }',
    ],
    "an authorization that is known is a new payment": [
      "const external = externalOf(signed);",
      "const external = externalOf(signed) + this.deps.clock.elapsedMs();",
    ],
  }),
  ...mutantsOf("src/payments/rails/x402/next-step.ts", {
    "a payment fails as soon as its authorization has run out, before that is final": [
      "  if (head.finalizedTime >= endS && isUnusedAtFinality) {",
      "  if (head.time >= endS) {",
    ],
  }),
  ...mutantsOf("src/payments/rails/x402/transfers.ts", {
    "a node that is behind is believed that a transfer was never made": [
      "(await chain.unusedAt(order.authorization, head.finalized))",
      "true",
    ],
    "an order that is recorded is answered with the error that came after": [
      ".begin(payment, network).catch((error) => this.interrupted(payment, error))",
      ".begin(payment, network)",
    ],
    "what is on the chain is credited, whichever sender carried it out": [
      "return sent.includes(transaction) || settler.hasSent(sender, isAnswerLost);",
      "return true || sent || settler || sender || isAnswerLost || transaction;",
    ],
    "a transaction is not ours where the facilitator's answer was lost": [
      "return sent.includes(transaction) || settler.hasSent(sender, isAnswerLost);",
      "return sent.includes(transaction) || settler.hasSent(sender, isAnswerLost && false);",
    ],
    "what a reorganisation undid is taken back under another key each time": [
      'const idempotencyKey = paymentKey(id, "reorg");',
      'const idempotencyKey = paymentKey(id, "reorg") + this.deps.clock.elapsedMs();',
    ],
  }),
];
