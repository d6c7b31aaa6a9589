import type { KeyAnswer } from "../../api/keys.ts";
import { atMost, roughUsd } from "../format.ts";

/** How much of a cap is used, and how much open requests hold of it now. */
export function Meter({ label, used, of, cap }: MeterProps) {
  const { held_usd: held } = of;
  const share = (amount: number) => (cap ? Math.min(100, (amount / cap) * 100) : 100);
  return (
    <div class="meter">
      <div class="meter-words">
        <span>{label}</span>
        <span class="soft">
          {roughUsd(used)} {cap === null ? "used, no cap" : `of ${roughUsd(cap)}`}
          {cap !== null && held > 0 && (
            <span class="held"> · {`${roughUsd(held)} held now${atMost(of)}`}</span>
          )}
        </span>
      </div>
      {cap !== null && (
        <div class={share(used + held) >= 90 ? "bar full" : "bar"} aria-hidden="true">
          <i style={{ width: `${share(used)}%` }} />
          <i class="bar-held" style={{ width: `${Math.min(share(held), 100 - share(used))}%` }} />
        </div>
      )}
    </div>
  );
}

/** What a key has used of its own caps. */
export const KeyMeters = ({ of }: { of: KeyAnswer }) => (
  <>
    <Meter label="Today" used={of.used_day_usd} of={of} cap={of.daily_limit_usd} />
    <Meter label="This month" used={of.used_month_usd} of={of} cap={of.monthly_limit_usd} />
  </>
);

interface MeterProps {
  readonly label: string;
  readonly used: number;
  readonly of: Pick<KeyAnswer, "held_usd" | "held_at">;
  readonly cap: number | null;
}
