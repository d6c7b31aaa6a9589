import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { json } from "../fakes/behaviours.ts";
import { LocalChain, type SignedTransfer, signTransfer } from "../fakes/chain/chain.ts";
import { FakeFacilitator, MOODS } from "../fakes/facilitator.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import type { Made, OpenGateway } from "../gateway/open.ts";
import {
  balanceOf,
  during,
  lineUps,
  offerOf,
  openQuick,
  order,
  type PaidConfig,
  paidConfig,
  payer,
  paying,
  paymentsOf,
  signedOffer,
  somewhere,
} from "./paid-gateway.ts";

/** What goes wrong between a signature and its credit. Whatever it is, money that moved is credited once. */
let facilitator: FakeFacilitator;
let gateway: OpenGateway;
let payTo: `0x${string}`;
let mine: Made;
let wallet: PrivateKeyAccount;

/** Requests wait until their payment is decided, however slow the machine is. */
const PATIENT = ", wait_ms: 60000";
/** Requests do not wait for what is not to come about. */
const HURRIED = ", wait_ms: 300";

const chain = await LocalChain.start();
const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
afterAll(async () => {
  await host.close();
  chain.stop();
});

interface World extends Partial<Pick<PaidConfig, "more" | "network" | "chain" | "settledBy">> {}

async function begin({ chain: on = chain, ...config }: World = {}): Promise<void> {
  await on.minesAtOnce(true);
  facilitator = new FakeFacilitator(on);
  payTo = somewhere();
  const settledBy = `facilitator: "${facilitator.url}"`;
  gateway = await openQuick(
    paidConfig({ chain: on, payTo, host: host.url, settledBy, network: PATIENT, ...config }),
  );
  mine = await payer(gateway);
  wallet = await on.wallet(100);
}

afterEach(async () => {
  const { json } = await gateway.admin("/admin/ledger/audit");
  await gateway.close();
  await facilitator.stop();
  expect(json.ok).toBe(true);
});

/** Its set-up key claims the balance for an account that signs in by a wallet. */
async function claimed({ key }: Made): Promise<void> {
  const owner = privateKeyToAccount(generatePrivateKey());
  const json = { address: owner.address, chain_id: 1 };
  const { message } = (await gateway.send("POST", "/v1/auth/wallet", { json })).json;
  const wallet = { message, signature: await owner.signMessage({ message }) };
  const { status, text } = await gateway.send("POST", "/v1/me/claim", { bearer: key, json: { wallet } });
  if (status !== 200) throw new Error(`the claim was answered ${status}: ${text}`);
}

const state = async () => (await paymentsOf(gateway, mine.key))[0]?.state;
const credited = (usd: number) => async () => (await balanceOf(gateway, mine.key)) === usd;
const chat = (pay: typeof fetch, headers = {}) =>
  pay(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${mine.key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({
      model: "test/model",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hi" }],
    }),
  });

const signature = (usd: number, key = mine.key, from = wallet) => signedOffer(gateway, key, usd, from);
const transferIn = (header: string): SignedTransfer => JSON.parse(atob(header)).payload;
const present = (header: string, usd: number, key = mine.key) =>
  order(gateway, key, usd, fetch, { "payment-signature": header });

