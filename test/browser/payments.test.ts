import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Route } from "playwright-core";
import { type Hex, verifyTypedData } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { FakeStripe, signedEvent } from "../fakes/stripe.ts";
import { type Made, type OpenGateway, open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { browserMissing, endVisits, launch, Visitor } from "./browser.ts";

const SECRET = "whsec_1";

describe.skipIf(browserMissing)("payments", () => {
  let stripe: FakeStripe;
  let gateway: OpenGateway;
  let browser: Browser;
  let owner: Made;

  beforeAll(async () => {
    stripe = new FakeStripe();
    gateway = await open(
      `payments: { stripe: { secret_key: sk_test_1, webhook_secret: ${SECRET}, api_base: "${stripe.url}" } }\n`,
    );
    browser = await launch();
    owner = await gateway.key(0);
  });
  afterAll(async () => {
    await endVisits(browser);
    await gateway?.close();
    await stripe?.stop();
  });

  async function paidAtStripe(): Promise<string> {
    const session = stripe.opened.at(-1)!;
    stripe.pay(session);
    const news = { id: session.id, metadata: { payment_id: session.payment } };
    const { body, signature } = await signedEvent("checkout.session.completed", news, {
      secret: SECRET,
      at: Date.now(),
    });
    const headers = { "stripe-signature": signature };
    await gateway.send("POST", "/webhooks/stripe", { bytes: body, headers });
    return session.payment;
  }

  test("an owner shows that both secrets are saved, pays on Stripe's page, and sees it become credit", async () => {
    const visitor = await Visitor.arrive(browser, gateway.url);
    const { page } = visitor;
    await page.route("https://checkout.stripe.example/**", (route) =>
      route.fulfill({ contentType: "text/html", body: "<h1>Card number</h1>" }),
    );
    await visitor.recover(owner.recovery_secret);
    await visitor.link("Credit").click();
    await visitor.field("API key").fill("or-live-notthisone");
    await visitor.button("Both are saved").click();
    await page.getByText(/must be an API key of/).waitFor();
    await visitor.field("API key").fill(owner.key);
    await visitor.button("Both are saved").click();
    await page.getByText(/A card is charged 2.9 % and \$0.30 more/).waitFor();
    await visitor.field("Amount in dollars").fill("7.50");
    await visitor.button("Pay by card").click();
    await visitor.heading("Card number").waitFor();
    expect(visitor.complaints).toEqual([expect.stringContaining("https://checkout.stripe.example/")]);

    const { payment } = stripe.opened.at(-1)!;
    await visitor.goto(`/dashboard#/credit/${payment}`);
    await page.getByText("$7.50 are not paid yet.", { exact: false }).waitFor();
    await paidAtStripe();
    await page.getByText("$7.50 were added to the balance.").waitFor();
    await visitor.link("Credit").click();
    await page.getByText("Card · visa …4242").waitFor();
    expect(await page.getByText("$7.50").count()).toBeGreaterThan(1);
    expect(visitor.complaints).toHaveLength(1);
  });

  test("a browser's wallet signs the gateway's offer, without an address being copied", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    const asked: string[] = [];
    const visitor = await Visitor.arrive(browser, gateway.url);
    const { page } = visitor;
    await page.exposeFunction("askWallet", async (method: string, params: string[]) => {
      asked.push(method);
      if (method === "eth_requestAccounts") return [account.address];
      if (method === "eth_chainId") return "0x1";
      if (method !== "eth_signTypedData_v4") return null;
      const { EIP712Domain: _, ...types } = JSON.parse(params[1]!).types;
      return account.signTypedData({ ...JSON.parse(params[1]!), types });
    });
    await page.addInitScript(() => {
      const of = globalThis as unknown as { ethereum: unknown; askWallet(...of: unknown[]): unknown };
      of.ethereum = {
        request: ({ method, params }: { method: string; params?: unknown }) =>
          of.askWallet(method, params ?? []),
      };
    });
    const signed = new Promise<string>((resolve) => void gatewayOffers(page.route.bind(page), resolve));
    await visitor.recover(owner.recovery_secret);
    await visitor.link("Credit").click();
    await visitor.button("Pay with my wallet").click();
    await page.getByText("$5.00 were seen, and are being confirmed.", { exact: false }).waitFor();
    await page.getByText("$5.00 were added to the balance.").waitFor();
    expect(asked).toEqual([
      "eth_requestAccounts",
      "eth_chainId",
      "wallet_switchEthereumChain",
      "eth_signTypedData_v4",
    ]);
    const { accepted, payload, x402Version } = JSON.parse(atob(await signed));
    expect([x402Version, accepted]).toEqual([2, OFFER.accepts[0]]);
    const { signature, authorization } = payload;
    expect(authorization).toMatchObject({ from: account.address, to: accepted.payTo, value: "5000000" });
    const [{ extra, asset }] = OFFER.accepts;
    const isTheirs = await verifyTypedData({
      address: account.address,
      domain: { ...extra, chainId: 84_532, verifyingContract: asset as Hex },
      types: { TransferWithAuthorization: TRANSFER },
      primaryType: "TransferWithAuthorization",
      message: authorization,
      signature,
    });
    expect(isTheirs).toBe(true);
    expect(await page.content()).not.toContain(accepted.payTo);
    expect(visitor.complaints).toEqual([]);
  });

  test("the operator looks over all payments and refunds one", async () => {
    const visitor = await Visitor.arrive(browser, gateway.url);
    const { page } = visitor;
    await visitor.goto("/admin");
    await visitor.field("Admin token").fill(ADMIN);
    await visitor.button("Open").click();
    await visitor.link("Payments").click();
    await visitor.link(owner.balance_id).waitFor();
    await visitor.button("Refund").click();
    await page.getByText("$7.50 are taken back").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Refund" }).click();
    await page.getByRole("cell", { name: "refunded" }).waitFor();
    await visitor.field("State").selectOption("held");
    await visitor.heading("No payments").waitFor();
    expect(visitor.complaints).toEqual([]);
  });
});

