import type { HeldAt } from "../../api/answers.ts";
import { oneProcess } from "../format.ts";

/** One number that matters. `of` says whose open requests it counts, where that may not be everybody's. */
export const Figure = ({ label, value, hint, of }: FigureProps) => (
  <div class="card figure">
    <div class="soft small">{label}</div>
    <div class={value.length > LONG ? "figure-value long" : "figure-value"}>{value}</div>
    {of?.held_at === "this_process" && <div class="soft small">{oneProcess(of).trim()}</div>}
    {hint !== undefined && <div class="soft small">{hint}</div>}
  </div>
);

interface FigureProps {
  readonly label: string;
  readonly value: string;
  readonly hint?: string;
  readonly of?: { readonly held_at: HeldAt };
}

/** An amount below a cent has up to twelve characters, which would break in two. */
const LONG = 9;
