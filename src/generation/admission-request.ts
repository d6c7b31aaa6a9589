import type { Budget, Key } from "../customers/keys/key.ts";
import type { AgentRun } from "../customers/keys/runs.ts";
import type { Tags } from "../customers/keys/tags.ts";
import type { Allowance } from "../ledger/reservation.ts";
import type { Plan } from "../routing/plan.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { ReceiptId } from "../units/id.ts";
import type { GenerationSettings } from "./deps.ts";
import type { PromptCount } from "./prompt-count.ts";

export interface AdmissionRequest {
  readonly receipt: ReceiptId;
  readonly key: Key;
  readonly budgets: readonly Budget[];
  /** What the plan's prices are of; null: the models' own. */
  readonly priceList: string | null;
  /** Null: none. */
  readonly tags: Tags | null;
  readonly run: AgentRun | null;
  readonly request: GenerationRequest;
  readonly prompt: PromptCount;
  readonly plan: Plan;
  /** Open Tier allowances that it draws on; empty on the paid tier. */
  readonly allowances: readonly Allowance[];
  readonly settings: Pick<
    GenerationSettings,
    "attempts" | "contact" | "dashboardUrl" | "defaultMaxOutputTokens" | "openTierRpm" | "sellsCredit"
  >;
}
