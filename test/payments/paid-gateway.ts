import { spyOn } from "bun:test";
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import type { PaymentAnswer } from "../../src/api/payments.ts";
import { InlinePayments } from "../../src/payments/rails/x402/inline.ts";
import { systemClock } from "../../src/units/clock.ts";
import { type LocalChain, NETWORK, USDC } from "../fakes/chain/chain.ts";
import { oneHost } from "../fakes/one-host.ts";
import { until } from "../fakes/until.ts";
import { type Made, type OpenGateway, openIn } from "../gateway/open.ts";
import { Folder } from "../process/gateway.ts";

/** Where an operator of the tests is paid. */
export const somewhere = () => privateKeyToAccount(generatePrivateKey()).address;

export interface PaidConfig {
  readonly chain: LocalChain;
  readonly payTo: string;
  readonly host: string;
  readonly settledBy: string;
  readonly more?: string;
  readonly network?: string;
}

/** A gateway with one host whose model costs $10 a million tokens of output, and payments on the chain. */
export const paidConfig = ({
  chain,
  payTo,
  host,
  settledBy,
  more = "",
  network = "",
}: PaidConfig): string => `${oneHost(host)}
payments:
  x402:
    - { network: "${NETWORK}", asset: "${USDC}", pay_to: "${payTo}", rpc: "${chain.rpc}", ${settledBy}${network} }
${more}`;

/** A gateway that looks at its payments so often that nobody waits for it. */
export const openQuick = (config: string, env: Record<string, string> = {}): Promise<OpenGateway> =>
  openQuickIn(new Folder(config), env);

export const openQuickIn = (folder: Folder, env: Record<string, string> = {}): Promise<OpenGateway> =>
  openIn(folder, env, systemClock, { watchMs: 100, leaseMs: 10_000, resendMs: 200 });

/** Waits for what comes about while the requests are under way: an answer that is there before says why it does not. */
export async function during(
  requests: readonly Promise<Response>[],
  what: () => boolean | Promise<boolean>,
): Promise<void> {
  const early = Promise.race(requests).then(async (answer) => {
    throw new Error(`answered too early: ${answer.status} ${await answer.clone().text()}`);
  });
  await Promise.race([until(what), early]);
}

/** Tells how many requests have lined up to pay for themselves since: nothing shows it outside of the process. */
export function lineUps(): () => number {
  const { mock } = spyOn(InlinePayments.prototype, "begin").mockClear();
  return () => mock.calls.length;
}

/** Shows that both secrets are saved. */
export async function save(gateway: OpenGateway, { key, recovery_secret }: Made): Promise<void> {
  const { status, text } = await gateway.send("POST", "/v1/me/saved", {
    bearer: recovery_secret,
    json: { key },
  });
  if (status !== 200) throw new Error(`POST /v1/me/saved answered ${status}: ${text}`);
}

/** Somebody who may pay from a balance of nothing. */
export async function payer(gateway: OpenGateway): Promise<Made> {
  const made = await gateway.key(0);
  await save(gateway, made);
  return made;
}

/** The stock x402 client, unmodified; `usd` lifts its own limit of one dollar. */
export const paying = (wallet: PrivateKeyAccount, usd?: number, by: typeof fetch = fetch): typeof fetch =>
  wrapFetchWithPaymentFromConfig(by, {
    schemes: [{ network: NETWORK, client: new ExactEvmScheme(wallet) }],
    ...(usd === undefined ? {} : { spendControls: { maxAmountPerPayment: `$${usd}` } }),
  }) as typeof fetch;

export const order = (gateway: OpenGateway, key: string, usd: number, pay: typeof fetch, headers = {}) =>
  pay(`${gateway.url}/v1/credits`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ amount_usd: usd }),
  });

/** The header that a wallet would send for an order, without sending it. */
export async function signedOffer(
  gateway: OpenGateway,
  key: string,
  usd: number,
  from: PrivateKeyAccount,
): Promise<string> {
  let header = "";
  const noted = (async (request: Request) => {
    header = request.headers.get("payment-signature") ?? "";
    return header === "" ? fetch(request) : new Response("{}");
  }) as unknown as typeof fetch;
  const answer = await order(gateway, key, usd, paying(from, 1000, noted));
  if (header === "") throw new Error(`nothing to sign: ${answer.status} ${await answer.text()}`);
  return header;
}

export async function paymentsOf(gateway: OpenGateway, bearer: string): Promise<PaymentAnswer[]> {
  return (await gateway.send("GET", "/v1/payments", { bearer })).json.data;
}

export async function balanceOf(gateway: OpenGateway, bearer: string): Promise<number> {
  return (await gateway.send("GET", "/v1/me", { bearer })).json.balance_usd;
}

export interface Offer {
  readonly accepts: readonly Record<string, unknown>[];
  readonly resource: { readonly url: string };
  readonly error: string;
}

export const offerOf = ({ headers }: { readonly headers: Headers }): Offer | null => {
  const header = headers.get("payment-required");
  return header === null ? null : JSON.parse(Buffer.from(header, "base64").toString());
};
