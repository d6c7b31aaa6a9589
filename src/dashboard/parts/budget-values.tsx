import { useState } from "preact/hooks";
import type { BudgetAnswer } from "../../api/budgets.ts";
import { roughUsd } from "../format.ts";
import { useGet } from "../resource.ts";
import { Button } from "./button.tsx";
import { Meter } from "./meter.tsx";
import { Problem } from "./page.tsx";

/** What a budget's values spent, of which each has the cap for itself; looked up once somebody asks. */
export function BudgetValues({ of }: { of: BudgetAnswer }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <p class="soft small">
        {roughUsd(of.used_usd)} used by all values, {roughUsd(of.cap_usd)} at most by each
      </p>
      {isOpen ? (
        <Values of={of} />
      ) : (
        <Button label="Show who spent most" about={of.name} variant="link" onClick={() => setIsOpen(true)} />
      )}
    </>
  );
}

function Values({ of }: { of: BudgetAnswer }) {
  const { data, error } = useGet<BudgetAnswer>(`v1/budgets/${encodeURIComponent(of.name)}`);
  if (data === null) return <Problem error={error} />;
  const { values = [], cap_usd } = data;
  if (values.length === 0) return <p class="soft small">Nothing was spent yet.</p>;
  return (
    <>
      {values.slice(0, MAX_SHOWN).map(({ value, used_usd }) => (
        <Meter key={value} label={value} used={used_usd} of={NOTHING_HELD} cap={cap_usd} />
      ))}
      {values.length > MAX_SHOWN && <p class="soft small">And others, who spent less.</p>}
    </>
  );
}

const MAX_SHOWN = 10;
/** What each value holds is not looked up. */
const NOTHING_HELD = { held_usd: 0, held_at: "all_processes" } as const;
