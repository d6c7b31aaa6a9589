import { type Mutant, mutantsOf } from "./mutant.ts";

/** What `sim:payments` has to notice. */
export const PAYMENT_MUTANTS: readonly Mutant[] = [
  ...mutantsOf("src/rails/x402/next-step.ts", {
    "a payment is credited in any state that it is in, again too": [
      '  if (payment.state === "credited") return { kind: "write", change: { transaction, lookAt } };\n',
      "",
    ],
    "a credited payment is not watched to finality": [
      "const lookAt = isFinal ? null : later;",
      "const lookAt = null;",
    ],
    "a transfer that a reorganisation undid stays credited": [
      '    if (state === "credited")',
      "    if (false)",
    ],
  }),
  ...mutantsOf("src/rails/x402/x402.ts", {
    "one that was not needed is not watched": [
      'state: "unused", reason, lookAt: this.later() }',
      'state: "unused", reason, lookAt: null }',
    ],
    "an authorization that is known is a new payment": [
      "const external = externalOf(signed);",
      "const external = externalOf(signed) + this.deps.clock.elapsedMs();",
    ],
  }),
  ...mutantsOf("src/rails/x402/next-step.ts", {
    "a payment fails as soon as its authorization has run out, before that is final": [
      "  if (head.finalizedTime >= endS && isUnusedAtFinality) {",
      "  if (head.time >= endS) {",
    ],
  }),
  ...mutantsOf("src/rails/x402/x402.ts", {
    "a node that is behind is believed that a transfer was never made": [
      "(await chain.unusedAt(order.authorization, head.finalized))",
      "true",
    ],
    "a gateway waits for a payment that another one has seen end": [
      "for (const id of [...this.underWay.values()]) this.note(",
      "for (const id of []) this.note(",
    ],
    "what a reorganisation undid is taken back under another key each time": [
      'const idempotencyKey = paymentKey(id, "reorg");',
      'const idempotencyKey = paymentKey(id, "reorg") + this.deps.clock.elapsedMs();',
    ],
  }),
  ...mutantsOf("src/rails/stripe/card-rail.ts", {
    "what a card's refund or dispute takes is taken under another key each time": [
      "idempotencyKey: paymentKey(id, purpose),",
      "idempotencyKey: paymentKey(id, purpose) + newId('pay', this.deps.random),",
    ],
  }),
  ...mutantsOf("src/ledger/credit.ts", {
    "a debit that found nothing takes what is there when it is repeated": [
      'if (typeof wanted === "object") {',
      'if (typeof wanted === "object" && unspent > 0) {',
    ],
  }),
  ...mutantsOf("src/rails/stripe/card-fold.ts", {
    "a dispute takes what a refund has found to be spent": [
      "    const upTo = toTakeBack(payment);\n",
      "    const upTo = payment.credited;\n",
    ],
    "a dispute that is won gives nothing back": ["...(taken === 0 ?", "...(taken >= 0 ?"],
  }),
  ...mutantsOf("src/rails/stripe/card-rail.ts", {
    "a dispute that is won lifts the suspension for another one too": [
      ["if (await this.isDisputed(balance)) return;", "if (balance === null) return;"],
      [
        "if (await this.isDisputed(balance)) await this.deps.suspend",
        "if (balance === null) await this.deps.suspend",
      ],
    ],
  }),
  ...mutantsOf("src/rails/stripe/card-fold.ts", {
    "what a dispute that is won has taken is lost where there is another": [
      "taken: other.taken! + taken!,",
      "taken: other.taken!,",
    ],
  }),
  ...mutantsOf("src/rails/stripe/card-rail.ts", {
    "a refund of the operator is not written down before the money goes back": [
      "returning: null }), debited };",
      "returning: null }) };",
    ],
  }),
];
