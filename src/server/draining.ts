import { MAX_COUNT_MS } from "../generation/counting/counting.ts";
import type { OpenStreams } from "../generation/stream/open-streams.ts";
import type { OpenSockets } from "../http/websocket/open-sockets.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { atMost, type Clock, pause } from "../units/clock.ts";
import type { PassedRepeats } from "./workers/passed-repeats.ts";

/** Accepts no more requests, lets those that are open finish within `drainMs`, then cuts them. */
export async function drain(
  server: Bun.Server<unknown>,
  { ledger, openStreams, sockets, passed, clock, drainMs }: Draining,
): Promise<void> {
  const holding = () => ledger.openHolds > 0;
  const answering = () => server.pendingRequests > 0 || sockets.areBusy || passed?.areOpen === true;
  const inMs = (ms: number) => clock.elapsedMs() + ms;
  await quietTurn(clock);
  const stopped = server.stop();
  sockets.leave();
  // A request holds nothing yet while its body arrives, and no longer while its last frames are sent.
  await waitWhile(() => holding() || answering(), inMs(drainMs), clock);
  // Streams that are still open are cut: each is counted, settles for what it delivered, and tells its client why.
  const held = ledger.openHolds;
  const cut = openStreams.cutAll("the gateway was stopped, and its time to finish streams ran out");
  const others = Math.max(0, held - cut);
  await waitWhile(() => ledger.openHolds > others, inMs(MAX_COUNT_MS), clock);
  await waitWhile(answering, inMs(CUT_MS), clock);
  // What is left are whole answers that have not come, and clients that do not read.
  void server.stop(true);
  await waitWhile(holding, inMs(CUT_MS), clock);
  await atMost(clock, CUT_MS, stopped);
}

interface Draining {
  readonly ledger: Pick<Ledger, "openHolds">;
  readonly openStreams: OpenStreams;
  readonly sockets: Pick<OpenSockets, "leave" | "areBusy">;
  /** By other workers; null where there are none. */
  readonly passed: Pick<PassedRepeats, "areOpen"> | null;
  readonly clock: Clock;
  readonly drainMs: number;
}

/**
 * Closing the port resets connections that wait to be accepted, and a proxy does not repeat what it sent on
 * one. They come while a turn of the loop works, so the port is closed after a turn that hardly did. Behind
 * nginx, with 1,000 new connections a second, at least eight requests failed in four restarts without this,
 * and one in eight restarts with it.
 */
async function quietTurn(clock: Clock): Promise<void> {
  for (let turns = 0; turns < MAX_TURNS; turns++) {
    const beganMs = clock.elapsedMs();
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (clock.elapsedMs() - beganMs < QUIET_MS) return;
  }
}

const QUIET_MS = 0.15;
const MAX_TURNS = 2_000;

/** For each step to end. */
const CUT_MS = 2_000;

/** Resolves once `busy` is false, or at `untilMs`. */
async function waitWhile(busy: () => boolean, untilMs: number, clock: Clock): Promise<void> {
  while (busy() && clock.elapsedMs() < untilMs) await pause(clock, POLL_MS);
}

const POLL_MS = 20;
