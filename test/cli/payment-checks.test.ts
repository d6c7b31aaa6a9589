import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { privateKeyToAddress } from "viem/accounts";
import { checkPayments } from "../../src/cli/payment-checks.ts";
import { goodConfig } from "../config/fixture.ts";
import { LocalChain, USDC } from "../fakes/chain/chain.ts";

const PAY_TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const POOR = `0x${"0a".repeat(32)}` as const;
const LIST = join(tmpdir(), `listed-${crypto.randomUUID()}`);

const chain = await LocalChain.start();
await chain.mine();
await Bun.write(LIST, `${PAY_TO}\n`);
afterAll(() => {
  chain.stop();
  rmSync(LIST);
});

async function found(network: string, more = ""): Promise<string[]> {
  const { payments } = goodConfig(
    `payments: { x402: [{ asset: "${USDC}", pay_to: "${PAY_TO}", rpc: "${chain.rpc}", ${network} }]${more} }`,
  );
  return (await checkPayments(payments)).map(({ check, state }) => `${check} ${state}`);
}

test("doctor counts the addresses of the sanctions list, and names the line that is none", async () => {
  const listed = async (text: string) => {
    await Bun.write(LIST, text);
    const { payments } = goodConfig(
      `payments: { stripe: { secret_key: k, webhook_secret: whsec_1 }, sanctions: { list: "${LIST}" } }`,
    );
    const findings = await checkPayments(payments);
    return findings.find(({ check }) => check === "sanctions list");
  };
  expect(await listed(`["${PAY_TO}"]`)).toMatchObject({
    state: "ok",
    detail: expect.stringMatching(/^1 addr/),
  });
  const broken = await listed(`${PAY_TO}\n<html>\n`);
  expect(broken).toMatchObject({ state: "fail", detail: expect.stringContaining("line 2") });
  await listed(`${PAY_TO}\n`);
});

const HERE = 'network: "eip155:84532"';

test("doctor looks at the chain, the token, the clock, the gas, the list and the webhook's secret", async () => {
  const stripe = "stripe: { secret_key: k, webhook_secret: whsec_1 }";
  expect(
    await found(`${HERE}, gas_key: "${await chain.gasKey()}"`, `, sanctions: { list: "${LIST}" }, ${stripe}`),
  ).toEqual([
    "payments on eip155:84532 ok",
    "clock ok",
    "pay_to on eip155:84532 ok",
    "gas ok",
    "sanctions list ok",
    "webhook secret ok",
  ]);
});

test("doctor finds another chain, no gas, a list that is not there, an oracle that is none, and a secret of another kind", async () => {
  expect(await found('network: "eip155:8453", facilitator: "http://f.test"')).toEqual([
    "payments on eip155:8453 fail",
  ]);
  expect(await found(`${HERE}, gas_key: "${POOR}"`)).toContain("gas warn");
  // It pays for nothing beyond the least that is asked for.
  await chain.client.setBalance({ address: privateKeyToAddress(POOR), value: 5n * 10n ** 14n });
  expect(await found(`${HERE}, gas_key: "${POOR}"`)).toContain("gas warn");
  await chain.client.setBalance({ address: privateKeyToAddress(POOR), value: 6n * 10n ** 14n });
  expect(await found(`${HERE}, gas_key: "${POOR}"`)).toContain("gas ok");
  expect(await found(`${HERE}, facilitator: "http://f.test"`, ', sanctions: { list: "/nowhere" }')).toContain(
    "sanctions list fail",
  );
  expect(
    await found(`${HERE}, facilitator: "http://f.test"`, `, sanctions: { oracle: "${PAY_TO}" }`),
  ).toEqual(["payments on eip155:84532 fail"]);
  const stripe = "stripe: { secret_key: k, webhook_secret: sk_live }";
  expect(await found(`${HERE}, facilitator: "http://f.test"`, `, ${stripe}`)).toContain(
    "webhook secret fail",
  );
});

test("nothing is looked at where nothing is configured", async () => {
  expect(await checkPayments(null)).toEqual([]);
});
