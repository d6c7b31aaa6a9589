import type { SurfaceName } from "../catalog/catalog.ts";
import type { GenerationAnswer, GenerationCall } from "../generation/answer.ts";
import type { GenerationDeps } from "../generation/deps.ts";
import { generator } from "../generation/generate.ts";
import { atMost } from "../units/clock.ts";
import { openBackground } from "./background.ts";
import { drain } from "./draining.ts";
import { openEvents } from "./events.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { generationDeps, openRepeats } from "./generation.ts";
import { httpDeps } from "./http.ts";
import { type InUse, inUse } from "./in-use.ts";
import { Lifecycle } from "./lifecycle.ts";
import { openRooms, type Rooms } from "./rooms.ts";

/**
 * Joins the rooms: whatever any floor needs from another is handed over here and nowhere else, to production
 * (`server/open-gateway`), the simulator, test gateways and benches alike. They differ in what they hand in.
 */
export function buildGateway(parts: GatewayParts): BuiltGateway {
  const { config: active, clock, books, listen, log } = parts;
  const rooms = openRooms(parts);
  const generation = generationDeps(rooms, parts);
  const generate = generator(generation);
  // Bound before the port is open: what the other workers find closed is answered elsewhere.
  const { repeats, passed, listening } = openRepeats(generate, rooms, parts);
  const events = listen === null ? null : openEvents(parts, listen.mailer);
  const background = events === null ? null : openBackground(rooms, events, parts);
  const lifecycle = new Lifecycle(
    clock,
    () => active.config.shutdownDelayMs,
    () => books.healthy(),
  );
  const follow = () => {
    const { hosts, models } = active.config.catalog;
    const paid = [...models.values()].flatMap(({ routes }) => routes.filter(({ free }) => !free));
    rooms.slots.prepare(hosts.values(), new Set(paid.map(({ host }) => host.id)));
    rooms.keyFiles.watch();
  };
  follow();
  const deps =
    events === null ? null : httpDeps(rooms, parts, listen!, { generate, repeats, lifecycle, events });
  const server = deps === null ? null : listen!.open(deps);
  const used = () => inUse({ ...books, ...parts, ...rooms, generation, repeats, passed, deps, server });
  const leave = async () => {
    log("draining");
    rooms.freeRoutes.stop();
    repeats.leave();
    const { drainMs } = active.config;
    if (server !== null) await drain(server, { ...rooms, passed, ledger: books.ledger, clock, drainMs });
    passed?.stop();
    repeats.stop();
    await close(rooms, background, parts);
    const left = used();
    if (left.length > 0) log("left in use", Object.fromEntries(left));
  };
  return {
    generation,
    generate,
    port: server?.port ?? null,
    async start() {
      await listening;
      const first = [rooms.freeRoutes.verify(), rooms.payments.x402?.prepare(), background?.prepare()];
      await atMost(clock, FIRST_PROBES_MS, Promise.all(first));
      lifecycle.started();
      parts.counting.loadAhead();
    },
    configChanged() {
      const { catalog, bodyMemoryBytes } = active.config;
      rooms.bodies.resize(bodyMemoryBytes);
      passed?.resize(bodyMemoryBytes);
      rooms.health.keep(catalog);
      follow();
      void rooms.freeRoutes.verify();
      void background?.prepare();
    },
    inUse: used,
    stop: () => lifecycle.stop(leave),
  };
}

/** Closes every part; the books once nothing writes to them any more. */
async function close(
  rooms: Rooms,
  background: { stop(): Promise<void> } | null,
  parts: GatewayParts,
): Promise<void> {
  const { clock, books, counting, transport, listen } = parts;
  rooms.keyFiles.stop();
  // Nobody may be reading the log any more.
  await atMost(clock, CLOSE_MS, rooms.reporting.flushLog());
  await rooms.reporting.stopSending(CLOSE_MS);
  if (background !== null) await atMost(clock, CLOSE_MS, background.stop());
  await books.close();
  counting.stop();
  transport.close();
  if (listen !== null) await atMost(clock, CLOSE_MS, listen.mailer.close());
}

/** The longest that closing waits for any one part. */
const CLOSE_MS = 2_000;

export interface BuiltGateway {
  readonly generation: GenerationDeps;
  generate(surface: SurfaceName, call: GenerationCall): Promise<GenerationAnswer>;
  /** Null where none is open. */
  readonly port: number | null;
  /** Resolves once the free routes were probed, or this took too long; `/readyz` is 503 until then. */
  start(): Promise<void>;
  /** After a reload, or when other models were applied. */
  configChanged(): void;
  /** What requests hold, take or wait for at this moment: nothing, once all have ended. */
  inUse(): readonly InUse[];
  /**
   * Serves for `shutdown_delay_ms` more while `/readyz` is 503, then refuses new requests, lets streams
   * finish within `drain_ms`, closes the books. Called again, it skips what is left of the delay.
   */
  stop(): Promise<void>;
}

/** The start waits this long for the free routes to be probed, and goes on without those that take longer. */
const FIRST_PROBES_MS = 5_000;
