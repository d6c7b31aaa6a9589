import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { encodeAbiParameters, parseAbiParameters } from "viem";
import { checkPayments } from "../../src/cli/payment-checks.ts";
import { goodConfig } from "../config/fixture.ts";
import { json } from "../fakes/behaviours.ts";
import { LocalChain, USDC } from "../fakes/chain/chain.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import type { OpenGateway } from "../gateway/open.ts";
import { balanceOf, openQuick, order, paidConfig, payer, paying, somewhere } from "./paid-gateway.ts";

/** Tokens that describe themselves otherwise than USDC does today. */
const chain = await LocalChain.start();
const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
let gateway: OpenGateway | null = null;
afterAll(async () => {
  await host.close();
  chain.stop();
});
afterEach(async () => {
  await gateway?.close();
  gateway = null;
});

/** Selectors as they stand in the token's code. */
const SELECTORS = {
  name: "6306fdde03",
  domainSeparator: "633644e515",
  bytesForm: "63cf092995",
  partsForm: "63e3ee160e",
} as const;
const UNKNOWN = "6300000001";
const TYPE_OF_DOMAIN = "8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f";

const without =
  (...left: (keyof typeof SELECTORS)[]) =>
  (code: string) =>
    left.reduce((rest, name) => rest.replaceAll(SELECTORS[name], UNKNOWN), code);

/** A contract that answers `eip712Domain()` and leaves everything else to the token at `BEHIND`. */
const declaring = (name: string, version: string, contract: string = USDC) => {
  const types = parseAbiParameters("bytes1, string, string, uint256, address, bytes32, uint256[]");
  const values = ["0x0f", name, version, 84532n, contract, `0x${"0".repeat(64)}`, []] as const;
  const data = encodeAbiParameters(types, values as never).slice(2);
  const word = (number: number) => number.toString(16).padStart(4, "0");
  const length = word(data.length / 2);
  const code = (answer: number, passed: number, end: number) =>
    `5f3560e01c6384b0196e1461${word(answer)}57365f5f375f5f365f73${BEHIND.slice(2)}5af43d5f5f3e61${word(passed)}573d5ffd` +
    `5b3d5ff35b61${length}61${word(end)}5f3961${length}5ff3`;
  const end = code(0, 0, 0).length / 2;
  const answer = end - 14;
  return `0x${code(answer, answer - 4, end)}${data}`;
};
const BEHIND = `0x${"be".repeat(20)}` as const;

async function pays(): Promise<[number, number]> {
  const settledBy = `gas_key: "${await chain.gasKey()}"`;
  gateway = await openQuick(
    paidConfig({ chain, payTo: somewhere(), host: host.url, settledBy, network: ", wait_ms: 60000" }),
  );
  const mine = await payer(gateway);
  const answer = await order(gateway, mine.key, 2, paying(await chain.wallet(10), 5));
  return [answer.status, await balanceOf(gateway, mine.key)];
}

async function offers(): Promise<boolean> {
  gateway = await openQuick(
    paidConfig({
      chain,
      payTo: somewhere(),
      host: host.url,
      settledBy: `gas_key: "${await chain.gasKey()}"`,
    }),
  );
  const mine = await payer(gateway);
  return (await order(gateway, mine.key, 2, fetch)).headers.has("payment-required");
}

async function doctorSays(): Promise<string> {
  const network = `network: "eip155:84532", asset: "${USDC}", pay_to: "${BEHIND}", rpc: "${chain.rpc}"`;
  const { payments } = goodConfig(`payments: { x402: [{ ${network}, gas_key: "${await chain.gasKey()}" }] }`);
  const [{ state, detail }] = (await checkPayments(payments)) as unknown as [
    { state: string; detail: string },
  ];
  return `${state}: ${detail}`;
}

describe("a token is paid in", () => {
  for (const [what, change] of [
    ["that takes signatures whole or in parts", without()],
    ["that takes them in parts only", without("bytesForm")],
    ["that takes them whole only", without("partsForm")],
  ] as const)
    test(what, async () => {
      await chain.putToken(change);
      expect(await pays()).toEqual([201, 2]);
    });

  test("whose domain only eip712Domain() names", async () => {
    await chain.putToken(without("name", "domainSeparator"), BEHIND);
    await chain.putToken(() => declaring("USDC", "2"));
    expect(await pays()).toEqual([201, 2]);
  });
});

describe("a token is not offered, and doctor says why,", () => {
  for (const [what, put, why] of [
    [
      "that signs by another domain than its name and version make",
      () => chain.putToken((code) => code.replaceAll(TYPE_OF_DOMAIN, TYPE_OF_DOMAIN.replace("8b73", "8b74"))),
      "another EIP-712 domain",
    ],
    [
      "that does not say by which domain it signs",
      () => chain.putToken(without("domainSeparator")),
      "another EIP-712 domain",
    ],
    [
      "that declares another domain than it checks",
      () => chain.putToken(() => declaring("Dollar", "2")),
      "another EIP-712 domain",
    ],
    [
      "that declares the domain of another contract",
      () => chain.putToken(() => declaring("USDC", "2", BEHIND)),
      "x402 cannot express",
    ],
    [
      "that has no transfer by authorization",
      () => chain.putToken(without("bytesForm", "partsForm")),
      "no transferWithAuthorization",
    ],
  ] as const)
    test(what, async () => {
      await chain.putToken(without(), BEHIND);
      await put();
      expect(await doctorSays()).toContain(why);
      expect(await offers()).toBe(false);
    });
});
