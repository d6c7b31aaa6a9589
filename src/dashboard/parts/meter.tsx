import { roughUsd } from "../format.ts";

/** How much of a cap is used, and how much open requests hold of it now. */
export function Meter({
  label,
  used,
  held,
  cap,
}: {
  label: string;
  used: number;
  held: number;
  cap: number | null;
}) {
  if (cap === null) {
    return (
      <div class="meter">
        <div class="meter-words">
          <span>{label}</span>
          <span class="soft">{roughUsd(used)} used, no cap</span>
        </div>
      </div>
    );
  }
  const share = (amount: number) => (cap === 0 ? 100 : Math.min(100, (amount / cap) * 100));
  const full = share(used + held) >= 90;
  return (
    <div class="meter">
      <div class="meter-words">
        <span>{label}</span>
        <span class="soft">
          {roughUsd(used)} of {roughUsd(cap)}
          {held > 0 && <span class="held"> · {roughUsd(held)} held now</span>}
        </span>
      </div>
      <div class={full ? "bar full" : "bar"} aria-hidden="true">
        <i style={{ width: `${share(used)}%` }} />
        <i class="bar-held" style={{ width: `${Math.min(share(held), 100 - share(used))}%` }} />
      </div>
    </div>
  );
}
