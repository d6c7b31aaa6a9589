import type { GenerationDeps } from "../generation/deps.ts";
import type { Repeats } from "../generation/idempotency.ts";
import type { Http1Transport } from "../hosts/http1/transport.ts";
import type { HttpDeps } from "../http/deps.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import type { ByteBudget } from "../units/byte-budget.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import type { Rooms } from "./rooms.ts";
import type { PassedRepeats } from "./workers/passed-repeats.ts";

/**
 * Everything that requests take and have to give back, where something is taken now. Once all requests have ended,
 * whatever is left is lost until the gateway restarts, and a host, a balance or the memory for bodies is short of it.
 */
export const inUse = (rooms: RoomsInUse): InUse[] => [...counted(rooms)].filter(([, count]) => count !== 0);

/** What is taken, with the host or key where there is one, and how much. Below 0: it was given back twice. */
export type InUse = readonly [what: string, count: number];

type RoomsInUse = Pick<Bookkeeping, "ledger"> &
  Pick<GatewayParts, "counting"> &
  Pick<Rooms, "bodies" | "sockets"> & {
    readonly generation: GenerationDeps;
    readonly repeats: Repeats;
    /** Null where there are no other workers. */
    readonly passed: PassedRepeats | null;
    /** These two are null where no port is open. */
    readonly deps: HttpDeps | null;
    readonly server: Bun.Server<unknown> | null;
  };

function* counted(rooms: RoomsInUse): Generator<InUse> {
  const { ledger, generation, repeats, deps, server } = rooms;
  yield ["open holds", ledger.openHolds];
  for (const [key, count] of ledger.counters.openHoldsOfKeys()) yield [`open holds of key ${key}`, count];
  for (const { id, held } of ledger.counters.booked()) yield [`held on ${id}`, held];
  for (const { host, inFlight, waiting } of generation.slots.loads()) {
    yield [`requests in flight at ${host}`, inFlight];
    yield [`requests waiting for ${host}`, waiting];
  }
  yield ["probes of resting hosts", generation.health.probes];
  yield ["relayed streams", generation.openStreams.size];
  yield ["streams that are counted", generation.delivered.openStreams];
  yield ["deadlines", generation.deadlines.count];
  yield ["bytes of kept prompts", generation.prompts.bytes];
  yield ["bytes of prompts that are counted later", generation.counting.later.bytes];
  yield ["pieces of work for the counting threads", rooms.counting.inUse];
  yield ["balances with payments in line", generation.payments?.balancesInLine ?? 0];
  yield* bytesOf("bodies", rooms.bodies);
  if (deps !== null) yield* bytesOf("control bodies", deps.bodies.control);
  yield ["WebSockets", rooms.sockets.count];
  yield ["limits of WebSockets", rooms.sockets.slotsInUse];
  yield ["bytes of conversations", rooms.sockets.bytes];
  yield ["requests that may be repeated", repeats.inUse.open];
  yield ["requests that no repeat can find", repeats.inUse.lost];
  yield ["bytes of answers that no repeat can find", repeats.inUse.lostBytes];
  yield ["requests of other workers", rooms.passed?.areOpen === true ? 1 : 0];
  yield ["HTTP requests", server?.pendingRequests ?? 0];
}

export function* socketsInUse(transport: Pick<Http1Transport, "socketsInUse">): Generator<InUse> {
  for (const [origin, count] of transport.socketsInUse()) yield [`sockets to ${origin}`, count];
}

export function* bytesOf(what: string, budget: ByteBudget): Generator<InUse> {
  yield [`bytes of ${what}`, budget.taken];
  yield [`bytes of ${what} without credit`, budget.takenUnpaid];
  yield [`${what} waiting for memory`, budget.waiting];
}
