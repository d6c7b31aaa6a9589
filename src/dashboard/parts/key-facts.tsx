import type { ComponentChildren } from "preact";
import type { KeyAnswer } from "../../api/keys.ts";
import { count, moment, usd } from "../format.ts";
import { CopiedId } from "./copy-button.tsx";
import { listOf } from "./key-dialog.tsx";
import { KeyMeters } from "./meter.tsx";
import { type Fact, Facts } from "./page.tsx";

/** What a key has spent, and its facts. */
export const KeyCards = ({ of, facts, children }: KeyCardsProps) => (
  <div class="grid-2">
    <section class="card" aria-label="Use">
      <h2>Spending</h2>
      <KeyMeters of={of} />
      {children}
    </section>
    <section class="card" aria-label="Limits">
      <h2>Limits</h2>
      <Facts of={facts} />
    </section>
  </div>
);

interface KeyCardsProps {
  readonly of: KeyAnswer;
  readonly facts: readonly (Fact | null)[];
  /** Beneath what it has spent. */
  readonly children?: ComponentChildren;
}

/** What a key may do, and by which prices it is charged. */
export const keyFacts = (key: KeyAnswer): (Fact | null)[] => [
  ["Id", <CopiedId key="id" label="the key's id" value={key.id} />],
  ["Begins with", key.prefix, "mono"],
  ["Created", moment(key.created_at)],
  ["Expires", key.expires_at === null ? "never" : moment(key.expires_at)],
  ["Requests per minute", limitOf(key.rpm_limit, count)],
  ["Tokens per minute", limitOf(key.tpm_limit, count)],
  ["Spend per day", limitOf(key.daily_limit_usd, usd)],
  ["Spend per month", limitOf(key.monthly_limit_usd, usd)],
  ["Models", key.allowed_models === null ? "all" : key.allowed_models.join(", ")],
  ["Hosts", policyText(key.policy)],
  ["Budgets", key.budget === null ? "none" : listOf(key.budget).join(", ")],
  key.price_list === null ? null : ["Price list", key.price_list],
];

const limitOf = (limit: number | null, format: (limit: number) => string): string =>
  limit === null ? "no limit" : format(limit);

/** The hosts that a key's requests may go to. */
function policyText(policy: KeyAnswer["policy"]): string {
  if (policy === null) return "all";
  const { region, zdr, hosts, max_price } = policy;
  const rules = [
    hosts?.only && `only ${hosts.only.join(", ")}`,
    hosts?.ignore && `not ${hosts.ignore.join(", ")}`,
    region && `in ${region.join(", ")}`,
    zdr && "that keep no data",
    max_price?.prompt !== undefined && `input up to ${usd(max_price.prompt)} per million tokens`,
    max_price?.completion !== undefined && `output up to ${usd(max_price.completion)} per million tokens`,
  ].filter(Boolean);
  return rules.length === 0 ? "all" : rules.join("; ");
}