describe("the facilitator", () => {
  test("loses its answer after it moved: it is credited all the same, at once", async () => {
    await begin();
    facilitator.mood = MOODS["504 after it moved"];
    expect((await order(gateway, mine.key, 3, paying(wallet, 5))).status).toBe(201);
    expect([await balanceOf(gateway, mine.key), await chain.balanceOf(payTo)]).toEqual([3, 3]);
    expect(facilitator.requests).toBe(1);
  });

  for (const mood of ["lying", "garbage"] as const) {
    test(`${mood}: nothing is credited; what is asked meanwhile is not to be paid again; later it is asked again`, async () => {
      await begin({ network: HURRIED });
      facilitator.mood = MOODS[mood];
      const answer = await order(gateway, mine.key, 3, paying(wallet, 5));
      expect([answer.status, await balanceOf(gateway, mine.key)]).toEqual([202, 0]);
      expect(answer.headers.get("location")).toMatch(/^\/v1\/payments\/pay_/);
      const meanwhile = await chat(paying(wallet, 5));
      expect([meanwhile.status, meanwhile.headers.has("retry-after")]).toEqual([500, true]);
      expect(await meanwhile.text()).toContain((await paymentsOf(gateway, mine.key))[0]!.id);
      facilitator.mood = MOODS.honest;
      await until(credited(3));
      expect([await chain.balanceOf(payTo), (await chat(fetch)).status]).toEqual([3, 200]);
    });
  }

  test("names a transaction of somebody else's: that is not this payment", async () => {
    await begin({ network: HURRIED });
    const other = await chain.wallet(10);
    const foreign = await signature(3, mine.key, other);
    const transaction = await chain.carryOut(transferIn(foreign));
    facilitator.mood = async () => Response.json({ success: true, transaction });
    expect((await order(gateway, mine.key, 3, paying(wallet, 5))).status).toBe(202);
    expect(await balanceOf(gateway, mine.key)).toBe(0);
  });

  test("carries out another amount by the same nonce: that is held for the operator", async () => {
    await begin();
    const header = await signature(3);
    const { authorization } = transferIn(header);
    const less = { ...authorization, value: "1000000" };
    const signed = await signTransfer(wallet, less);
    facilitator.mood = async (_, on) =>
      Response.json({
        success: true,
        transaction: await on.carryOut(signed),
      });
    const answer = await present(header, 3);
    expect([answer.status, await state(), await balanceOf(gateway, mine.key)]).toEqual([202, "held", 0]);
    const { data } = (await gateway.admin("/admin/payments?state=held")).json;
    expect(data).toHaveLength(1);
    expect([data[0].amount_usd, data[0].reason]).toEqual([1, expect.stringContaining("$3.00 were ordered")]);
    const resolve = (as: string) => gateway.admin(`/admin/payments/${data[0].id}/resolve`, { as });
    // The balance can be credited with half a dollar more.
    const credit = { balance_id: mine.balance_id, amount_usd: 7_999_999.5, idempotency_key: "most" };
    expect((await gateway.admin("/admin/credits", credit)).status).toBe(200);
    const full = { state: "held", credited_usd: 0, reason: expect.stringContaining("counted exactly") };
    expect((await resolve("credited")).json).toMatchObject(full);
    const debit = { balance_id: mine.balance_id, amount_usd: "all", idempotency_key: "all" };
    expect((await gateway.admin("/admin/debits", debit)).status).toBe(200);
    expect((await resolve("credited")).json).toMatchObject({ state: "credited", credited_usd: 1 });
    expect((await resolve("refunded")).status).toBe(400);
    expect(await balanceOf(gateway, mine.key)).toBe(1);
  });

  test("is away: nothing moves, and a payer who retries in time is credited once it is back", async () => {
    await begin({ network: HURRIED });
    await facilitator.stop();
    const header = await signature(2);
    expect((await present(header, 2)).status).toBe(202);
    facilitator.restart();
    await until(credited(2));
    const again = await present(header, 2);
    expect([again.status, (await again.json()).balance_usd]).toEqual([201, 2]);
    expect(await chain.balanceOf(payTo)).toBe(2);
  });
});

test.each([0, 1])("a wallet that ends its signature in %i, as hardware does, has signed", async (parity) => {
  await begin();
  // The last byte of a signature says one or the other.
  for (;;) {
    const payment = JSON.parse(atob(await signature(2)));
    const plain: string = payment.payload.signature;
    if (Number.parseInt(plain.slice(-2), 16) !== 27 + parity) continue;
    payment.payload.signature = `${plain.slice(0, -2)}0${parity}`;
    expect((await present(btoa(JSON.stringify(payment)), 2)).status).toBe(201);
    expect(await balanceOf(gateway, mine.key)).toBe(2);
    return;
  }
});

