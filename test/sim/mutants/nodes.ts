import { type Mutant, mutantsOf } from "./mutant.ts";

/** What `sim:nodes` has to notice, next to what free requests were seen to (decision 26). */
export const NODE_MUTANTS: readonly Mutant[] = mutantsOf("src/ledger/ledger.ts", {
  "a stream stops without asking other nodes for what they have left": [
    "const answer = this.requestGrants(\n      () => this.counters.limits(keyCounters, money, moneyAlone(request, amount)),\n      claim,\n    );",
    "const answer = keyCounters && money && request && amount ? Promise.resolve('short' as const) : null;",
  ],
  "a hold grows by what others may have left": [
    "const covered = moneyShortfall(money, request, amount, amount) === null;",
    "const covered = true;",
  ],
});

/** What `sim:leases` has to notice. */
export const LEASE_MUTANTS: readonly Mutant[] = mutantsOf("src/ledger/node-lease.ts", {
  "a lease is renewed before what was granted has gone back": [
    "await this.events.changed(changes);",
    "this.events.changed(changes).catch(() => {});",
  ],
  "a change counts as noticed although what was granted could not go back": [
    "await this.events.changed(changes);",
    "await this.events.changed(changes).catch(() => {});",
  ],
  "a lease runs from when its renewal came back": [
    "startedMs + LEASE_MS",
    "this.clock.elapsedMs() + LEASE_MS",
  ],
  "a lease is renewed for a node that has not noticed every change": [
    "if (changes.length === 0) {",
    "if (changes.length < 2) {",
  ],
});
