/** One number that matters. */
export const Figure = ({ label, value, hint }: { label: string; value: string; hint?: string }) => (
  <div class="card figure">
    <div class="soft small">{label}</div>
    <div class="figure-value">{value}</div>
    {hint !== undefined && <div class="soft small">{hint}</div>}
  </div>
);