describe("the chain", () => {
  test("mines nothing: nothing is credited, nobody is to pay again, and it is credited when it does", async () => {
    await begin({ network: HURRIED });
    const pay = paying(wallet, 5);
    await chain.minesAtOnce(false);
    const answer = await chat(pay);
    expect([answer.status, answer.headers.has("payment-required")]).toEqual([500, false]);
    expect((await chat(pay)).status).toBe(500);
    await chain.mine();
    await until(credited(5));
    expect([(await chat(pay)).status, await chain.balanceOf(payTo)]).toEqual([200, 5]);
  });

  test("drops the block after the credit: the same transfer is made again, and credited once", async () => {
    await begin();
    expect((await order(gateway, mine.key, 4, paying(wallet, 5))).status).toBe(201);
    const release = facilitator.holdBack();
    await chain.reorg(1);
    expect(await chain.balanceOf(payTo)).toBe(0);
    release();
    await until(async () => (await chain.balanceOf(payTo)) === 4);
    expect([await balanceOf(gateway, mine.key), await state()]).toEqual([4, "credited"]);
  });

  test("goes back by two blocks, and the transfer is in the first that takes their place: it is credited", async () => {
    await begin({ network: HURRIED });
    await chain.mine(5);
    const id = await chain.client.snapshot();
    await chain.mine(2);
    facilitator.mood = MOODS.lying;
    const header = await signature(2);
    expect((await present(header, 2)).status).toBe(202);
    await chain.client.revert({ id });
    facilitator.mood = MOODS.honest;
    await until(credited(2));
  });

  test("has not finalised it: a large amount waits for that, a small one does not", async () => {
    await begin({ network: `${PATIENT}, finalized_above_usd: 10` });
    expect((await order(gateway, mine.key, 9, paying(wallet, 50))).status).toBe(201);
    const large = order(gateway, mine.key, 10, paying(wallet, 50));
    await during([large], async () => (await state()) === "confirming");
    expect(await balanceOf(gateway, mine.key)).toBe(9);
    await chain.mine(5);
    expect([(await large).status, await balanceOf(gateway, mine.key)]).toEqual([201, 19]);
  });

  test("is away: nothing can be offered, and nothing moves", async () => {
    const stopped = await LocalChain.start();
    await begin({ chain: stopped });
    const header = await signature(2);
    stopped.stop();
    await until(() =>
      fetch(stopped.rpc, { method: "POST" }).then(
        () => false,
        () => true,
      ),
    );
    expect((await present(header, 2)).status).toBe(500);
    expect(facilitator.requests).toBe(0);
  });
});

