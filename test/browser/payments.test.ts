import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { LocalChain, NETWORK, USDC } from "../fakes/chain/chain.ts";
import { FakeStripe, signedEvent } from "../fakes/stripe.ts";
import { until } from "../fakes/until.ts";
import type { Made, OpenGateway } from "../gateway/open.ts";
import { openQuick, somewhere } from "../payments/paid-gateway.ts";
import { browserMissing, endVisits, Visitor } from "./browser.ts";

const SECRET = "whsec_1";

describe.skipIf(browserMissing)("payments", () => {
  let stripe: FakeStripe;
  let chain: LocalChain;
  let gateway: OpenGateway;
  let owner: Made;

  beforeAll(async () => {
    stripe = new FakeStripe();
    chain = await LocalChain.start();
    const x402 = `{ network: "${NETWORK}", asset: "${USDC}", pay_to: "${PAY_TO}", rpc: "${chain.rpc}", gas_key: "${await chain.gasKey()}" }`;
    gateway = await openQuick(`payments:
  x402: [${x402}]
  stripe: { secret_key: sk_test_1, webhook_secret: ${SECRET}, api_base: "${stripe.url}" }
`);
    owner = await gateway.key(0);
  });
  afterEach(() => endVisits());
  afterAll(async () => {
    await gateway?.close();
    await stripe?.close();
    chain?.stop();
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
    const visitor = await Visitor.arrive(gateway.url);
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
    expect(visitor.complaints.splice(0)).toEqual([
      expect.stringContaining("https://checkout.stripe.example/"),
    ]);

    const { payment } = stripe.opened.at(-1)!;
    await visitor.goto(`/dashboard#/credit/${payment}`);
    await page.getByText("$7.50 has not been paid yet.", { exact: false }).waitFor();
    await paidAtStripe();
    await page.getByText("$7.50 was added to the balance.").waitFor();
    await visitor.link("Credit").click();
    await page.getByText("Card · visa …4242").waitFor();
    expect(await page.getByText("$7.50").count()).toBeGreaterThan(1);
  });

  test("a browser's wallet signs the gateway's offer, without an address being copied, and it becomes credit", async () => {
    const account = await chain.wallet(20);
    const requests: string[] = [];
    const visitor = await Visitor.arrive(gateway.url);
    const { page } = visitor;
    await page.exposeFunction("callWallet", async (method: string, params: string[]) => {
      requests.push(method);
      if (method === "eth_requestAccounts") return [account.address];
      if (method === "eth_chainId") return "0x1";
      if (method !== "eth_signTypedData_v4") return null;
      const { EIP712Domain: _, ...types } = JSON.parse(params[1]!).types;
      return account.signTypedData({ ...JSON.parse(params[1]!), types });
    });
    await page.addInitScript(() => {
      const of = globalThis as unknown as { ethereum: unknown; callWallet(...of: unknown[]): unknown };
      of.ethereum = {
        request: ({ method, params }: { method: string; params?: unknown }) =>
          of.callWallet(method, params ?? []),
      };
    });
    await visitor.recover(owner.recovery_secret);
    await visitor.link("Credit").click();
    await visitor.field("Amount in dollars").fill("3");
    await visitor.button("Pay with my wallet").click();
    await page.getByText("$3.00 was added to the balance.").waitFor();
    expect(requests).toEqual([
      "eth_requestAccounts",
      "eth_chainId",
      "wallet_switchEthereumChain",
      "eth_signTypedData_v4",
    ]);
    expect([await chain.balanceOf(account.address), await chain.balanceOf(PAY_TO)]).toEqual([17, 3]);
    expect((await page.content()).toLowerCase()).not.toContain(PAY_TO.toLowerCase());
  });

  test("the operator looks over all payments and refunds one", async () => {
    const visitor = await Visitor.arrive(gateway.url);
    const { page } = visitor;
    await visitor.operate();
    await visitor.link("Payments").click();
    await visitor.link(owner.balance_id).waitFor();
    await page.getByRole("row", { name: /visa/ }).getByRole("button", { name: "Refund" }).click();
    await page.getByText("$7.50 are taken back").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Refund" }).click();
    await page.getByRole("cell", { name: "refunded" }).waitFor();
    await visitor.field("State").selectOption("held");
    await visitor.heading("No payments").waitFor();
    // Somebody else's order comes to a dollar less than was asked for.
    const asOwner = { bearer: owner.recovery_secret, json: { amount_usd: 9, rail: "card" } };
    const { id } = (await gateway.send("POST", "/v1/credits", asOwner)).json;
    stripe.opened.at(-1)!.total -= 100;
    await paidAtStripe();
    const held = async () => (await gateway.admin("/admin/payments?state=held")).json.data.length === 1;
    await until(held);
    await page.reload();
    await visitor.button("Decide").click();
    await visitor.field("Note").fill("It was a test.");
    await page.getByRole("dialog").getByRole("button", { name: "Decide" }).click();
    await visitor.heading("No payments").waitFor();
    const decided = await gateway.send("GET", `/v1/payments/${id}`, { bearer: owner.recovery_secret });
    expect(decided.json).toMatchObject({ state: "credited", reason: "It was a test.", credited_usd: 8 });
  });
});

const PAY_TO = somewhere();
