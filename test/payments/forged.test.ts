import { afterAll, expect, test } from "bun:test";
import { toFunctionSelector } from "viem";
import { generatePrivateKey } from "viem/accounts";
import { json } from "../fakes/behaviours.ts";
import { LocalChain } from "../fakes/chain/chain.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "../gateway/open.ts";
import { during, lineUps, offerOf, paidConfig, payer, paymentsOf, somewhere } from "./paid-gateway.ts";

/** `transferWithAuthorization` with a signature of any length, as calls begin. */
const TRANSFER = toFunctionSelector(
  "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)",
).slice(2);

const chain = await LocalChain.start();
const node = countingNode(chain.rpc);
const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
const settledBy = `gas_key: "${await chain.gasKey()}"`;
const gateway = await open(
  paidConfig({
    chain: Object.create(chain, { rpc: { value: node.rpc } }),
    payTo: somewhere(),
    host: host.url,
    settledBy,
  }),
);
afterAll(async () => {
  await gateway.close();
  await host.close();
  node.stop();
  chain.stop();
});

test("what was not paid after all leaves nothing to watch where its signature is wrong", async () => {
  const mine = await payer(gateway);
  const header = forged(offerOf(await send(mine.key))!.accepts[0]!);
  const held = node.hold();
  const lined = lineUps();
  const requests = Array.from({ length: 5 }, () => send(mine.key, header()));
  await during(requests, () => lined() === 5);
  await held.requested;
  // Requests in line are refused when their turn comes, before they pay.
  const revoked = await gateway.send("DELETE", `/v1/keys/${mine.id}`, { bearer: mine.recovery_secret });
  expect(revoked.status).toBe(200);
  held.release();
  await Promise.all(requests);
  await until(() => node.tried() >= 2);
  expect(await paymentsOf(gateway, mine.recovery_secret)).toEqual([]);
});

test("requests with wrong signatures ask the node no more than so often", async () => {
  const balances = await Promise.all(Array.from({ length: 4 }, () => payer(gateway)));
  const header = forged(offerOf(await send(balances[0]!.key))!.accepts[0]!);
  const before = node.tried();
  const requests = balances.flatMap(({ key }) => Array.from({ length: 25 }, () => send(key, header())));
  const statuses = (await Promise.all(requests)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([402, 429]));
  expect(node.tried() - before).toBeLessThanOrEqual(60);
});

const send = (key: string, header?: string): Promise<Response> =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...(header === undefined ? {} : { "payment-signature": header }),
    },
    body: JSON.stringify({
      model: "test/model",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hi" }],
    }),
  });

/** Payments of what is offered that nobody signed, a different one each. */
const forged = (accepted: Record<string, unknown>) => () => {
  const authorization = {
    from: somewhere(),
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: "0",
    validBefore: String(Math.floor(Date.now() / 1_000) + 300),
    nonce: generatePrivateKey(),
  };
  const payload = { authorization, signature: `0x${"1b".repeat(65)}` };
  return btoa(JSON.stringify({ x402Version: 2, accepted, payload }));
};

/** The chain's node, which counts the transfers that it is asked to try. */
function countingNode(rpc: string) {
  let tried = 0;
  let gate = Promise.resolve();
  let onRequest = () => {};
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = await request.text();
      if (body.includes(TRANSFER)) {
        tried += 1;
        onRequest();
        await gate;
      }
      return fetch(rpc, { method: "POST", headers: { "content-type": "application/json" }, body });
    },
  });
  return {
    rpc: server.url.href,
    tried: () => tried,
    /** From now on, no transfer is tried until it is released. */
    hold() {
      const waiting = Promise.withResolvers<void>();
      const first = Promise.withResolvers<void>();
      gate = waiting.promise;
      onRequest = first.resolve;
      return { requested: first.promise, release: waiting.resolve };
    },
    stop: () => server.stop(true),
  };
}
