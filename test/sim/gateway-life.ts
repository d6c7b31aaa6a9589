import type { Key } from "../../src/customers/keys/key.ts";
import type { Keyring } from "../../src/customers/keys/keyring.ts";
import { generator } from "../../src/generation/generate.ts";
import { DeferredCounts } from "../../src/generation/prompt-count.ts";
import type { Debits } from "../../src/ledger/debits.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Health } from "../../src/routing/health.ts";
import { type BuiltGateway, buildGateway } from "../../src/server/gateway.ts";
import type { GatewayParts } from "../../src/server/gateway-parts.ts";
import type { LedgerOnDisk } from "../../src/store/books/bookkeeping-sqlite.ts";
import type { JournalBooks } from "../../src/store/journal/books.ts";
import type { Clock } from "../../src/units/clock.ts";
import { booksOf, COUNTS_NOTHING, configOf, partsOf } from "../fakes/gateway-parts.ts";
import { CATALOG, SETTINGS, SlowlyThinking } from "./catalogue.ts";
import type { Generate } from "./client.ts";
import type { Holders } from "./holders.ts";
import type { SimulatedHosts } from "./hosts.ts";
import type { Tier } from "./limits.ts";
import type { Random } from "./random.ts";

/** One process, from start to kill. */
export interface GatewayLife {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly books: JournalBooks;
  readonly debits: Debits;
  readonly health: Health;
  readonly generate: Generate;
  readonly inUse: BuiltGateway["inUse"];
  end(): void;
}

/** Production's own wiring, on what is simulated. */
export function openLife(parts: {
  clock: Clock;
  end: () => void;
  hosts: SimulatedHosts;
  open: LedgerOnDisk;
  random: Random;
  holders: Holders;
  tier: Tier;
  unverified: ReadonlySet<string>;
}): GatewayLife {
  const { clock, open, random, holders, tier, unverified, end } = parts;
  const { perDay: requestsPerDay, accountlessPerDay: accountlessRequestsPerDay, rpm } = tier;
  const keyring: Pick<Keyring, "identify" | "blockOf"> = {
    identify: (secret, at) => holders.identify(secret, at),
    blockOf: (key) => (holders.current(key as Key, clock) === null ? "ended" : null),
  };
  const { ledger, books, debits } = open;
  const { generation, inUse } = buildGateway(
    partsOf({
      config: configOf(
        CATALOG,
        { ...SETTINGS, openTierRpm: rpm },
        { openTier: { requestsPerDay, accountlessRequestsPerDay, rpm } },
      ),
      clock,
      random: random.bytes,
      transport: parts.hosts,
      books: booksOf({ ledger, journal: books.journal, keyring: keyring as Keyring }),
      counting: COUNTING,
      log: faultsThrown,
    }),
  );
  const { health, counting } = generation;
  verifyFree(health, unverified);
  const generate = generator({
    ...generation,
    expected: new SlowlyThinking(),
    counting: { ...counting, later: new DeferredCounts(0) },
  });
  return { clock, ledger, books, debits, health, generate, end, inUse };
}

/** Counts at once, and of a prompt more than any host reports. */
const COUNTING: GatewayParts["counting"] = {
  ...COUNTS_NOTHING,
  prompt: async (what, { length }) => ({ tokens: what === "text" ? length / 2 : null, ms: 1 }),
  count: async (texts) => Math.ceil(texts.join("").length / 4),
  billedPrompt: async ({ length }) => Math.ceil(length / 4),
};

const faultsThrown: GatewayParts["log"] = (event, fields) => {
  if (event === "fault") throw new Error(String(fields?.error));
};

export function verifyFree(health: Health, unverified: ReadonlySet<string>): void {
  for (const { routes } of CATALOG.models.values())
    for (const route of routes) if (route.free) health.verify(route, !unverified.has(route.host.id));
}
