import type { OperatorsPayment } from "../../../src/api/payments.ts";
import type { Arrival, LocalChain } from "../../fakes/chain/chain.ts";
import { until } from "../../fakes/until.ts";
import { ADMIN, type GatewayProcess, type Reply } from "../../process/gateway.ts";
import type { Customer } from "./customer.ts";

/** Clients retry after an error: what is judged is what the books say. */
async function answered(any: () => GatewayProcess, path: string, bearer = ADMIN): Promise<Reply> {
  let answer: Reply | null = null;
  await until(async () => {
    answer = await any().get(path, bearer);
    return answer.status === 200;
  });
  return answer!;
}

/** All payments of all customers. */
export async function allPayments(any: () => GatewayProcess): Promise<OperatorsPayment[]> {
  const payments: OperatorsPayment[] = [];
  for (;;) {
    const last = payments.at(-1);
    const before = last === undefined ? "" : `&before=${last.id}`;
    const { json } = await answered(any, `/admin/payments?limit=200${before}`);
    payments.push(...json.data);
    if (!json.has_more) return payments;
  }
}

/** Payments under way, and payments whose transfer a reorganization undid. */
export async function unsettled(
  any: () => GatewayProcess,
  arrivals: readonly Arrival[],
): Promise<OperatorsPayment[]> {
  const moved = new Set(arrivals.map(({ transaction }) => transaction));
  return (await allPayments(any)).filter(
    (payment) => isUnderWay(payment) || (payment.state === "credited" && !moved.has(payment.transaction!)),
  );
}

const isUnderWay = ({ state }: OperatorsPayment): boolean =>
  state === "created" || state === "submitted" || state === "confirming";

/** What is wrong in the books once nothing is under way any more. */
export async function findings(
  any: () => GatewayProcess,
  { chain, payTo }: { readonly chain: LocalChain; readonly payTo: `0x${string}` },
  customers: readonly Customer[],
): Promise<string[]> {
  const found: string[] = [];
  const payments = await allPayments(any);
  const arrivals = await chain.arrivals(payTo);
  const credited = payments.filter(({ state }) => state === "credited");
  const moved = new Set(arrivals.map(({ transaction }) => transaction));
  if (moved.size !== arrivals.length) found.push("one transaction made two transfers");
  for (const { id, transaction } of credited)
    if (!moved.delete(transaction!)) found.push(`${id} is credited, and ${transaction} made no transfer`);
  for (const transaction of moved) found.push(`the transfer ${transaction} is not credited`);
  const arrivedFrom = (wallet: string) =>
    arrivals.filter(({ from }) => from === wallet.toLowerCase()).reduce((sum, { usd }) => sum + usd, 0);
  for (const { key, balanceId, wallet } of customers) {
    const { json } = await answered(any, "/v1/me", key);
    const paid = arrivedFrom(wallet.address);
    if (json.balance_usd !== paid)
      found.push(`${balanceId} has ${json.balance_usd} USD and paid ${paid} on the chain`);
  }
  const { json: audit } = await answered(any, "/admin/ledger/audit");
  const arrivedUsd = arrivals.reduce((sum, { usd }) => sum + usd, 0);
  if (!audit.ok) found.push(`the audit says ${JSON.stringify(audit)}`);
  if (Number(audit.credits_nano) !== arrivedUsd * 1e9)
    found.push(`credited are ${audit.credits_nano} nano-dollars, and ${arrivedUsd} USD arrived`);
  for (const { id, state, reason } of payments.filter((one) => one.state === "held" || isUnderWay(one)))
    found.push(`${id} is ${state}: ${reason}`);
  return found;
}
