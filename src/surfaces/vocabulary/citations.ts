import { asObject } from "../json/json.ts";
import type { Citation } from "./answer-events.ts";

/** OpenAI's `url_citation`, flat as Responses has it or in a member of that name as chat does; null for another kind. */
export function readCitation(annotation: unknown): Citation | null {
  const given = asObject(annotation);
  if (given?.type !== "url_citation") return null;
  const { url, title, start_index: start, end_index: end } = asObject(given.url_citation) ?? given;
  if (typeof url !== "string") return null;
  return { url, title: typeof title === "string" ? title : "", start: indexOf(start), end: indexOf(end) };
}

const indexOf = (index: unknown): number =>
  typeof index === "number" && Number.isInteger(index) ? index : 0;

export const citationOf = ({ url, title, start, end }: Citation, offset = 0) => ({
  start_index: start + offset,
  end_index: end + offset,
  url,
  title,
});
