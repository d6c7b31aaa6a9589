/**
 * How long a failing host costs: the time from its failure, as the host saw it happen, to the next host
 * holding the whole request. One process, so that one clock measures both; the hosts are real sockets that
 * fail as real ones do.
 *
 *     bun run bench failover [--rounds 300]
 */
import {
  closeBeforeHead,
  emptyOk,
  rateLimited,
  resetBeforeHead,
  sse,
  sseError,
  status,
} from "../test/fakes/behaviours.ts";
import { type Behaviour, hostRow, REFUSED_PORT, startFakeHost } from "../test/fakes/host.ts";
import { chatText } from "../test/fakes/transcripts.ts";
import { openTestGateway, read, requestBody } from "../test/generation/test-gateway.ts";
import { ascending, type Quantiles, quantiles, table } from "./figures.ts";
import { numberOption } from "./options.ts";

/** In ms. */
export interface FailoverResult extends Quantiles {
  readonly failure: string;
}

const FAILURES: Record<string, () => Behaviour> = {
  reset: resetBeforeHead,
  "closed before the head": closeBeforeHead,
  "status 500": () => status(500),
  "status 429": () => rateLimited(1),
  "error as the first event": () => sseError(),
  "an empty 200": emptyOk,
};

export async function benchFailover(rounds: number): Promise<FailoverResult[]> {
  const results = [await refusedConnection(rounds)];
  for (const [failure, behaviour] of Object.entries(FAILURES))
    results.push(await measure(failure, behaviour(), rounds));
  return results;
}

async function measure(failure: string, behaviour: Behaviour, rounds: number): Promise<FailoverResult> {
  let failedAt = 0;
  const failing = await startFakeHost(() => async (wire, request) => {
    failedAt = performance.now();
    await behaviour(wire, request);
  });
  const result = await through(failure, failing, rounds, () => failedAt);
  await failing.close();
  return result;
}

/** Nobody sees a refused connection: the request itself is where its time begins. */
async function refusedConnection(rounds: number): Promise<FailoverResult> {
  let sentAt = 0;
  const url = `http://127.0.0.1:${REFUSED_PORT}`;
  return through(
    "refused connection",
    { url },
    rounds,
    () => sentAt,
    () => {
      sentAt = performance.now();
    },
  );
}

async function through(
  failure: string,
  failing: { readonly url: string },
  rounds: number,
  failedAt: () => number,
  before: () => void = () => {},
): Promise<FailoverResult> {
  const took: number[] = [];
  const { events } = chatText();
  const next = await startFakeHost(() => {
    took.push(performance.now() - failedAt());
    return sse(events);
  });
  const gateway = await openTestGateway(
    [hostRow(failing, { id: "failing" }), hostRow(next, { id: "next" })],
    {
      creditUsd: 1_000,
      blind: true,
    },
  );
  for (let round = 0; round < rounds + WARM_UP; round++) {
    before();
    const answer = await gateway.send(
      "chat.completions",
      requestBody("chat.completions", { stream: true, max_tokens: 10 }),
    );
    if (!(await read(answer)).endsWith("data: [DONE]\n\n"))
      throw new Error(`${failure}: the answer was not whole`);
  }
  await gateway.close();
  await next.close();
  return { failure, ...quantiles(ascending(took.slice(WARM_UP))) };
}

const WARM_UP = 50;

if (import.meta.main) {
  const rows = await benchFailover(numberOption("rounds", 300));
  console.log(
    table(
      ["failure", "p50 ms", "p99 ms"],
      rows.map(({ failure, p50, p99 }) => [failure, p50, p99]),
    ),
  );
}
