import type { Mutant } from "./mutant.ts";

const STEP = "src/rails/x402/next-step.ts";
const RAIL = "src/rails/x402/x402.ts";
const FOLD = "src/rails/stripe/card-fold.ts";
const CARD = "src/rails/stripe/card-rail.ts";

/** What `sim:payments` has to notice. */
export const PAYMENT_MUTANTS: readonly Mutant[] = [
  {
    breaks: "a payment is credited in any state that it is in, again too",
    file: STEP,
    edits: [
      [
        '  if (payment.state === "credited") return { kind: "write", change: { transaction, lookAt } };\n',
        "",
      ],
    ],
  },
  {
    breaks: "a credited payment is not watched to finality",
    file: STEP,
    edits: [["const lookAt = isFinal ? null : later;", "const lookAt = null;"]],
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
  {
    breaks: "a payment fails as soon as its authorization has run out, before that is final",
    file: STEP,
    edits: [["  if (head.finalizedTime >= endS && isUnusedAtFinality) {", "  if (head.time >= endS) {"]],
  },
  {
    breaks: "a node that is behind is believed that a transfer was never made",
    file: RAIL,
    edits: [["(await chain.unusedAt(order.authorization, head.finalized))", "true"]],
  },
  {
    breaks: "a gateway waits for a payment that another one has seen end",
    file: RAIL,
    edits: [["for (const id of [...this.underWay.values()]) this.note(", "for (const id of []) this.note("]],
  },
  {
    breaks: "what a reorganisation undid is taken back under another key each time",
    file: RAIL,
    edits: [
      [
        'const idempotencyKey = paymentKey(id, "reorg");',
        'const idempotencyKey = paymentKey(id, "reorg") + this.deps.clock.elapsedMs();',
      ],
    ],
  },
  {
    breaks: "what a card's refund or dispute takes is taken under another key each time",
    file: CARD,
    edits: [
      [
        "idempotencyKey: paymentKey(id, purpose),",
        "idempotencyKey: paymentKey(id, purpose) + newId('pay', this.deps.random),",
      ],
    ],
  },
  {
    breaks: "a debit that found nothing takes what is there when it is repeated",
    file: "src/ledger/credit.ts",
    edits: [
      ['if (typeof wanted === "object") return', 'if (typeof wanted === "object" && available > 0) return'],
    ],
  },
  {
    breaks: "a dispute takes what a refund has found to be spent",
    file: FOLD,
    edits: [["    const upTo = toTakeBack(payment);\n", "    const upTo = payment.credited;\n"]],
  },
  {
    breaks: "a dispute that is won gives nothing back",
    file: FOLD,
    edits: [["...(taken === 0 ?", "...(taken >= 0 ?"]],
  },
  {
    breaks: "a dispute that is won lifts the suspension for another one too",
    file: CARD,
    edits: [
      ["if (await this.isDisputed(balance)) return;", "if (balance === null) return;"],
      [
        "if (await this.isDisputed(balance)) await this.deps.suspend",
        "if (balance === null) await this.deps.suspend",
      ],
    ],
  },
  {
    breaks: "what a dispute that is won has taken is lost where there is another",
    file: FOLD,
    edits: [["taken: other.taken! + taken!,", "taken: other.taken!,"]],
  },
  {
    breaks: "a refund of the operator is not written down before the money goes back",
    file: CARD,
    edits: [["returning: null }), debited };", "returning: null }) };"]],
  },
];
