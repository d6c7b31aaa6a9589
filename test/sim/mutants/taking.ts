import { type Mutant, mutantsOf } from "./mutant.ts";

/** What `sim:taking` has to notice, at one node unless it says otherwise. */
export const TAKING_MUTANTS: readonly Mutant[] = [
  ...mutantsOf("src/ledger/ledger.ts", {
    "a request that waited is admitted by its key as it was": [
      "    if (!this.isCurrent(request)) return KEY_CHANGED;\n",
      "",
    ],
    "extensions use the limits of admission": [
      "reservation.request = { ...request, key, budgets };",
      "reservation.request = { ...request };",
    ],
    "a revoked, expired or suspended key grows": [
      "if (holder === null || holder === undefined) return false;",
      "if (holder === undefined) return false;\n    if (holder === null) return true;",
    ],
    "what is being read grows by what was known": [
      "if (holder === null || holder === undefined) return false;",
      "if (holder === null) return false;\n    if (holder === undefined) return true;",
    ],
    "a key that was moved grows on its old budget": [
      "if (money.drawsFrom(budgets, tags)) return true;",
      "return true;",
    ],
  }),
  ...mutantsOf("src/ledger/reservation.ts", {
    "growth on a new budget is not held there": ["const fresh = [...grows].map(", "const fresh = [].map("],
    "growth is held on the budget that was left": [
      ["      return { ...part, to: held };", "      return part;"],
      ["({ counter, from: ZERO_USD, to: held })", "({ counter, from: ZERO_USD, to: null })"],
    ],
  }),
  ...mutantsOf("src/ledger/record.ts", {
    "the whole charge counts on every budget": [
      "Math.max(0, Math.min(amount, to ?? amount) - from) as NanoUsd",
      "(from === to ? from : amount)",
    ],
  }),
  ...mutantsOf("src/ledger/reservation.ts", {
    "the end does not say what parts count": [
      "parts.length === 0 ? undefined : chargedParts(parts, charged)",
      "undefined",
    ],
  }),
  ...mutantsOf("src/ledger/ledger.ts", {
    "a move to another budget is not journaled": [
      "      reservation.regroup();\n      this.journal.append(holdRecord(reservation));\n",
      "      reservation.regroup();\n",
    ],
  }),
  ...mutantsOf("src/ledger/reservation.ts", {
    "a hold on a budget that was left is journaled whole": [
      [
        "  amount: held,\n  counters: counters.ids,",
        "  amount: held,\n  counters: [...counters.ids, ...parts.map(({ counter }) => counter.id)],",
      ],
      ["    parts.length === 0 ? undefined : parts.map(", "    parts.length >= 0 ? undefined : parts.map("],
    ],
  }),
  ...mutantsOf("src/ledger/counter.ts", {
    "only the present window of a budget is counted": [
      "WINDOW_KINDS.map((kind) => [",
      "[window].map((kind) => [",
    ],
    "the cap binds the day's window, whatever it was set to": [
      "kind === window ? cap",
      'kind === "day" ? cap',
    ],
  }),
  ...mutantsOf("src/ledger/ledger.ts", {
    "the last growth, at the end, looks at no limit": [
      "if (beyond > 0) this.extend(reservation, beyond);",
      "if (beyond > 0) reservation.hold((reservation.held + beyond) as NanoUsd);",
    ],
    "nothing grows once anything has changed": [
      "reservation.request = { ...request, key, budgets };",
      "return false;",
    ],
  }),
  ...mutantsOf("src/ledger/reservation.ts", {
    "what a shrunk hold gave back of a left budget is taken again": [
      "this.parts = this.parts.map((part) => cut(part, held));",
      "{}",
    ],
    "a growth is not held on the month": [
      "    for (const counter of this.counters.all) counter.hold((held - this.held) as NanoUsd);",
      '    for (const counter of this.counters.all)\n      if (!counter.id.startsWith("month:")) counter.hold((held - this.held) as NanoUsd);',
    ],
  }),
  ...mutantsOf(
    "src/ledger/ledger.ts",
    {
      "a node without a lease grows": [
        "    if (this.grants?.usable() === false) return false;\n    const { request, money } = reservation;",
        "    const { request, money } = reservation;",
      ],
    },
    ["--nodes", "5"],
  ),
  ...mutantsOf("src/ledger/ledger.ts", {
    "a run's calls are not limited": ["    if (tooMany !== null) return tooMany;\n", ""],
    "nobody reads the limits of a run that a stream needs": [
      "    if (request.run?.limits === null) void request.run.reread();\n",
      "",
    ],
  }),
  ...mutantsOf("src/ledger/shortfall.ts", {
    "a run's cap binds nobody": ["const ofRun = run === null ? null :", "const ofRun = true ? null :"],
  }),
  ...mutantsOf("src/ledger/key-counters.ts", {
    "a stream of a run grows outside of it once its key has changed": [
      "budgets, caps, this.run);",
      "budgets, caps);",
    ],
  }),
  ...mutantsOf("src/customers/keys/runs.ts", {
    "a run that was tightened keeps the limits that it had": [
      "const last = revision > known.revision ? { cap, calls } : stricter(known.last, { cap, calls });",
      "const { last } = known;",
    ],
    "requests that were open when everything was forgotten keep what their run was limited to": [
      ["for (const run of this.known.values()) run.forget();", "this.known.clear();"],
      ["      this.remember(run);\n", ""],
    ],
  }),
];
