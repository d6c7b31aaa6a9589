import { type Mutant, mutantsOf } from "./mutant.ts";

/** What `sim:holds` has to notice. */
export const HOLD_MUTANTS: readonly Mutant[] = [
  ...mutantsOf("src/ledger/ledger.ts", {
    "a hold grows although there is no room": ["    if (!covered) {", "    if (false) {"],
    "what is given back is given back twice": [
      "    reservation.hold(held);\n",
      "    for (const one of reservation.counters.all) one.hold((held - reservation.held) as NanoUsd);\n    reservation.hold(held);\n",
    ],
    "more is charged than is held": [
      "billable <= held ? billable : (end.within?.(held) ?? held)",
      "billable",
    ],
  }),
  ...mutantsOf("src/ledger/shortfall.ts", {
    "the worst case need not fit": ["spent + worst <= limit && counter.room(limit)", "counter.room(limit)"],
    "only the worst case has to fit": [" && counter.room(limit) >= amount", ""],
  }),
  ...mutantsOf("src/generation/stream/running-stream.ts", {
    "silence does not count": ["ms > QUIET_MS ? tokensIn(ms, this.pace) : 0", "0 * ms"],
    "thoughts are forgotten when words come": ["      this.unseen += this.silently(nowMs);\n", ""],
    "words that the host has reported are counted against it": ["    this.count?.reported();\n", ""],
    "words do not count": ["const { seen } = this;", "const seen = 0;"],
    "a host that tells of more than its model writes is held for less": [
      "const reported = usage.output + this.judge.text.estimateSinceReport;",
      "const reported = Math.min(usage.output + this.judge.text.estimateSinceReport, longest);",
    ],
    "what a host says that it thought is not believed": [
      "    this.unseen = Math.max(0, Math.min(usage.output, longest) - this.seen);\n",
      "",
    ],
  }),
  ...mutantsOf("src/generation/hold.ts", {
    "nobody looks at a hold while its stream is silent": [
      "|| !this.grows ? Infinity : this.stream.dueMs",
      "|| !this.grows ? Infinity : Infinity",
    ],
    "a stream goes on although its hold cannot grow": [
      "        return written < this.output;",
      "        return true;",
    ],
    "a stream stops although a small step would fit": [
      "else if (this.step > leastStepTokens) this.step /= 2;",
      "else if (this.step > stepTokens) this.step /= 2;",
    ],
    "growth that was refused counts as held": [
      "else if (this.step > leastStepTokens) this.step /= 2;",
      "else if (this.step > leastStepTokens) this.output += step / 2;",
    ],
    "a host that says zero of its prompt is believed": [
      "tokens >= request.promptEstimate / MIN_SHARE && ",
      "",
    ],
    "giving back of the prompt gives back the answer too": [
      "(cost + worstCase(NO_PROMPT, output, rates))",
      "cost",
    ],
    "a prompt is held at a tenth of its bound": [
      "Math.min(tokens, this.bound)",
      "Math.min(tokens, this.bound / 10)",
    ],
    "a prompt is held at the price of an empty one": [
      "const rates = reachedRates(this.price, bound);",
      "const rates = reachedRates(this.price, 0);",
    ],
    "an answer is held at the price before the step": [
      "    this.rates = rates;\n",
      "    this.rates = reachedRates(this.price, 0);\n",
    ],
  }),
  ...mutantsOf("src/generation/reservation-size.ts", {
    "a request is admitted at the price before the step": [
      "const rates = reachedRates(price, bound);",
      "const rates = reachedRates(price, 0);",
    ],
  }),
  ...mutantsOf("src/generation/prompt-count.ts", {
    "a prompt is held at a tenth of its count": ["Math.ceil(text * COUNT_MARGIN)", "Math.ceil(text / 10)"],
    "a count stands for other vocabularies as it is": ["Math.ceil(text * COUNT_MARGIN)", "text"],
  }),
  ...mutantsOf("src/generation/expected-output.ts", {
    "less is held than learnt, without a least": [
      "Math.max(least, lately?.expected ?? 0)",
      "lately?.expected ?? least",
    ],
    "thoughts before the first token are not held": ["tokensIn(firstTokenMs, tokensPerSecond) + ", ""],
    "holds reckon with hosts of any speed": ["Math.min(measured, MAX_PACE)", "measured"],
    "an eighth of what an answer can come to need not be held": ["Math.ceil(longest / MAX_TO_ONE)", "0"],
  }),
  ...mutantsOf("src/generation/hold.ts", {
    "nothing is held ahead of need": ["Math.min(bound, written + ahead)", "Math.min(bound, written)"],
    "a hold grows beyond the longest answer": ["Math.max(this.longest, written))", "Infinity)"],
    "what is written beyond the longest answer is not held": [
      "Math.max(this.longest, written))",
      "this.longest)",
    ],
    "a step takes more than the worst case": ["Math.min(this.step, bound - this.output)", "this.step"],
  }),
  ...mutantsOf("src/generation/admission.ts", {
    "a request is refused whose prompt was not counted": [
      "const second = counted.worst < sized.worst ? await take(admission, counted, deps) : first;",
      "const second = first;",
    ],
  }),
  ...mutantsOf("src/generation/reservation-size.ts", {
    "the whole ceiling is held of every stream": [
      "if (!candidates.every(isStoppable)) return ceiling;",
      "return ceiling;",
    ],
  }),
  ...mutantsOf("src/routing/speed.ts", {
    "a burst tells how fast a host works unseen": ["if (ms >= MIN_SUSTAINED_MS) ", ""],
  }),
  ...mutantsOf("src/ledger/ledger.ts", {
    "a hold does not grow at its end": ["    if (beyond > 0) this.extend(reservation, beyond);\n", ""],
  }),
];
