import type { Mutant } from "./mutant.ts";

/** What `sim:holds` has to notice. */
export const HOLD_MUTANTS: readonly Mutant[] = [
  {
    breaks: "a hold grows although there is no room",
    file: "src/ledger/ledger.ts",
    edits: [["    if (!covered) {", "    if (false) {"]],
  },
  {
    breaks: "what is given back is given back twice",
    file: "src/ledger/ledger.ts",
    edits: [
      [
        "    reservation.hold(held);\n",
        "    for (const one of reservation.counters.all) one.hold((held - reservation.held) as NanoUsd);\n    reservation.hold(held);\n",
      ],
    ],
  },
  {
    breaks: "more is charged than is held",
    file: "src/ledger/ledger.ts",
    edits: [["billable <= held ? billable : (end.within?.(held) ?? held)", "billable"]],
  },
  {
    breaks: "the worst case need not fit",
    file: "src/ledger/shortfall.ts",
    edits: [["spent + worst <= limit && counter.room(limit)", "counter.room(limit)"]],
  },
  {
    breaks: "only the worst case has to fit",
    file: "src/ledger/shortfall.ts",
    edits: [[" && counter.room(limit) >= amount", ""]],
  },
  {
    breaks: "silence does not count",
    file: "src/generation/hold.ts",
    edits: [["ms > QUIET_MS ? tokensIn(ms, this.pace) : 0", "0 * ms"]],
  },
  {
    breaks: "thoughts are forgotten when words come",
    file: "src/generation/hold.ts",
    edits: [["      this.unseen += this.silently(nowMs);\n", ""]],
  },
  {
    breaks: "words that the host has told of are counted against it",
    file: "src/generation/hold.ts",
    edits: [["    this.count?.reported();\n", ""]],
  },
  {
    breaks: "words do not count",
    file: "src/generation/hold.ts",
    edits: [["const { seen } = this;", "const seen = 0;"]],
  },
  {
    breaks: "nobody looks at a hold while its stream is silent",
    file: "src/generation/hold.ts",
    edits: [["|| !this.grows ? Infinity : this.stream.dueMs", "|| !this.grows ? Infinity : Infinity"]],
  },
  {
    breaks: "a stream goes on although its hold cannot grow",
    file: "src/generation/hold.ts",
    edits: [["        return written < this.output;", "        return true;"]],
  },
  {
    breaks: "a stream stops although a small step would fit",
    file: "src/generation/hold.ts",
    edits: [
      [
        "else if (this.step > leastStepTokens) this.step /= 2;",
        "else if (this.step > stepTokens) this.step /= 2;",
      ],
    ],
  },
  {
    breaks: "growth that was refused counts as held",
    file: "src/generation/hold.ts",
    edits: [
      [
        "else if (this.step > leastStepTokens) this.step /= 2;",
        "else if (this.step > leastStepTokens) this.output += step / 2;",
      ],
    ],
  },
  {
    breaks: "a host that says zero of its prompt is believed",
    file: "src/generation/hold.ts",
    edits: [["tokens >= request.promptEstimate / LEAST_SHARE && ", ""]],
  },
  {
    breaks: "giving back of the prompt gives back the answer too",
    file: "src/generation/hold.ts",
    edits: [["(this.promptCost + worstCase(NO_PROMPT, output, price))", "this.promptCost"]],
  },
  {
    breaks: "a prompt is held at a tenth of its bound",
    file: "src/generation/hold.ts",
    edits: [["Math.min(tokens, this.prompt.bound)", "Math.min(tokens, this.prompt.bound / 10)"]],
  },
  {
    breaks: "a prompt is held at a tenth of its count",
    file: "src/generation/prompt-count.ts",
    edits: [["Math.ceil(text * COUNT_MARGIN)", "Math.ceil(text / 10)"]],
  },
  {
    breaks: "a count stands for other vocabularies as it is",
    file: "src/generation/prompt-count.ts",
    edits: [["Math.ceil(text * COUNT_MARGIN)", "text"]],
  },
  {
    breaks: "less is held than learnt, without a least",
    file: "src/generation/expected-output.ts",
    edits: [["Math.max(least, lately?.expected ?? 0)", "lately?.expected ?? least"]],
  },
  {
    breaks: "thoughts before the first token are not held",
    file: "src/generation/expected-output.ts",
    edits: [["tokensIn(firstTokenMs, pace) + aheadOf", "aheadOf"]],
  },
  {
    breaks: "an eighth of what an answer can come to need not be held",
    file: "src/generation/expected-output.ts",
    edits: [["Math.ceil(longest / MOST_TO_ONE)", "0"]],
  },
  {
    breaks: "nothing is held ahead of need",
    file: "src/generation/hold.ts",
    edits: [["while (written + ahead > this.output", "while (written > this.output"]],
  },
  {
    breaks: "what a host says that it thought is not believed",
    file: "src/generation/hold.ts",
    edits: [["    this.unseen = Math.max(0, Math.min(usage.output, longest) - this.seen);\n", ""]],
  },
  {
    breaks: "a hold does not grow at its end",
    file: "src/ledger/ledger.ts",
    edits: [["    if (beyond > 0) this.extend(reservation, beyond as NanoUsd);\n", ""]],
  },
];
