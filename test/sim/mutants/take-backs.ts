import { type Mutant, mutantsOf } from "./mutant.ts";

/** What `sim:take-backs` has to notice, at one process unless it says otherwise. */
export const TAKE_BACK_MUTANTS: readonly Mutant[] = [
  ...mutantsOf("src/payments/rails/stripe/refunds-and-disputes.ts", {
    "a dispute over a part takes all": ["sum + amount)", "sum + 1_000_000)"],
    "a dispute that is won gives nothing back": ['(outcome === "won" ? sum : sum + amount)', "sum + amount"],
    "a dispute that is lost gives everything back": ['outcome === "won" ? sum', 'outcome !== "open" ? sum'],
    "a refund during a dispute is not taken back": [
      "const gone = refunded + goneByDisputes(checkout);",
      "const gone = isDisputed ? goneByDisputes(checkout) : refunded;",
    ],
    "more than the credit is taken back": ["(Math.max(0, amount - nanoOf(", "((amount - nanoOf("],
    "the operator's refund is credited again before Stripe shows it": [
      "order.isAccepted && !isReturned(order, checkout)",
      "order.isAccepted",
    ],
    "what the operator could not refund, because it is disputed, is nobody's": [
      ' && disputes.every(({ outcome }) => outcome === "won");',
      ";",
    ],
  }),
  ...mutantsOf("src/payments/rails/stripe/card-steps.ts", {
    "nothing becomes of a refunded payment any more": [
      '"charged_back", "refunded", "held"',
      '"charged_back", "held"',
    ],
    "what is taken back is not counted against what is lost": [
      "(credited - lost) as NanoUsd;\n\nconst taking",
      "(credited - 0 * lost) as NanoUsd;\n\nconst taking",
    ],
    "the suspension stays when the dispute is won": [
      "isDisputed || suspension === null ? null :",
      "suspension !== undefined ? null :",
    ],
    "what came in another currency can be credited as ordered": [
      ": ZERO_USD;\n  const held =",
      ": amount;\n  const held =",
    ],
    "a payment of another amount is credited as ordered": [
      'checkout.total !== order.total || checkout.currency !== "usd"',
      "false",
    ],
  }),
  ...mutantsOf("src/payments/rails/stripe/card-rail.ts", {
    "what is taken back has another key each time": [
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a line of the source.
      "idempotencyKey: paymentKey(id, `back:${entry}`),",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a line of the source.
      "idempotencyKey: paymentKey(id, `back:${entry}`) + newId('pay', this.deps.random),",
    ],
    "an answer that a later one has overtaken is written": [
      "orderOf(payment).polls === orderOf(polled).polls;",
      "payment.id === polled.id;",
    ],
    "a dispute that is won lifts the suspension for another one too": [
      ["if (await this.isDisputed(balance)) return;", "if (balance === null) return;"],
      [
        "if (await this.isDisputed(balance)) await this.deps.suspend",
        "if (balance === null) await this.deps.suspend",
      ],
    ],
    "a refund of the operator is not written down before the money goes back": [
      "debited: amount, shouldBe",
      "shouldBe",
    ],
  }),
  ...mutantsOf("src/ledger/credit.ts", {
    "what requests hold is lost at once": [
      "Math.min(requested.upTo, unspent)",
      "Math.min(requested.upTo, available)",
    ],
    "what a claim has lost is known before the last request has ended": [
      "return held > 0 ? null :",
      "return held < 0 ? null :",
    ],
    "a claim loses nothing": ["(Math.min(short, claimed) as NanoUsd)", "ZERO_USD"],
    "nobody ends a claim that is not covered": ["return held > 0 ? null :", "return short > 0 ? null :"],
  }),
  ...mutantsOf("src/ledger/ledger.ts", {
    "a claim leaves room for the next request": [
      "    counter.hold(debit.amount);",
      "    counter.hold((debit.amount - debit.claimed) as NanoUsd);",
    ],
  }),
  ...mutantsOf("src/store/ledger/credits.ts", {
    "what a claim has lost is not credited in memory": [
      "committed: () => this.onCredited(balanceId, lost)",
      "committed: () => {}",
    ],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a line of the source.
    "a payment does not hear what was lost": ["lost = lost + ${lost},", "lost = lost,"],
  }),
  ...mutantsOf(
    "src/payments/rails/stripe/card-steps.ts",
    {
      "what was lost is credited a second time": ["const found = Math.min(more, lost);", "const found = 0;"],
    },
    ["--payments", "1"],
  ),
  ...mutantsOf(
    "src/ledger/authority.ts",
    {
      "what a node's requests give back is its to spend again": [
        "Math.max(0, Math.min(granted, credited - elsewhere))",
        "granted",
      ],
    },
    ["--nodes", "2", "--payments", "5"],
  ),
];