const OFFER = {
  x402Version: 2,
  resource: { url: "https://gateway.example/v1/credits" },
  accepts: [
    {
      scheme: "exact",
      network: "eip155:84532",
      asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
      payTo: "0x1111111111111111111111111111111111111111",
      amount: "5000000",
      maxTimeoutSeconds: 300,
      extra: { name: "USDC", version: "2" },
    },
  ],
} as const;

const TRANSFER = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;

/** A gateway that takes x402, as the page sees it; `signed` gets what the wallet has signed. */
async function gatewayOffers(
  on: (url: string, handler: (route: Route) => Promise<void>) => Promise<unknown>,
  signed: (header: string) => void,
): Promise<void> {
  const states = ["confirming", "credited"];
  const answer = (route: Route, status: number, json: object, headers = {}) =>
    route.fulfill({ status, json, headers });
  const limits = { min_usd: 1, max_usd: 500, suggested_usd: 5 };
  await on("**/v1/payments/options", (route) =>
    answer(route, 200, { methods: [{ rail: "x402", ...limits }], needs: [] }),
  );
  await on("**/v1/credits", async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    const header = route.request().headers()["payment-signature"];
    if (header !== undefined) {
      signed(header);
      return answer(route, 202, { id: "pay_9", state: "confirming", reason: null });
    }
    const error = {
      message: "Pay.",
      type: "invalid_request_error",
      code: "insufficient_credit",
      param: null,
    };
    return answer(route, 402, { error }, { "payment-required": btoa(JSON.stringify(OFFER)) });
  });
  await on("**/v1/payments/pay_9", (route) => {
    const state = states.length > 1 ? states.shift() : states[0];
    const times = { created_at: "2026-01-01T00:00:00Z", changed_at: "2026-01-01T00:00:00Z" };
    const payment = { id: "pay_9", rail: "x402", amount_usd: 5, credited_usd: 5, payer: null };
    return answer(route, 200, { ...payment, state, transaction: null, reason: null, ...times });
  });
}
