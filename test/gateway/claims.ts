import { afterAll, beforeAll, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { type FakeSession, FakeStripe, signedEvent } from "../fakes/stripe.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "../process/gateway.ts";
import { rounds } from "../rounds.ts";
import { Random } from "../sim/random.ts";

/** Gateways on one store. */
export interface Served {
  readonly urls: readonly string[];
  stop(): Promise<void>;
  /** Kills the gateway and starts it again; absent where it is no process of its own. */
  restart?(gateway: number): Promise<void>;
}

/**
 * What is promised of a payment that is taken back while requests hold its credit, whatever the store and however many
 * gateways, of which so many are processes that can be killed. A request holds exactly $1 and costs $0.01.
 */
export function testClaims(start: (config: string) => Promise<Served>, processes = 0): void {
  const stripe = new FakeStripe();
  let host: FakeHost;
  let served: Served;
  let held: Gate<void> = gate();
  /** Gates of requests that are released one by one, by name. */
  const gates = new Map<string, Gate<void>>();
  let arrivals = 0;

  beforeAll(async () => {
    const { whole } = chatText(["ok"], { input: 10, output: 1 });
    host = await startFakeHost((request) => async (wire, seen) => {
      arrivals += 1;
      const waits = /wait(?: (\w+))?/.exec(request.text());
      if (waits !== null) await (gates.get(waits[1] ?? "") ?? held).passed;
      await json(whole)(wire, seen);
    });
    served = await start(`${oneHost(host.url).replace("output: 10 }", "output: 10000 }")}
setup: { accountless_keys_per_address_per_hour: 1000 }
generation: { first_token_ms: 60000, max_hosts: 3 }
payments: { stripe: { secret_key: sk_test_1, webhook_secret: whsec_1, api_base: "${stripe.url}" } }
`);
  }, 600_000);
  afterAll(async () => {
    held.open();
    await served.stop();
    await host.close();
    await stripe.close();
  });

  let turn = 0;
  const any = () => served.urls[turn++ % served.urls.length]!;
  const send = async (method: string, path: string, bearer: string, body?: object) => {
    const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(any() + path, { method, headers, ...sent });
    // biome-ignore lint/suspicious/noExplicitAny: tests read whatever the server said
    return { status: answer.status, json: (await answer.json()) as any };
  };
  const chat = (key: string, content: string) =>
    send("POST", "/v1/chat/completions", key, { model: "test/model", messages: [{ role: "user", content }] });

  /** A balance with $10 that was paid by card. */
  async function paid(usd = 10): Promise<Paid> {
    const made = await fetch(`${any()}/v1/keys`, { method: "POST" });
    const { key, recovery_secret: owner } = (await made.json()) as Record<"key" | "recovery_secret", string>;
    await send("POST", "/v1/me/saved", owner, { key });
    const { json: ordered } = await send("POST", "/v1/credits", owner, { rail: "card", amount_usd: usd });
    const session = stripe.opened.find(({ payment }) => payment === ordered.id)!;
    stripe.pay(session);
    await show({ id: session.id, metadata: { payment_id: ordered.id } });
    await until(async () => (await me(owner)).balance_usd === usd);
    return { key, owner, id: ordered.id, session };
  }

  interface Paid {
    readonly key: string;
    readonly owner: string;
    readonly id: string;
    readonly session: FakeSession;
  }

  async function show(object: object): Promise<void> {
    const { body, signature } = await signedEvent("any", object, { secret: "whsec_1", at: Date.now() });
    const headers = { "stripe-signature": signature };
    const { status } = await fetch(`${any()}/webhooks/stripe`, { method: "POST", body, headers });
    expect(status).toBe(200);
  }

  const me = async (owner: string) => (await send("GET", "/v1/me", owner)).json;
  const payment = async ({ id }: Paid) => {
    const { data } = (await send("GET", "/admin/payments", ADMIN)).json;
    return data.find((one: { id: string }) => one.id === id);
  };
  const became = (who: Paid, what: object) =>
    until(async () => Bun.deepMatch(what, (await payment(who)) ?? {}));
  const inOrder = () =>
    until(async () => {
      const { json: audit } = await send("GET", "/admin/ledger/audit", ADMIN);
      return audit.ok === true;
    });

  /** So many requests, which hold $1 each until `held` is opened. */
  async function open(key: string, count: number): Promise<Promise<unknown>[]> {
    held = gate();
    const before = arrivals;
    const opening = Array.from({ length: count }, async () =>
      expect((await chat(key, "wait")).status).toBe(200),
    );
    await until(() => arrivals >= before + count);
    return opening;
  }

  async function refunded({ session }: Paid, cents: number): Promise<void> {
    session.charge!.refunded = cents;
    await show({ id: session.charge!.id, payment_intent: session.intent });
  }

  test("what requests hold is taken once they give it back, and only what they cost is lost", async () => {
    const who = await paid();
    const open_ = await open(who.key, 6);
    await refunded(who, 1_061);
    await became(who, { state: "refunded", credited_usd: 0 });
    expect((await chat(who.key, "hello")).status).toBe(402);
    held.open();
    await Promise.all(open_);
    await became(who, { state: "refunded", credited_usd: 0.06, lost_usd: 0.06 });
    expect(await me(who.owner)).toMatchObject({ balance_usd: 0, available_usd: 0 });
    expect((await chat(who.key, "hello")).status).toBe(402);
    await inOrder();
  }, 120_000);

  test("of what is left after a part was taken back, requests may hold more; nothing new is admitted until they do not", async () => {
    const who = await paid();
    const opened = await open(who.key, 6);
    await refunded(who, 800);
    await became(who, { state: "credited", credited_usd: 2 });
    expect((await chat(who.key, "hello")).status).toBe(402);
    held.open();
    await Promise.all(opened);
    await until(async () => (await me(who.owner)).available_usd === 1.94);
    await until(async () => (await chat(who.key, "hello")).status === 200);
    expect(await payment(who)).toMatchObject({ credited_usd: 2, lost_usd: 0 });
    await inOrder();
  }, 120_000);

  /** Six requests hold $1 each, half of them at each of two gateways, and the whole payment is taken back. */
  async function claimed(): Promise<{ who: Paid; answers: Promise<number[]> }> {
    const who = await paid();
    held = gate();
    const before = arrivals;
    const early: object[] = [];
    const statuses = Array.from({ length: 6 }, async () => {
      try {
        const answer = await chat(who.key, "wait");
        early.push(answer);
        return answer.status;
      } catch {
        return 0;
      }
    });
    await until(() => arrivals >= before + 6 || early.length > 0);
    expect(early).toEqual([]);
    await refunded(who, 1_061);
    await became(who, { state: "refunded", credited_usd: 0 });
    return { who, answers: Promise.all(statuses) };
  }

  if (processes > 0)
    test("what nobody was answered when the process was killed is taken back after the start", async () => {
      const { who, answers } = await claimed();
      await Promise.all(served.urls.map((_, gateway) => served.restart!(gateway)));
      held.open();
      expect(await answers).toEqual([0, 0, 0, 0, 0, 0]);
      expect((await chat(who.key, "hello")).status).toBe(402);
      await inOrder();
      expect(await payment(who)).toMatchObject({ state: "refunded", credited_usd: 0, lost_usd: 0 });
      expect(await me(who.owner)).toMatchObject({ balance_usd: 0, available_usd: 0 });
    }, 120_000);

  if (processes > 1)
    test("when one of two is killed, only what the other's requests cost is lost", async () => {
      const { who, answers } = await claimed();
      await served.restart!(1);
      expect((await chat(who.key, "hello")).status).toBe(402);
      held.open();
      expect((await answers).sort()).toEqual([0, 0, 0, 200, 200, 200]);
      await became(who, { state: "refunded", credited_usd: 0.03, lost_usd: 0.03 });
      expect((await chat(who.key, "hello")).status).toBe(402);
      expect(await me(who.owner)).toMatchObject({ balance_usd: 0, available_usd: 0 });
      await inOrder();
    }, 120_000);

  if (processes > 1)
    test(
      "random histories with kills: what customers have and spent is what they paid and did not get back",
      async () => {
        const happened = { spent: 0, lost: 0, unanswered: 0, tooPoor: 0, suspended: 0 };
        for (let seed = 0; seed < ROUNDS; seed++) {
          const random = new Random(seed);
          const customers = await Promise.all(Array.from({ length: CUSTOMERS }, () => paid()));
          const histories = customers.map((who, n) =>
            history(who, new Random(seed * CUSTOMERS + n), `s${seed}c${n}`, happened),
          );
          if (random.chance(0.8)) await served.restart!(random.below(processes));
          await Promise.all(histories);
        }
        await inOrder();
        if (ROUNDS > 2) console.log(`${ROUNDS * CUSTOMERS} histories: ${JSON.stringify(happened)}`);
      },
      ROUNDS * 60_000,
    );

  /** Refunds, disputes of parts and requests in any order, while gateways may be killed; then all of it ends. */
  async function history(
    who: Paid,
    random: Random,
    name: string,
    happened: Record<string, number>,
  ): Promise<void> {
    const charge = who.session.charge!;
    const open: string[] = [];
    const answers: Promise<number>[] = [];
    for (let step = 0; step < STEPS; step++) {
      const kind = random.pick(["request", "request", "end", "refund", "dispute", "decide"] as const);
      const { disputes } = charge;
      if (kind === "request") {
        const waits = `${name}r${step}`;
        gates.set(waits, gate());
        open.push(waits);
        const answer = chat(who.key, `wait ${waits}`).then(({ status }) => status);
        answers.push(answer.catch(() => 0));
      } else if (kind === "end") gates.get(open.shift() ?? "")?.open();
      else if (kind === "refund")
        charge.refunded = Math.min(PAID_CENTS, charge.refunded + 1 + random.below(500));
      else if (kind === "dispute" && disputes.length < 2)
        disputes.push({ id: `${name}d${step}`, status: "needs_response", amount: 1 + random.below(800) });
      else if (kind === "decide") decide(disputes, random);
      if (random.chance(0.7)) await surely(() => notify(who));
      await surely(() => me(who.owner));
    }
    for (const waits of open) gates.get(waits)!.open();
    const statuses = await Promise.all(answers);
    decide(charge.disputes, random);
    await surely(() => notify(who));
    const lost = charge.disputes.filter(({ status }) => status === "lost");
    const gone = lost.reduce((sum, { amount = 0 }) => sum + amount, charge.refunded);
    const { used_day_usd, lost_usd } = await expectBooks(who, Math.max(0, 1_000 - gone), statuses);
    if (used_day_usd > 0) happened.spent! += 1;
    if (lost_usd > 0) happened.lost! += 1;
    for (const [what, status] of [
      ["unanswered", 0],
      ["tooPoor", 402],
      ["suspended", 403],
    ] as const)
      happened[what]! += statuses.filter((one) => one === status).length;
  }

  const decide = (disputes: { status: string }[], random: Random) => {
    for (const dispute of disputes)
      if (dispute.status === "needs_response") dispute.status = random.pick(["won", "lost"]);
  };

  /** An event about the payment, of whatever kind: the gateway asks Stripe how it stands. */
  const notify = ({ session }: Paid) => show({ id: session.charge!.id, payment_intent: session.intent });

  /** Once nothing is under way: so many cents of the payment stand, unless more of it was spent. */
  async function expectBooks(who: Paid, cents: number, statuses: readonly number[]) {
    const shown = async () => {
      const { balance_usd, available_usd, held_usd } = await me(who.owner);
      const { used_day_usd } = (await send("GET", "/v1/me", who.key)).json.key;
      const { credited_usd, lost_usd } = await payment(who);
      return { balance_usd, available_usd, held_usd, used_day_usd, credited_usd, lost_usd };
    };
    const expected = (used_day_usd: number) => {
      const spent = Math.round(used_day_usd * 100);
      const balance_usd = Math.max(0, cents - spent) / 100;
      return {
        balance_usd,
        available_usd: balance_usd,
        held_usd: 0,
        used_day_usd,
        credited_usd: Math.max(cents, spent) / 100,
        lost_usd: Math.max(0, spent - cents) / 100,
      };
    };
    let last = await surely(shown);
    await until(async () => {
      last = await surely(shown);
      return Bun.deepEquals(last, expected(last.used_day_usd));
    }).catch(() => expect(last).toEqual(expected(last.used_day_usd)));
    // A client without an answer may have been charged.
    const spent = Math.round(last.used_day_usd * 100);
    expect(spent).toBeGreaterThanOrEqual(statuses.filter((status) => status === 200).length);
    expect(spent).toBeLessThanOrEqual(statuses.filter((status) => status === 200 || status === 0).length);
    return last;
  }

  /** As often as it takes, because a gateway that was killed answers nobody. */
  async function surely<Answer>(attempt: () => Promise<Answer>): Promise<Answer> {
    let answer: { readonly of: Answer } | null = null;
    await until(async () => {
      answer = await attempt().then(
        (of) => ({ of }),
        () => null,
      );
      return answer !== null;
    });
    return answer!.of;
  }
}

const ROUNDS = rounds(1, 2, 125);
const CUSTOMERS = 8;
const STEPS = 8;
/** $10 and the fee. */
const PAID_CENTS = 1_061;

/** The same at processes of their own, whose configuration has these settings as well. */
export const claimsAtProcesses = (count: number, settings: () => Promise<string>): void =>
  testClaims(async (config) => {
    const all = `${config}${await settings()}\n`;
    const folders = Array.from({ length: count }, () => new Folder(all));
    const processes = await Promise.all(folders.map((folder) => GatewayProcess.start(folder)));
    const urls = processes.map(({ url }) => url);
    return {
      urls,
      async stop() {
        await Promise.all(processes.map((gateway) => gateway.kill()));
        for (const folder of folders) folder.remove();
      },
      async restart(at) {
        await processes[at]!.kill();
        const gateway = await GatewayProcess.start(folders[at]!);
        processes[at] = gateway;
        urls[at] = gateway.url;
      },
    };
  }, count);
