import type { Catalog } from "../catalog/catalog.ts";
import { wideNetwork } from "../ledger/limits/address.ts";
import type { TakenAmount } from "../ledger/limits/rate-window.ts";
import type { Release, Sender } from "../units/byte-budget.ts";
import { type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";
import type { Identity } from "./authentication.ts";
import type { HttpDeps } from "./deps.ts";

/** Room in the memory for a body of so many bytes, once there is some. `taken` of them were counted before. */
export async function takeRoom(
  who: Pick<Identity, "balance">,
  length: number,
  client: { blocks(): readonly string[]; readonly signal: AbortSignal },
  deps: HttpDeps,
  taken = 0,
): Promise<BodyRoom | Refusal> {
  const sender = await senderOf(who, length, () => client.blocks(), deps, taken);
  if (refused(sender)) return sender;
  const release = await deps.bodies.prompts.take(sender, length, ROOM_WAIT_MS, client.signal);
  return release === null ? noRoom() : { release, unpaid: sender.unpaid };
}

export interface BodyRoom {
  readonly release: Release;
  /** Bytes that are read without payment, counted for a sender who could not pay; null: it could. */
  readonly unpaid: TakenAmount | null;
}

/**
 * How somebody stands in line for room for a body of so many bytes. A sender that could pay for that much text does
 * as a balance, before all others. The others stand there as their network, because balances cost nothing to
 * make: only so many bytes of theirs are read within a minute, and while room is scarce only if they have free
 * requests left.
 */
async function senderOf(
  { balance }: Pick<Identity, "balance">,
  length: number,
  blocksOf: () => readonly string[],
  deps: HttpDeps,
  taken: number,
): Promise<(Sender & Pick<BodyRoom, "unpaid">) | Refusal> {
  if (await paysFor(balance.id, length, deps)) return { turn: balance.id, pays: true, unpaid: null };
  const blocks = blocksOf();
  const network = wideNetwork(blocks);
  if (deps.bodies.prompts.scarceUnpaid && (await deps.keyDeps.spendable.of(balance.id)) <= 0) {
    const { limit, used } = await deps.ledger.openTier(balance, blocks, deps.clock.now());
    if (used >= limit) return onlyPaid();
  }
  const unpaid = deps.bodies.unpaid.take({ balance: balance.id, network }, Math.max(0, length - taken));
  return typeof unpaid === "number" ? tooMuch(unpaid) : { turn: network, pays: false, unpaid };
}

/** Whether the balance could pay for so many bytes of text. */
export async function paysFor(
  balance: BalanceId,
  length: number,
  { keyDeps, config }: Pick<HttpDeps, "keyDeps" | "config">,
): Promise<boolean> {
  const cost = Math.max(1, leastCost(length, config.catalog));
  return (await keyDeps.spendable.of(balance, cost)) >= cost;
}

/** What so much text costs at least, in nano-dollars. */
function leastCost(length: number, { models }: Catalog): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { price } of models.values()) if (price !== null) least = Math.min(least, price.input);
  return least === Number.POSITIVE_INFINITY ? 0 : (length / BYTES_PER_TOKEN / 1_000_000) * least;
}

const BYTES_PER_TOKEN = 4;
const RETRY_S = 5;

/** That a body waits for room. */
export const ROOM_WAIT_MS = 10_000;

const noRoom = (): Refusal =>
  refuse(
    "model_unavailable",
    `The gateway holds as many large request bodies as it has memory for; this one was not read, and nothing was charged. Retry in ${RETRY_S} s.`,
    { retryAfterS: RETRY_S, shouldRetry: true },
  );

const onlyPaid = (): Refusal =>
  refuse(
    "model_unavailable",
    `The gateway has little memory left for large request bodies and keeps it for those who have credit or free requests left; this one was not read. Add credit, or retry in ${RETRY_S} s.`,
    { retryAfterS: RETRY_S, shouldRetry: true },
  );

const tooMuch = (retryAfterS: number): Refusal =>
  refuse(
    "rate_limited",
    `Requests without credit from your network have sent as many large bodies as are read for nothing within a minute; this one was not read. Add credit, or retry in ${retryAfterS} s.`,
    { retryAfterS },
  );
