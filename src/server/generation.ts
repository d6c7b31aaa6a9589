import { DeliveredCounts } from "../generation/delivered-counts.ts";
import type { GenerationDeps } from "../generation/deps.ts";
import { Repeats, type RepeatsDeps } from "../generation/idempotency.ts";
import { DeferredCounts, type PromptCountDeps } from "../generation/prompt-count.ts";
import { PromptSizes } from "../generation/prompt-sizes.ts";
import { KeptPrompts } from "../generation/recount.ts";
import { CountAllowance } from "../ledger/limits/count-allowance.ts";
import { pseudonyms } from "../routing/open-tier/open-tier.ts";
import { pairing, SURFACES } from "../surfaces/surfaces.ts";
import { errorObject } from "../units/errors/refusal.ts";
import { chanceOf } from "../units/random.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import type { Rooms } from "./rooms.ts";
import { PassedRepeats } from "./workers/passed-repeats.ts";
import { RepeatOwners } from "./workers/repeat-owners.ts";
import { workerIdentity } from "./workers/worker-identity.ts";

/** What a generation request passes through. */
export function generationDeps(rooms: Rooms, parts: GatewayParts): GenerationDeps {
  const { config: active, clock, random, books, counting, transport } = parts;
  const { freeRoutes, reporting } = rooms;
  const pseudonym = pseudonyms(parts.networkSecret);
  return {
    ...rooms,
    clock,
    random,
    ledger: books.ledger,
    journal: books.journal,
    transport,
    pairing,
    chance: chanceOf(random),
    tried({ route }, outcome, observation) {
      reporting.metrics.tried(route.host.id, outcome);
      if (!route.free) return;
      if (observation.kind === "served") freeRoutes.served(route);
      if (observation.kind === "failed")
        observation.wholeHost ? freeRoutes.doubt(route) : freeRoutes.failed(route);
    },
    delivered: deliveredCounts(parts),
    catalog: () => active.config.catalog,
    settings: () => active.generation,
    keyring: books.keyring,
    runs: books.runs,
    payments: rooms.payments.inline,
    userPseudonym: (balance, user) => pseudonym(`user ${balance} ${user}`),
    prompts: new KeptPrompts(),
    promptSizes: new PromptSizes(),
    counting: {
      ...promptCountDeps(rooms, parts),
      countAnswer: (texts, family) => counting.count(texts, family),
      countPrompt: (body, family) => counting.billedPrompt(body, family),
    },
  };
}

/** The ledger's checkpoints have the open streams counted. */
function deliveredCounts({ books, counting }: GatewayParts): DeliveredCounts {
  const delivered = new DeliveredCounts(books.ledger, (answers) => counting.countEach(answers));
  books.ledger.countDelivered = () => delivered.count();
  return delivered;
}

/** Requests and `count_tokens` have an allowance each. */
export const promptCountDeps = (
  { spendable }: Pick<Rooms, "spendable">,
  { counting, clock }: GatewayParts,
): PromptCountDeps => ({
  count: (what, { body }, turn) => counting.prompt(what, body, turn),
  readUnpaid: (work, turn) => counting.request(work, turn),
  credit: (balance) => spendable.of(balance),
  allowance: new CountAllowance(clock),
  later: new DeferredCounts(),
});

/** Requests that name an `Idempotency-Key`; `passed` are those of other workers, and null where there are none. */
export function openRepeats(
  generate: RepeatsDeps["generate"],
  rooms: Rooms,
  { config: active, clock, books, env }: GatewayParts,
): { readonly repeats: Repeats; readonly passed: PassedRepeats | null; readonly listening?: Promise<void> } {
  const { deadlines, onFault } = rooms;
  const shared = { ...rooms, clock, keyring: books.keyring, generate };
  const worker = workerIdentity(env);
  if (worker === null) return { repeats: new Repeats({ ...shared, peers: null }), passed: null };
  const peers = new RepeatOwners(worker, {
    clock,
    deadlines,
    silenceMs: () => active.generation.totalMs + SETTLED_MS,
    brokenOff: (surface, why) => SURFACES[surface].brokenOff(errorObject(why, active.generation.baseUrl)),
  });
  const repeats = new Repeats({ ...shared, peers });
  const passed = new PassedRepeats(active.config.bodyMemoryBytes, {
    clock,
    deadlines,
    onFault,
    answer: (surface, call, ifKept) => repeats.answerPassed(surface, call, ifKept),
  });
  return { repeats, passed, listening: passed.listen(worker.socketOf(worker.number)) };
}

/** What an answer may take beyond its own time, until it is settled and sent. */
const SETTLED_MS = 60_000;
