import { expect, test } from "bun:test";
import { linksOf } from "../../src/config/config.ts";
import { configView } from "../../src/config/config-view.ts";
import { goodConfig, problemsOf } from "./fixture.ts";

const A = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const B = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const x402 = (more: string) =>
  `payments: { x402: [{ network: "eip155:8453", asset: "${A}", pay_to: "${B}", rpc: "http://node.test/key"${more} }] }`;
const KEY = `0x${"ab".repeat(32)}`;

test("what the file leaves out of the payments has the defaults", () => {
  const { payments } = goodConfig(x402(', facilitator: "https://f.test/x402/"'));
  expect(JSON.parse(JSON.stringify(payments))).toEqual({
    amounts: { min: 1e9, suggested: 5e9, max: 500e9, maxPerDay: 1000e9 },
    x402: [
      {
        network: "eip155:8453",
        asset: A.toLowerCase(),
        payTo: B.toLowerCase(),
        rpc: "http://node.test/key",
        settledBy: { facilitator: "https://f.test/x402" },
        confirmations: 1,
        finalizedAbove: 100e9,
        wastedGasPerHour: 3_000_000,
        waitMs: 15_000,
      },
    ],
    stripe: null,
    sanctions: { list: null, oracle: false },
    inlinePerHour: 20e9,
  });
});

test("the operator sees what is in force, and none of its secrets", () => {
  const text = `${x402(`, gas_key: "${KEY}"`).slice(0, -1)}, stripe: { secret_key: sk_live, webhook_secret: [whsec_1, whsec_2] } }`;
  const config = goodConfig(text);
  const shown = JSON.stringify(configView(config, linksOf(config, "http://g.test")).payments);
  for (const secret of [KEY, "node.test/key", "sk_live", "whsec"]) expect(shown).not.toContain(secret);
  expect(shown).toContain(B.toLowerCase());
});

for (const [what, text, words] of [
  ["neither rail", "payments: {}", "x402, stripe, or both"],
  ["nobody who settles", x402(""), "either facilitator or gas_key"],
  [
    "two who settle",
    x402(`, facilitator: "https://f.test", gas_key: "${KEY}"`),
    "either facilitator or gas_key",
  ],
  ["an address with a digit too few", x402("").replace(A, A.slice(0, -1)), "40 hexadecimal digits"],
  ["a chain without its kind", x402("").replace("eip155:8453", "base"), "eip155: and a chain id"],
  ["a fraction of a cent", `payments: { amounts: { min_usd: 0.005 } }`, "at most two decimals"],
  [
    "a suggestion below the least",
    `payments: { amounts: { min_usd: 5, suggested_usd: 2 } }`,
    "from min_usd to max_usd",
  ],
  ["nothing as the least", `payments: { amounts: { min_usd: 0 } }`, "more than 0"],
] as const) {
  test(`payments with ${what} stop the start`, () => {
    expect(problemsOf(text)).toContain(words);
  });
}

test("the suggested payment may be the least, and the most", () => {
  const amounts = (more: string) =>
    x402("")
      .replace("payments: {", `payments: { amounts: { ${more} },`)
      .replace(" }] }", `, gas_key: "${KEY}" }] }`);
  expect(goodConfig(amounts("min_usd: 5, suggested_usd: 5, max_usd: 5")).payments?.amounts).toMatchObject({
    min: 5e9,
    suggested: 5e9,
    max: 5e9,
  });
  expect(problemsOf(amounts("suggested_usd: 6, max_usd: 5"))).toContain("from min_usd to max_usd");
});

test("no problem prints a secret", () => {
  const text = x402(`, gas_key: "0xsecret"`);
  expect(problemsOf(text)).not.toContain("0xsecret");
});
