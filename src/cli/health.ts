import { gatewayUrl } from "./connection.ts";
import { whyUnanswered } from "./connection-errors.ts";
import type { CommandContext } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/** A container's health check, where there is no curl. */
export async function health(
  options: { readonly url?: string | undefined },
  context: CommandContext,
): Promise<void> {
  const url = `${gatewayUrl(options, context)}/healthz`;
  const signal = AbortSignal.timeout(ANSWER_MS);
  const response = await context.fetch(url, { redirect: "manual", signal }).catch((error: unknown) => {
    throw new CommandFailure(EXIT.unreachable, `${url} cannot be reached: ${whyUnanswered(error)}`);
  });
  if (!response.ok) throw new CommandFailure(EXIT.found, `${url} answered ${response.status}`);
  context.out(`${url} answered ${response.status}\n`);
}

const ANSWER_MS = 5_000;
