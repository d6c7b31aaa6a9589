import { type AttemptRecord, LOST_HEDGE } from "../ledger/receipt.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { Observation } from "../routing/health.ts";
import type { BalanceId } from "../units/id.ts";
import { answerOf, type HostAttemptOutcome, readOf } from "./attempt-outcome.ts";
import { nativeFallbackTries } from "./native-fallback-answer.ts";

/** What a receipt shows of an attempt: a row, or one for each model that the host ran. */
export function recordsOf(
  outcome: HostAttemptOutcome,
  candidate: Candidate,
  ms: number,
  span: AttemptRecord["span"] | null,
): readonly AttemptRecord[] {
  const answer = answerOf(outcome);
  const record: AttemptRecord = {
    host: candidate.route.host.id,
    model: candidate.model.id,
    outcome: outcome.kind,
    ms,
    detail: detailOf(outcome),
    ...("status" in outcome ? { status: outcome.status } : null),
    ...("fault" in outcome ? { fault: outcome.fault } : null),
    ...(outcome.kind === "declined" ? { tokens: readOf(outcome.answer).usage } : null),
    ...(span && { span }),
  };
  return answer === null || answer.chain === null
    ? [record]
    : nativeFallbackTries(record, answer.chain, readOf(answer));
}

/** What routing learns from an attempt about its host. */
export function observationOf(
  outcome: HostAttemptOutcome,
  ms: number,
  promptTokens: number,
  by: BalanceId,
): Observation {
  switch (outcome.kind) {
    case "opened":
      // How long a whole answer takes says nothing about first tokens.
      return { kind: "served", firstTokenMs: outcome.isWhole ? null : ms, promptTokens, by };
    case "answered":
      return { kind: "served", firstTokenMs: null, promptTokens, by };
    // A refusal, a host's verdict on a request, a client that leaves, and a faster host say nothing about the
    // host's health.
    case "declined":
    case "rejected":
    case "abandoned":
    case LOST_HEDGE:
      return { kind: "nothing" };
    default: {
      if (outcome.hasOtherKey === true) return { kind: "nothing" };
      const { wholeHost = false, restMs = null, certain = outcome.kind === "unreachable" } = outcome;
      return { kind: "failed", wholeHost, restMs, by, doubtful: !certain, detail: outcome.message };
    }
  }
}

const detailOf = (outcome: HostAttemptOutcome): string | null => {
  if (outcome.kind === "opened" || outcome.kind === "answered") return null;
  if (outcome.kind === "declined") return "the model declined";
  // A host's sentence about a request may quote it, and receipts are stored. Only the client gets the
  // whole sentence.
  return outcome.kind === "rejected" ? `status ${outcome.status}: ${outcome.error.kept}` : outcome.message;
};
