import type { Mutant } from "./mutant.ts";

/** What `sim:nodes` has to notice of leases, beside what the free requests of its grants were seen to (decision 26). */
export const LEASE_MUTANTS: readonly Mutant[] = [
  {
    breaks: "a lease is renewed before what was granted has gone back",
    file: "src/ledger/membership.ts",
    edits: [["await this.events.changed(changes);", "this.events.changed(changes).catch(() => {});"]],
  },
  {
    breaks: "a change counts as noticed although what was granted could not go back",
    file: "src/ledger/membership.ts",
    edits: [["await this.events.changed(changes);", "await this.events.changed(changes).catch(() => {});"]],
  },
  {
    breaks: "a lease runs from when its renewal came back",
    file: "src/ledger/membership.ts",
    edits: [["askedMs + LEASE_MS", "this.clock.elapsedMs() + LEASE_MS"]],
  },
  {
    breaks: "a lease is renewed for a node that has not noticed every change",
    file: "src/ledger/membership.ts",
    edits: [["if (changes.length === 0) {", "if (changes.length < 2) {"]],
  },
];
