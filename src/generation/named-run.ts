import { type Refusal, refused } from "../errors/refusal.ts";
import { invalidRun, RUN_HEADER, type RunSpec, readRunSpec } from "../keys/run.ts";
import { BodyChanges } from "../surfaces/body-changes.ts";
import { asObject } from "../surfaces/json.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";

/** The run that a request names, in its header or in `metadata`; null where it names none. */
export function namedRun(
  headers: Headers,
  { json }: Pick<GenerationRequest, "json">,
): NamedRun | Refusal | null {
  const member = memberOf(json);
  const named = headers.get(RUN_HEADER) ?? member;
  if (named === undefined) return null;
  const spec = typeof named === "string" ? readRunSpec(named) : invalidRun("must be text");
  return refused(spec) ? spec : { spec, isMember: member !== undefined };
}

/** The body without the member, which hosts would take for a label, or refuse. */
export function withoutRun({ body, json }: Pick<GenerationRequest, "body" | "json">): Uint8Array {
  const { [RUN_HEADER]: _, ...others } = asObject(json.metadata)!;
  const changes = new BodyChanges();
  changes.set("metadata", Object.keys(others).length === 0 ? null : JSON.stringify(others));
  return changes.applyTo(body);
}

export interface NamedRun {
  readonly spec: RunSpec;
  /** It stands in the body. */
  readonly isMember: boolean;
}

const memberOf = ({ metadata }: GenerationRequest["json"]): unknown =>
  metadata === undefined ? undefined : asObject(metadata)?.[RUN_HEADER];
