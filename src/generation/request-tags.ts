import type { Holder } from "../customers/keys/keyring.ts";
import { RUN_HEADER } from "../customers/keys/run.ts";
import { invalidBodyTag, isTag, MAX_TAGS, readTags, type Tags } from "../customers/keys/tags.ts";
import { asObject } from "../surfaces/json/json.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { type Refusal, refused } from "../units/errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";

/**
 * The tags of a request: those of its header; those of `metadata`, where its key's policy says so; and who the client says
 * its end user is, where the policy or a budget of the key asks for it. The header goes before the body. Null: it has none.
 */
export function requestTags(
  headers: Headers,
  request: TaggedRequest,
  holder: Holder,
  pseudonymOf: UserPseudonym,
): Tags | Refusal | null {
  const ofHeader = readTags(headers);
  const { policy } = holder.key;
  if (refused(ofHeader) || (!policy && holder.budgets.length === 0)) return ofHeader;
  const ofMetadata = policy?.tags_from === "metadata" ? metadataTags(request) : null;
  if (refused(ofMetadata)) return ofMetadata;
  const tags = { ...ofMetadata, ...ofHeader };
  const user = Object.hasOwn(tags, USER) || !wantsUser(holder) ? null : userTag(request, holder, pseudonymOf);
  if (refused(user)) return user;
  const all = user === null ? tags : { ...tags, [USER]: user };
  const count = Object.keys(all).length;
  if (count > MAX_TAGS) return invalidBodyTag("metadata", `makes ${count} tags, more than ${MAX_TAGS}`);
  return count === 0 ? null : all;
}

export type TaggedRequest = Pick<GenerationRequest, "surface" | "json">;

/** Stands for an end user of a balance, so that nobody who sees receipts learns who it is. */
export type UserPseudonym = (balance: BalanceId, user: string) => string;

function metadataTags({ surface, json }: TaggedRequest): Tags | Refusal | null {
  const metadata = surface === "messages" ? null : asObject(json.metadata);
  if (metadata === null) return null;
  const tags: [string, string][] = [];
  for (const [name, value] of Object.entries(metadata)) {
    if (name === RUN_HEADER) continue;
    if (typeof value !== "string" || !isTag(name, value)) return invalidBodyTag(`metadata.${name}`);
    tags.push([name, value]);
  }
  return Object.fromEntries(tags);
}

const wantsUser = ({ key: { policy }, budgets }: Holder): boolean =>
  policy?.tags_from !== undefined ||
  policy?.user_tag !== undefined ||
  budgets.some(({ perTag }) => perTag === USER);

function userTag(
  request: TaggedRequest,
  { key }: Holder,
  pseudonymOf: UserPseudonym,
): string | Refusal | null {
  const [field, user] = userOf(request);
  if (typeof user !== "string" || user === "") return null;
  if (key.policy?.user_tag !== "plain") return pseudonymOf(key.balanceId, user);
  return isTag(USER, user) ? user : invalidBodyTag(field);
}

/** Where each language has its clients say who the end user is. */
function userOf({ surface, json }: TaggedRequest): [field: string, user: unknown] {
  if (surface === "messages") return ["metadata.user_id", asObject(json.metadata)?.user_id];
  return json.safety_identifier === undefined || json.safety_identifier === null
    ? ["user", json.user]
    : ["safety_identifier", json.safety_identifier];
}

const USER = "user";
