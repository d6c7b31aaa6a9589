import type { Key } from "../customers/keys/key.ts";
import { invalidRun, isSameLimits, RUN_HEADER, type RunSpec, readRunSpec } from "../customers/keys/run.ts";
import { type AgentRun, MAX_RUNS, MAX_UNPAID_RUNS } from "../customers/keys/runs.ts";
import { asObject } from "../surfaces/json/json.ts";
import { BodyChanges } from "../surfaces/request/body-changes.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { type Refusal, refused } from "../units/errors/refusal.ts";
import type { GenerationCall } from "./answer.ts";
import type { GenerationDeps } from "./deps.ts";
import { tooMuchUnpaid } from "./refusals.ts";

/** The run that a request names, in its header or in `metadata`; null where it names none. */
export function namedRun(
  headers: Headers,
  { json }: Pick<GenerationRequest, "json">,
): NamedRun | Refusal | null {
  const metadata = asObject(json.metadata);
  const member = metadata?.[RUN_HEADER];
  const inBody = member === undefined ? null : readSpec(member);
  if (refused(inBody)) return inBody;
  const header = headers.get(RUN_HEADER);
  const inHeader = header === null ? null : readSpec(header);
  if (refused(inHeader)) return inHeader;
  if (inHeader !== null && inBody !== null && !isSameSpec(inHeader, inBody))
    return invalidRun("is not the same in the header and in `metadata`");
  // The client's own label, which hosts see; yet under which of two runs it spends is not for the gateway to guess.
  if (inHeader !== null && typeof metadata?.run === "string" && metadata.run !== inHeader.name)
    return invalidRun("names another run than `metadata.run`");
  const spec = inHeader ?? inBody;
  return spec === null ? null : { spec, isMember: inBody !== null };
}

/** At once where the run is remembered. */
export const joinNamedRun = (
  { spec }: NamedRun,
  { balanceId: balance, rotationId: by }: Pick<Key, "balanceId" | "rotationId">,
  call: GenerationCall,
  { runs, clock, spendable, unpaidRequests }: GenerationDeps,
): AgentRun | Promise<AgentRun | Refusal> =>
  runs.join(balance, { spec, by, at: clock.now() }, async () => {
    if ((await spendable.of(balance)) > 0) return MAX_RUNS;
    const waitS = unpaidRequests.waitS(balance, () => call.blocks(), { bytes: 0, writes: true });
    return waitS === null ? MAX_UNPAID_RUNS : tooMuchUnpaid(waitS);
  });

const readSpec = (named: unknown): RunSpec | Refusal =>
  typeof named === "string" ? readRunSpec(named) : invalidRun("must be text");

const isSameSpec = (one: RunSpec, other: RunSpec): boolean =>
  one.name === other.name && isSameLimits(one, other);

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
