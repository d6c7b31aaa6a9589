/** One number that matters. `bound` says "at most" or "at least" where it is not exact. */
export const Figure = ({ label, value, hint, bound = "" }: FigureProps) => (
  <div class="card figure">
    <div class="soft small">{label}</div>
    <div class={value.length > LONG ? "figure-value long" : "figure-value"}>{value}</div>
    {bound !== "" && <div class="soft small">{bound.trim()}</div>}
    {hint !== undefined && <div class="soft small">{hint}</div>}
  </div>
);

interface FigureProps {
  readonly label: string;
  readonly value: string;
  readonly hint?: string;
  readonly bound?: string;
}

/** An amount below a cent has up to twelve characters, which would break in two. */
const LONG = 9;
