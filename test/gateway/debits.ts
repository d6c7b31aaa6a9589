import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type OpenGateway, open } from "./open.ts";

/**
 * What is promised of credit that is taken back, whatever the store and however many gateways. A request
 * holds exactly $0.001 and costs $0.00001.
 */
export function testDebits(count: number, store: () => Promise<string>): void {
  let host: FakeHost;
  let gateways: OpenGateway[] = [];
  let held: Gate<void> = gate();
  let arrivals = 0;

  beforeAll(async () => {
    const { whole } = chatText(["ok"], { input: 10, output: 1 });
    host = await startFakeHost((request) => async (wire, seen) => {
      arrivals += 1;
      if (request.text().includes("wait")) await held.passed;
      await json(whole)(wire, seen);
    });
    const where = await store();
    const config = `${oneHost(host.url)}
setup: { accountless_keys_per_address_per_hour: 1000 }
generation: { first_token_ms: 60000, max_hosts: 3 }
${where}`;
    gateways = await Promise.all(Array.from({ length: count }, () => open(config)));
  });
  afterAll(async () => {
    held.open();
    for (const gateway of gateways) await gateway.close();
    await host.close();
  });

  let turn = 0;
  const any = () => gateways[turn++ % count]!;
  const debit = (balance_id: string, amount_usd: number | "all", more: object = {}) =>
    any().admin("/admin/debits", { balance_id, amount_usd, idempotency_key: crypto.randomUUID(), ...more });
  /** What one gateway charged, the others know within some milliseconds. */
  const expectLeft = ({ key }: { key: string }, usd: number) =>
    until(async () => (await any().send("GET", "/v1/me", { bearer: key })).json.available_usd === usd);
  const chat = (key: string, words: string) =>
    any().chat(key, { messages: [{ role: "user", content: words }] });
  const inOrder = async () => {
    for (const gateway of gateways) {
      expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({ ok: true, drift_nano: "0" });
    }
  };

  test("what was credited too much is taken back, and its owner sees it with its note", async () => {
    const owner = await any().key(1_000);
    const taken = await debit(owner.balance_id, 990, { note: "credited 1000 for 10" });
    expect(taken.status).toBe(200);
    expect(taken.json).toMatchObject({ balance_id: owner.balance_id, amount_usd: 990 });
    await expectLeft(owner, 10);
    const { json: list } = await any().send("GET", "/v1/credits", { bearer: owner.recovery_secret });
    expect(list.data.map(({ amount_usd, note }: never) => [amount_usd, note])).toEqual([
      [-990, "credited 1000 for 10"],
      [1_000, null],
    ]);
    const path = `/admin/balances/${owner.balance_id}/credits`;
    const { json: known } = await any().admin(`${path}?limit=1`);
    expect(known).toMatchObject({
      has_more: true,
      data: [{ ...list.data[0], idempotency_key: expect.any(String) }],
    });
    await inOrder();
  });

  test("a refund takes all that is left, to the last nano-dollar", async () => {
    const owner = await any().key(0.01);
    for (let request = 0; request < 3; request++) expect((await chat(owner.key, "hello")).status).toBe(200);
    const { status, json } = await debit(owner.balance_id, "all");
    expect([status, json.amount_usd]).toEqual([200, 0.00997]);
    await expectLeft(owner, 0);
    expect((await chat(owner.key, "hello")).status).toBe(402);
    await inOrder();
  });

  test("a key names its balance as well", async () => {
    const owner = await any().key(1);
    const body = { key_id: owner.id, amount_usd: 1, idempotency_key: crypto.randomUUID() };
    expect((await any().admin("/admin/debits", body)).json.balance_id).toBe(owner.balance_id);
    await expectLeft(owner, 0);
  });

  test.each(["all", 4] as const)(
    "repeated, of %p, it gives the same answer and is taken once",
    async (amount) => {
      const owner = await any().key(10);
      const same = { idempotency_key: crypto.randomUUID() };
      const replies = await Promise.all([1, 2, 3, 4].map(() => debit(owner.balance_id, amount, same)));
      await any().credit(owner.balance_id, 2);
      replies.push(await debit(owner.balance_id, amount, same));
      for (const { status, json } of replies) {
        expect(status).toBe(200);
        expect(json).toEqual(replies[0]!.json);
      }
      await expectLeft(owner, amount === "all" ? 2 : 8);
      await inOrder();
    },
  );

  describe("is refused, and nothing is taken,", () => {
    test("when more is asked for than is available, which is named", async () => {
      const owner = await any().key(0.005);
      const spent = await chat(owner.key, "hello");
      expect(spent.status).toBe(200);
      const { status, json } = await debit(owner.balance_id, 0.005);
      expect(status).toBe(400);
      expect(json.error).toMatchObject({ code: "invalid_request", param: "amount_usd" });
      expect(json.error.message).toStartWith(
        `0.005 USD cannot be taken back: 0.00499 USD of ${owner.balance_id} is available now`,
      );
      await expectLeft(owner, 0.00499);
    });

    test("when there is nothing", async () => {
      const owner = await any().key(0);
      for (const amount of ["all", 0.000000001] as const) {
        const { status, json } = await debit(owner.balance_id, amount);
        expect([status, json.error.param]).toEqual([400, "amount_usd"]);
      }
    });

    const wrong: [why: string, body: object, param: string][] = [
      ["for zero", { amount_usd: 0 }, "amount_usd"],
      ["for less than zero", { amount_usd: -1 }, "amount_usd"],
      ["for a tenth decimal", { amount_usd: 0.0000000001 }, "amount_usd"],
      ["for another word than all", { amount_usd: "everything" }, "amount_usd"],
      ["for an unknown balance", { balance_id: "bal_none" }, "balance_id"],
      ["for a balance and a key", { key_id: "key_none" }, "balance_id"],
      ["without an idempotency key", { idempotency_key: undefined }, "idempotency_key"],
      ["for a field that it does not have", { reason: "refund" }, "reason"],
    ];
    test.each(wrong)("%s", async (_, body, param) => {
      const owner = await any().key(1);
      const { status, json } = await debit(owner.balance_id, 1, body);
      expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", param]);
      await expectLeft(owner, 1);
    });

    test("when the idempotency key was used for something else", async () => {
      const [owner, other] = [await any().key(10), await any().key(10)];
      const [ten, all, credited] = [1, 2, 3].map(() => ({ idempotency_key: crypto.randomUUID() }));
      expect((await debit(owner.balance_id, 4, ten)).status).toBe(200);
      expect((await debit(other.balance_id, "all", all)).status).toBe(200);
      await any().admin("/admin/credits", { balance_id: other.balance_id, amount_usd: 4, ...credited });
      const credit = { balance_id: owner.balance_id, amount_usd: 4, ...ten };
      for (const reply of [
        await debit(owner.balance_id, 3, ten),
        await debit(owner.balance_id, "all", ten),
        await debit(other.balance_id, 4, ten),
        await debit(other.balance_id, 10, all),
        await debit(other.balance_id, 4, credited),
        await any().admin("/admin/credits", credit),
      ]) {
        expect([reply.status, reply.json.error.param]).toEqual([400, "idempotency_key"]);
      }
      await expectLeft(owner, 6);
      await expectLeft(other, 4);
    });
  });

  test("what open requests hold stays until they end, and then the rest of it can be taken", async () => {
    held = gate();
    const owner = await any().key(0.01);
    const before = arrivals;
    const open = [1, 2, 3].map(() => chat(owner.key, "wait"));
    await until(() => arrivals >= before + 3);
    expect((await debit(owner.balance_id, 0.008)).status).toBe(400);
    expect((await debit(owner.balance_id, "all")).json.amount_usd).toBe(0.007);
    held.open();
    for (const reply of await Promise.all(open)) expect(reply.status).toBe(200);
    expect((await debit(owner.balance_id, "all")).json.amount_usd).toBe(0.00297);
    await inOrder();
  });

  test("together with as many requests at once, no more is taken and held than there is", async () => {
    held = gate();
    const owner = await any().key(0.02);
    const before = arrivals;
    let refused = 0;
    let taken = 0;
    const requests = Array.from({ length: 60 }, async () => {
      const { status } = await chat(owner.key, "wait");
      if (status !== 200) refused += 1;
    });
    const debits = Array.from({ length: 30 }, async () => {
      const { status } = await debit(owner.balance_id, 0.001);
      if (status === 200) taken += 1;
      else expect(status).toBe(400);
    });
    await Promise.all(debits);
    await until(() => refused + arrivals - before >= 60);
    const admitted = arrivals - before;
    expect(taken + admitted).toBeLessThanOrEqual(20);
    held.open();
    await Promise.all(requests);
    const rest = await debit(owner.balance_id, "all");
    const spent = 10_000 * admitted;
    expect(Math.round((rest.json.amount_usd ?? 0) * 1e9)).toBe(20_000_000 - 1_000_000 * taken - spent);
    await expectLeft(owner, 0);
    await inOrder();
  });
}
