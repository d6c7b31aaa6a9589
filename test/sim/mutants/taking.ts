import type { Mutant } from "./mutant.ts";

/** What `sim:taking` has to notice, at one node unless it says otherwise. */
export const TAKING_MUTANTS: readonly Mutant[] = [
  {
    breaks: "a request that waited is admitted by its key as it was",
    file: "src/ledger/ledger.ts",
    edits: [["    if (!this.isCurrent(want)) return KEY_CHANGED;\n", ""]],
  },
  {
    breaks: "extensions use the limits of admission",
    file: "src/ledger/ledger.ts",
    edits: [["reservation.want = { ...want, key, budgets };", "reservation.want = { ...want };"]],
  },
  {
    breaks: "a revoked, expired or suspended key grows",
    file: "src/ledger/ledger.ts",
    edits: [
      [
        "if (holder === null || holder === undefined) return false;",
        "if (holder === undefined) return false;\n    if (holder === null) return true;",
      ],
    ],
  },
  {
    breaks: "what is being read grows by what was known",
    file: "src/ledger/ledger.ts",
    edits: [
      [
        "if (holder === null || holder === undefined) return false;",
        "if (holder === null) return false;\n    if (holder === undefined) return true;",
      ],
    ],
  },
  {
    breaks: "a key that was moved grows on its old budget",
    file: "src/ledger/ledger.ts",
    edits: [["if (money.drawsFrom(budgets)) return true;", "return true;"]],
  },
  {
    breaks: "growth on a new budget is not held there",
    file: "src/ledger/reservation.ts",
    edits: [["const fresh = [...grows].map(", "const fresh = [].map("]],
  },
  {
    breaks: "growth is held on the budget that was left",
    file: "src/ledger/reservation.ts",
    edits: [
      ["      return { ...part, to: held };", "      return part;"],
      ["({ counter, from: ZERO_USD, to: held })", "({ counter, from: ZERO_USD, to: null })"],
    ],
  },
  {
    breaks: "the whole charge counts on every budget",
    file: "src/ledger/record.ts",
    edits: [
      ["Math.max(0, Math.min(amount, to ?? amount) - from) as NanoUsd", "(from === to ? from : amount)"],
    ],
  },
  {
    breaks: "the end does not say what parts count",
    file: "src/ledger/reservation.ts",
    edits: [["parts.length === 0 ? undefined : chargedParts(parts, charged)", "undefined"]],
  },
  {
    breaks: "a move to another budget is not journaled",
    file: "src/ledger/ledger.ts",
    edits: [
      [
        "      reservation.regroup();\n      this.journal.append(holdRecord(reservation));\n",
        "      reservation.regroup();\n",
      ],
    ],
  },
  {
    breaks: "a hold on a budget that was left is journaled whole",
    file: "src/ledger/reservation.ts",
    edits: [
      [
        "    amount: held,\n    counters: counters.ids,",
        "    amount: held,\n    counters: [...counters.ids, ...parts.map(({ counter }) => counter.id)],",
      ],
      ["    parts.length === 0\n      ? whole", "    parts.length >= 0\n      ? whole"],
    ],
  },
  {
    breaks: "only the present window of a budget is counted",
    file: "src/ledger/counter.ts",
    edits: [["WINDOW_KINDS.map((kind): [", "[window].map((kind): ["]],
  },
  {
    breaks: "the cap binds the day's window, whatever it was set to",
    file: "src/ledger/counter.ts",
    edits: [["kind === window ? cap", 'kind === "day" ? cap']],
  },
  {
    breaks: "the last growth, at the end, looks at no limit",
    file: "src/ledger/ledger.ts",
    edits: [
      [
        "if (beyond > 0) this.extend(reservation, beyond as NanoUsd);",
        "if (beyond > 0) reservation.hold((reservation.held + beyond) as NanoUsd);",
      ],
    ],
  },
  {
    breaks: "nothing grows once anything has changed",
    file: "src/ledger/ledger.ts",
    edits: [["reservation.want = { ...want, key, budgets };", "return false;"]],
  },
  {
    breaks: "what a shrunk hold gave back of a left budget is taken again",
    file: "src/ledger/reservation.ts",
    edits: [["this.parts = this.parts.map((part) => cut(part, held));", "{}"]],
  },
  {
    breaks: "a growth is not held on the month",
    file: "src/ledger/reservation.ts",
    edits: [
      [
        "    for (const counter of this.counters.all) counter.hold((held - this.held) as NanoUsd);",
        '    for (const counter of this.counters.all)\n      if (!counter.id.startsWith("month:")) counter.hold((held - this.held) as NanoUsd);',
      ],
    ],
  },
  {
    breaks: "a node without a lease grows",
    file: "src/ledger/ledger.ts",
    edits: [
      [
        "    if (this.grants?.usable() === false) return false;\n    const { want, money } = reservation;",
        "    const { want, money } = reservation;",
      ],
    ],
    options: ["--nodes", "5"],
  },
  {
    breaks: "a run's cap binds nobody",
    file: "src/ledger/ledger.ts",
    edits: [["const ofRun = run === null ? null :", "const ofRun = true ? null :"]],
  },
  {
    breaks: "a run's calls are not limited",
    file: "src/ledger/ledger.ts",
    edits: [["    if (tooMany !== null) return tooMany;\n", ""]],
  },
  {
    breaks: "nobody reads the limits of a run that a stream needs",
    file: "src/ledger/ledger.ts",
    edits: [["    if (want.run?.limits === null) want.run.look();\n", ""]],
  },
  {
    breaks: "a stream of a run grows outside of it once its key has changed",
    file: "src/ledger/key-counters.ts",
    edits: [["budgets, caps, this.run);", "budgets, caps);"]],
  },
  {
    breaks: "a run that was tightened keeps the limits that it had",
    file: "src/keys/runs.ts",
    edits: [["const last = stricter(this.known.last, { cap, calls });", "const { last } = this.known;"]],
  },
  {
    breaks: "requests that were open when everything was forgotten keep what their run was limited to",
    file: "src/keys/runs.ts",
    edits: [
      ["for (const run of this.known.values()) run.forget();", "this.known.clear();"],
      ["      this.remember(run);\n", ""],
    ],
  },
];
