/** One number that matters. */
export const Figure = ({ label, value, hint }: { label: string; value: string; hint?: string }) => (
  <div class="card figure">
    <div class="soft small">{label}</div>
    <div class={value.length > LONG ? "figure-value long" : "figure-value"}>{value}</div>
    {hint !== undefined && <div class="soft small">{hint}</div>}
  </div>
);

/** An amount below a cent has up to twelve characters, which would break in two. */
const LONG = 9;
