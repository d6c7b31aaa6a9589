import { wideNetwork } from "../ledger/limits/address.ts";
import type { Subject } from "../surfaces/request/refused-request.ts";
import type { GenerationCall } from "./answer.ts";
import { MAX_COUNT_MS, type ReadRequest } from "./counting/counting.ts";
import type { ReadWork } from "./counting/work.ts";
import type { PromptCountDeps } from "./prompt-count.ts";
import { tooMuchUnpaid } from "./refusals.ts";

/**
 * Reads a large request of somebody who could not pay for it. Parsing ten megabytes keeps everybody else waiting
 * for some 50 ms, so that is done in a thread, and most such requests are refused by what it says. One that is
 * admitted is parsed once more: that costs a free request, of which there are few.
 */
export async function readUnpaid(
  work: Omit<ReadWork, "what">,
  call: Pick<GenerationCall, "blocks" | "signal">,
  deps: Pick<PromptCountDeps, "readUnpaid">,
): Promise<ReadRequest> {
  const turn = { key: wideNetwork(call.blocks()), signal: call.signal, withinMs: MAX_COUNT_MS };
  return (await deps.readUnpaid(work, turn)) ?? { read: tooMuchUnpaid(RETRY_S), subject: NOTHING_KNOWN };
}

const NOTHING_KNOWN: Subject = { model: "", stream: false };
const RETRY_S = 5;