describe("who pays", () => {
  test("by one authorization at two balances is credited at the first", async () => {
    await begin();
    const other = await payer(gateway);
    const header = await signature(2);
    const answers = await Promise.all([
      present(header, 2),
      present(header, 2, other.key),
      present(header, 2),
    ]);
    const sums = [await balanceOf(gateway, mine.key), await balanceOf(gateway, other.key)];
    expect([sums.toSorted(), await chain.balanceOf(payTo)]).toEqual([[0, 2], 2]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual(
      sums[0] === 2 ? [201, 201, 402] : [201, 402, 402],
    );
  });

  test("again under one Idempotency-Key, by another signature, has paid once", async () => {
    await begin();
    const keyed = { "idempotency-key": "order-1" };
    const pay = () => order(gateway, mine.key, 2, paying(wallet, 5), keyed);
    expect([(await pay()).status, (await pay()).status]).toEqual([201, 201]);
    expect(await chain.balanceOf(payTo)).toBe(2);
  });

  test("too little, too much a day, elsewhere or nonsense is refused, and nothing moves", async () => {
    await begin({
      more: "  amounts: { max_usd: 50, max_usd_per_day: 60 }\n  inline: { max_usd_per_hour: 3 }",
    });
    const poor = await chain.wallet(1);
    expect((await order(gateway, mine.key, 50, paying(wallet, 100))).status).toBe(201);
    const outcomeOf = async (response: Promise<Response>) => {
      const { status, headers } = await response;
      return `${status}${headers.has("payment-required") ? " offer" : ""}`;
    };
    const header = await signature(5);
    const changed = (
      change: (payment: { accepted: Record<string, unknown>; payload: SignedTransfer }) => unknown,
    ) => {
      const payment = JSON.parse(atob(header));
      change(payment);
      return btoa(JSON.stringify(payment));
    };
    const other = somewhere();
    expect(
      await Promise.all([
        outcomeOf(order(gateway, mine.key, 51, fetch)),
        outcomeOf(order(gateway, mine.key, 0.5, fetch)),
        outcomeOf(order(gateway, mine.key, 11, paying(wallet, 100))),
        outcomeOf(order(gateway, mine.key, 2, paying(poor, 100))),
        outcomeOf(present("nonsense", 5)),
        outcomeOf(present(header, 4)),
        outcomeOf(
          present(
            changed((one) => {
              one.accepted.payTo = other;
            }),
            5,
          ),
        ),
        outcomeOf(
          present(
            changed((one) => {
              one.accepted.network = "eip155:1";
            }),
            5,
          ),
        ),
        outcomeOf(
          present(
            changed(({ accepted, payload }) => {
              accepted.amount = "05000000";
              Object.assign(payload.authorization, { value: "05000000" });
            }),
            5,
          ),
        ),
        outcomeOf(
          present(
            changed(({ payload }) => {
              Object.assign(payload.authorization, { validBefore: "1" });
            }),
            5,
          ),
        ),
        outcomeOf(
          present(
            changed(({ payload }) => {
              Object.assign(payload, { signature: `0x${"11".repeat(65)}` });
            }),
            5,
          ),
        ),
      ]),
    ).toEqual([
      "400",
      "400",
      "429",
      "402 offer",
      "402 offer",
      "402 offer",
      "402 offer",
      "402 offer",
      "402 offer",
      "402 offer",
      "402 offer",
    ]);
    const another = await payer(gateway);
    mine = another;
    expect((await chat(paying(wallet, 10))).status).toBe(429);
    expect([await chain.balanceOf(payTo), facilitator.requests]).toEqual([50, 1]);
  });

  test("by one wallet into six balances at once waits beyond four, which may be for the same money", async () => {
    await begin();
    const payers = await Promise.all(Array.from({ length: 6 }, () => payer(gateway)));
    const headers: string[] = [];
    for (const { key } of payers) headers.push(await signature(2, key));
    const release = facilitator.holdBack();
    const send = (n: number) => present(headers[n]!, 2, payers[n]!.key);
    const four = [0, 1, 2, 3].map(send);
    await during(four, () => facilitator.requests === 4);
    const more = await Promise.all([4, 5].map(send));
    expect(more.map((one) => [one.status, one.headers.get("retry-after")])).toEqual([
      [429, "5"],
      [429, "5"],
    ]);
    expect(await paymentsOf(gateway, payers[5]!.key)).toEqual([]);
    release();
    expect((await Promise.all(four)).map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect((await send(5)).status).toBe(201);
  });

  test("for an answer that another request has paid for is noted only where the transfer is signed", async () => {
    await begin({ more: "  amounts: { max_usd: 5, max_usd_per_day: 5 }" });
    const [first, forged, signed] = await Promise.all(
      [wallet, await chain.wallet(10), await chain.wallet(10)].map((from) => signature(5, mine.key, from)),
    );
    const payment = JSON.parse(atob(forged!));
    payment.payload.signature = `0x${"11".repeat(65)}`;
    const release = facilitator.holdBack();
    const lined = lineUps();
    const send = (header: string) => chat(fetch, { "payment-signature": header });
    const answers = [send(first!)];
    await during(answers, () => facilitator.requests === 1);
    answers.push(send(btoa(JSON.stringify(payment))), send(signed!));
    await during(answers, () => lined() === 3);
    release();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const states = async () => (await paymentsOf(gateway, mine.key)).map((one) => one.state).toSorted();
    await until(async () => (await states()).includes("unused"));
    // No cap was looked at for it, so nobody but its payer has it carried out.
    expect([(await present(signed!, 5)).status, await balanceOf(gateway, mine.key)]).toEqual([
      402,
      expect.closeTo(5, 1),
    ]);
    expect(facilitator.requests).toBe(1);
    // Somebody else's, for something else that the same address sells.
    await chain.carryOut(transferIn(forged!));
    await chain.carryOut(transferIn(signed!));
    await until(async () => (await states()).join() === "credited,held");
    expect(await balanceOf(gateway, mine.key)).toBeCloseTo(5, 1);
  });

  test("from a listed address by their own hand, for an answer that is paid for already, gets no credit", async () => {
    const listed = privateKeyToAccount(generatePrivateKey());
    const list = join(process.env.TMPDIR ?? "/tmp", `pay-list-${crypto.randomUUID()}`);
    await Bun.write(list, `${listed.address}\n`);
    await begin({ more: `  sanctions: { list: "${list}" }` });
    await chain.mint(listed.address, 50);
    const [first, second] = await Promise.all([signature(5), signature(5, mine.key, listed)]);
    const release = facilitator.holdBack();
    const lined = lineUps();
    const send = (header: string) => chat(fetch, { "payment-signature": header });
    const answers = [send(first!)];
    await during(answers, () => facilitator.requests === 1);
    answers.push(send(second!));
    await during(answers, () => lined() === 2);
    release();
    await Promise.all(answers);
    await until(async () => (await paymentsOf(gateway, mine.key)).some((one) => one.state === "unused"));
    await chain.carryOut(transferIn(second!));
    await until(async () => (await paymentsOf(gateway, mine.key)).every((one) => one.state !== "unused"));
    expect((await paymentsOf(gateway, mine.key)).map((one) => one.state)).toEqual(["held", "credited"]);
    await until(async () => (await chat(fetch)).status === 403);
    await Bun.file(list).delete();
  });

  test("from a listed address is turned down before anybody is asked, and the balance is suspended", async () => {
    const listed = privateKeyToAccount(generatePrivateKey());
    const list = join(process.env.TMPDIR ?? "/tmp", `pay-list-${crypto.randomUUID()}`);
    await Bun.write(list, `# listed\n${listed.address}  # somebody\n`);
    await begin({ more: `  sanctions: { list: "${list}" }` });
    await chain.mint(listed.address, 50);
    const answer = await order(gateway, mine.key, 2, paying(listed, 5));
    expect([answer.status, (await answer.json()).error.code]).toEqual([403, "account_suspended"]);
    expect([facilitator.requests, (await chat(fetch)).status]).toEqual([0, 403]);
    expect((await gateway.send("GET", "/v1/me", { bearer: mine.key })).json.suspended).toBe("sanctions");
    // Without its list, nobody is let in.
    await Bun.file(list).delete();
  });

  test.each([
    ["an agent's key", false],
    ["the set-up key of a balance that an account owns", false],
    ["the recovery secret", true],
  ])("from a listed address with %s is refused; suspends the balance: %p", async (credential, suspends) => {
    const listed = privateKeyToAccount(generatePrivateKey());
    const list = join(process.env.TMPDIR ?? "/tmp", `pay-list-${crypto.randomUUID()}`);
    await Bun.write(list, `${listed.address}\n`);
    await begin({ more: `  sanctions: { list: "${list}" }` });
    await chain.mint(listed.address, 50);
    const owner = mine.recovery_secret;
    const agent = (await gateway.send("POST", "/v1/keys", { bearer: owner, json: { daily_limit_usd: 1 } }))
      .json;
    const bearers: Record<string, string> = {
      "an agent's key": agent.key,
      "the recovery secret": owner,
    };
    if (credential.startsWith("the set-up key")) await claimed(mine);
    const bearer = bearers[credential] ?? mine.key;
    const refused = await order(gateway, bearer, 2, paying(listed, 5));
    const { code, message } = (await refused.json()).error;
    expect([refused.status, code]).toEqual(suspends ? [403, "account_suspended"] : [400, "invalid_request"]);
    expect(message).toContain("sanctions");
    expect((await gateway.send("GET", "/v1/me", { bearer: mine.key })).json.suspended).toBe(
      suspends ? "sanctions" : null,
    );
    if (bearer !== owner) {
      mine = { ...mine, key: bearer };
      const inline = await chat(paying(listed, 5));
      expect([inline.status, (await inline.json()).error.code]).toEqual([400, "invalid_request"]);
    }
    const { data } = (await gateway.admin("/admin/payments?state=rejected")).json;
    expect(data.map((one: { reason: string }) => one.reason.includes("was not suspended"))).toEqual(
      suspends ? [false] : [true, true],
    );
    expect([facilitator.requests, await chain.balanceOf(payTo)]).toEqual([0, 0]);
    await Bun.file(list).delete();
  });

  test("gets the money back by the operator's hand: the credit first, and only if all of it is there", async () => {
    await begin();
    await order(gateway, mine.key, 2, paying(wallet, 5));
    const [{ id }] = (await paymentsOf(gateway, mine.key)) as unknown as [{ id: string }];
    const refund = () => gateway.admin(`/admin/payments/${id}/refund`, {});
    // Until then the chain may take it back from the operator too.
    expect([(await refund()).status, await balanceOf(gateway, mine.key)]).toEqual([400, 2]);
    await chain.mine(5);
    await until(async () => (await refund()).status === 200);
    expect((await refund()).json).toMatchObject({
      state: "refunded",
      credited_usd: 0,
      payer: wallet.address.toLowerCase(),
    });
    expect([(await refund()).status, await balanceOf(gateway, mine.key)]).toEqual([200, 0]);
  });

  test("for a balance whose secrets nobody has saved sees no address to pay to, on any page or endpoint", async () => {
    await begin();
    const unsaved = await gateway.key(0);
    mine = unsaved;
    const seen: string[] = [];
    const { paths } = (await gateway.send("GET", "/openapi.json")).json;
    for (const [path, methods] of Object.entries<Record<string, unknown>>(paths)) {
      for (const method of Object.keys(methods)) {
        if (path === "/v1/me" && method === "delete") continue;
        for (const bearer of [unsaved.key, unsaved.recovery_secret, undefined]) {
          const response = await fetch(gateway.url + path.replaceAll(/\{\w+\}/g, "x"), {
            method: method.toUpperCase(),
            headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
            ...(method === "post"
              ? {
                  body: JSON.stringify({
                    amount_usd: 2,
                    model: "test/model",
                    max_tokens: 100,
                    messages: [{ role: "user", content: "Hi" }],
                  }),
                }
              : {}),
          });
          seen.push(JSON.stringify([...response.headers]), await response.text());
        }
      }
    }
    const all = seen.join("\n");
    for (const word of [payTo, "payment-required"])
      expect(all.toLowerCase()).not.toContain(`${word.toLowerCase()}"`);
    expect(all).not.toContain(btoa("x402Version").slice(0, 12));
    expect(await (await chat(fetch)).text()).toContain("POST /v1/me/saved");
    const { status, headers } = await order(gateway, unsaved.key, 2, fetch);
    expect([status, offerOf({ headers })]).toEqual([400, null]);
  });
});

describe("a gas account", () => {
  test("sends twelve at once", async () => {
    await begin({ settledBy: `gas_key: "${await chain.gasKey()}"` });
    const many = await Promise.all(Array.from({ length: 12 }, () => payer(gateway)));
    const wallets = await Promise.all(many.map(() => chain.wallet(5)));
    const answers = await Promise.all(
      many.map(({ key }, index) => order(gateway, key, 2, paying(wallets[index]!, 5))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(201));
    expect(await chain.balanceOf(payTo)).toBe(24);
  });
});
