import { gatewayUrl } from "./connection.ts";
import { messageOf, type Place } from "./console.ts";
import { EXIT, Failure } from "./failure.ts";

/** A container's health check, where there is no curl. */
export async function health(options: { readonly url?: string | undefined }, place: Place): Promise<void> {
  const url = `${gatewayUrl(options, place)}/healthz`;
  const signal = AbortSignal.timeout(ANSWER_MS);
  const response = await place.fetch(url, { redirect: "manual", signal }).catch((error: unknown) => {
    throw new Failure(EXIT.unreachable, `${url} cannot be reached: ${messageOf(error)}`);
  });
  if (!response.ok) throw new Failure(EXIT.found, `${url} answered ${response.status}`);
  place.out(`${url} answered ${response.status}\n`);
}

const ANSWER_MS = 5_000;
