import { invalidField, type Refusal } from "../../units/errors/refusal.ts";
import type { Budget } from "./key.ts";

/** What a request is counted under besides its key: values by the names that its sender chose. */
export type Tags = Readonly<Record<string, string>>;

/** `customer=acme; feature=search` */
const TAGS_HEADER = "x-gateway-tags";

/** The tags that a request names; null where it names none. */
export function readTags(headers: Headers): Tags | Refusal | null {
  const text = headers.get(TAGS_HEADER);
  if (text === null) return null;
  const parts = text.split(";", MAX_TAGS + 1);
  if (parts.length > MAX_TAGS) return invalidTags(`has more than ${MAX_TAGS} tags`);
  const tags = new Map<string, string>();
  for (const part of parts) {
    const [, name, value] = TAG.exec(part.trim()) ?? [];
    if (name === undefined || value === undefined)
      return invalidTags(`must have the form \`${FORM}\`: ${BOUNDS}`);
    if (tags.has(name)) return invalidTags(`names \`${name}\` twice`);
    tags.set(name, value);
  }
  return Object.fromEntries(tags);
}

/** The name of a tag, as usage is asked for by it. */
export const TAG_NAME = "[a-z][a-z0-9_.-]{0,31}";
const TAG = new RegExp(`^(${TAG_NAME})=([!-:<-~]{1,64})$`);
export const MAX_TAGS = 8;
const FORM = "customer=acme; feature=search";
const BOUNDS =
  "names of 1 to 32 of `a-z 0-9 _ . -` that begin with a letter, and values of 1 to 64 visible ASCII characters other than `;`";

/** A request without a value has no cap of its own, and would be outside of all others'. */
export const missingTag = ({ name, perTag }: Budget): Refusal =>
  invalidField(
    TAGS_HEADER,
    `The key draws from budget \`${name}\`, which caps each value of the tag \`${perTag}\`: send it with each request, as in \`${TAGS_HEADER}: ${perTag}=alice\`.`,
  );

/** Whether a member of the body may be a tag. */
export const isTag = (name: string, value: string): boolean => TAG.test(`${name}=${value}`);

/** `field` would be a tag, which the policy of the request's key asks for. */
export const invalidBodyTag = (field: string, what = `is no tag: ${BOUNDS}`): Refusal =>
  invalidField(
    field,
    `\`${field}\` ${what}. Correct it, or have the owner of the balance change the \`policy\` of the key.`,
  );

const invalidTags = (what: string): Refusal =>
  invalidField(TAGS_HEADER, `\`${TAGS_HEADER}\` ${what}. Correct the header, or leave it out.`);
