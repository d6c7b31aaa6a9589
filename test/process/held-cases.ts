import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "./gateway.ts";

/**
 * What pages and endpoints show of balances, keys, budgets, runs and allowances, while many streams are open at three
 * processes that share a store, after others have ended there. Once the streams have ended too, receipts show what each
 * request cost and held: an amount that was shown as that of all processes has to be their sum. What a process holds that does
 * not answer is at most what it was granted.
 */
export function testHeldAmounts({ processes, config: named }: HeldConfig): void {
  let host: FakeHost;
  let folders: Folder[];
  let gateways: GatewayProcess[];
  /** Streams write a few words, then all others once the first opens, and end once the second does. */
  let [writing, ending]: Gate<void>[] = [];

  beforeEach(() => {
    [writing, ending] = [gate(), gate()];
  });

  beforeAll(async () => {
    // Usage would lower what is held at the end, below what was shown.
    const events = chatText(WORDS).events.filter(({ data }) => !data.includes('"usage":{'));
    const before = async (n: number) => {
      if (n === FIRST_WORDS) await writing!.passed;
      if (n === WORDS.length + 1) await ending!.passed;
    };
    const { whole } = chatText(["ended"], { input: 10, output: 5 });
    host = await startFakeHost((request) => (request.json().stream ? sse(events, { before }) : json(whole)));
    const text = simpleConfig([host.port], `${await named()}\n${UNLIMITED}`).replace(
      "    routes:\n",
      "    routes:\n      - { host: h0, model: free-model, free: true }\n",
    );
    folders = Array.from({ length: processes }, () => new Folder(text));
    gateways = await Promise.all(folders.map((folder) => GatewayProcess.start(folder)));
  }, 600_000);
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway.stop();
    for (const folder of folders ?? []) folder.remove();
    await host.close();
  }, 600_000);

  /** On a connection of its own: with several workers on a port, any of them takes it. */
  async function fetched(n: number, method: string, path: string, bearer: string, body?: object) {
    const { url } = gateways[n % gateways.length]!;
    return fetch(url + path, {
      method,
      keepalive: false,
      headers: { authorization: `Bearer ${bearer}`, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  }

  async function made(method: string, path: string, bearer: string, body: object) {
    const answer = await fetched(0, method, path, bearer, body);
    const json = (await answer.json()) as Shown;
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(json)}`);
    return json;
  }

  /**
   * A balance with three keys: two of them share a budget, the second's requests draw from one that caps each value of a
   * tag as well, and the third's are of a run.
   */
  async function customer() {
    const { key, id, balance_id: balance, recovery_secret: owner } = await gateways[0]!.keyWith(CREDIT_USD);
    await made("POST", "/v1/budgets", owner, { name: "team", cap_usd: 40, window: "day" });
    await made("POST", "/v1/budgets", owner, {
      name: "each",
      cap_usd: 20,
      window: "day",
      per: "tag:customer",
    });
    const [second, third] = [
      await made("POST", "/v1/keys", owner, { budget: ["team", "each"] }),
      await made("POST", "/v1/keys", owner, {}),
    ];
    await made("PATCH", `/v1/keys/${id}`, owner, { budget: "team", daily_limit_usd: DAY_USD });
    const keys = [
      { id, secret: key },
      { id: second.id as string, secret: second.key as string },
      { id: third.id as string, secret: third.key as string },
    ];
    return { balance, owner, keys };
  }

  type Customer = Awaited<ReturnType<typeof customer>>;

  /** Each key's requests reach all processes. */
  const requestChat = (n: number, key: string, headers: Named, body: object) =>
    fetch(`${gateways[(n + Math.floor(n / 3)) % gateways.length]!.url}/v1/chat/completions`, {
      method: "POST",
      keepalive: false,
      headers: { authorization: `Bearer ${key}`, ...headers },
      body: JSON.stringify({ ...body, messages: [{ role: "user", content: "Hello" }] }),
    });

  /** A whole answer, charged or free; returns the receipt's id and how many free requests are left. */
  async function ended(n: number, key: string, model: string, named: Named) {
    const answer = await requestChat(n, key, named, { model, max_tokens: 10 });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("ended")]);
    const { headers } = answer;
    return { id: headers.get("x-gateway-receipt")!, left: headers.get("x-gateway-open-tier-remaining") };
  }

  const receipt = async (id: string, owner: string) =>
    (await (await fetched(0, "GET", `/v1/receipts/${id}`, owner)).json()) as Shown;

  /** Everywhere that a balance, a key, a budget, a run or an allowance is shown. */
  const pagesOf = ({ balance, owner, keys }: Customer): Page[] => {
    const [first, second, third] = keys.map(({ id }) => id) as [string, string, string];
    const ofKeys = (list: Shown[]) => [first, second, third].map((id) => [id, keyOf(list, id)] as const);
    const team = (list: Shown[]) => list.find(({ name }) => name === "team")!;
    return [
      [
        keys[0]!.secret,
        "/v1/me",
        (me) => [
          ["balance", me],
          [first, me.key as Shown],
          ["free", { free_used: (me.open_tier as Shown).used }],
        ],
      ],
      [
        keys[1]!.secret,
        "/v1/credits",
        (credits) => {
          const { total_credits, total_usage } = credits.data as unknown as Shown;
          return [["balance", { credited_usd: total_credits, spent_usd: total_usage }]];
        },
      ],
      [owner, "/v1/credits", ({ data }) => [["balance", { credited_usd: data![0]!.amount_usd }]]],
      [
        keys[0]!.secret,
        "/v1/key",
        ({ data }) => {
          const key = data as unknown as Shown;
          const free = key.free_model_daily_requests as Shown;
          return [
            [
              first,
              {
                used_day_usd: key.usage_daily,
                used_month_usd: key.usage_monthly,
                used_week_usd: key.usage_weekly ?? undefined,
                left_usd: key.limit_remaining,
              },
            ],
            ["free", { free_used: free.used, free_left: free.remaining }],
          ];
        },
      ],
      [keys[2]!.secret, "/key/info", ({ info }) => [[third, { used_month_usd: (info as Shown).spend }]]],
      [owner, "/v1/keys", ({ data }) => ofKeys(data!)],
      [owner, `/v1/keys/${second}`, (key) => [[second, key]]],
      [owner, "/v1/budgets", ({ data }) => [["team", team(data!)]]],
      [owner, "/v1/budgets/team", (budget) => [["team", budget]]],
      [keys[2]!.secret, "/v1/usage?run=job", ({ run }) => [["run", run as Shown]]],
      [
        owner,
        "/v1/budgets/each",
        (budget) => [
          ["each", budget],
          ...(budget.values as Shown[]).map((one) => [`${one.value}`, one] as const),
        ],
      ],
      [
        owner,
        "/v1/usage?period=today&by=key&group_by=tag:customer",
        ({ stretches, keys: sums, groups }) => [
          ["ended", summed(stretches as Shown[])],
          ...(sums as Shown[]).map((sum) => [`${sum.key_id}`, { used_day_usd: sum.cost_usd }] as const),
          ...(groups as Shown[])
            .filter(({ value }) => value !== null)
            .map(({ value, cost_usd }) => [`${value}`, { used_usd: cost_usd }] as const),
        ],
      ],
      [
        keys[2]!.secret,
        "/v1/usage?period=today",
        ({ stretches }) => [[third, { used_day_usd: summed(stretches as Shown[]).cost_usd }]],
      ],
      [
        owner,
        "/v1/receipts?limit=100",
        ({ data }) => [["ended", { ...summed(data!), requests: data!.length }]],
      ],
      [ADMIN, "/admin/usage?period=today", ({ total }) => [["ended", total as Shown]]],
      [ADMIN, "/admin/overview?period=today", ({ stretches }) => [["ended", summed(stretches as Shown[])]]],
      [ADMIN, "/admin/balances?below_usd=1000", ({ data }) => [["balance", keyOf(data!, balance)]]],
      [ADMIN, "/admin/balances", ({ data }) => [["balance", keyOf(data!, balance)]]],
      [ADMIN, `/admin/balances/${balance}`, (shown) => [["balance", shown]]],
      [ADMIN, `/admin/balances/${balance}/keys`, ({ data }) => ofKeys(data!)],
      [ADMIN, `/admin/balances/${balance}/budgets`, ({ data }) => [["team", team(data!)]]],
      [ADMIN, `/admin/keys/${third}`, (key) => [[third, key]]],
      [ADMIN, "/admin/ledger/audit", (audit) => [["all", inUsd(audit)]]],
    ];
  };

  async function shownOn([bearer, path, pick]: Page, n: number): Promise<[string, Shown][]> {
    const answer = await fetched(n, "GET", path, bearer);
    const json = (await answer.json()) as Shown;
    if (!answer.ok) throw new Error(`GET ${path} answered ${answer.status}: ${JSON.stringify(json)}`);
    return pick(json).map(([scope, shown]) => [scope, { ...shown, path }]);
  }

  const readAll = async (of: Customer): Promise<[string, Shown][]> => {
    const read: [string, Shown][] = [];
    for (let n = 0; n < READS; n++) for (const page of pagesOf(of)) read.push(...(await shownOn(page, n)));
    return read;
  };

  test("are those of all processes and of the books, or are marked", async () => {
    const of = await customer();
    const charged = await Promise.all(
      Array.from({ length: ENDED }, (_, n) => ended(n, of.keys[n % 3]!.secret, "test/model", namedBy(n))),
    );
    const left: number[] = [];
    for (let n = 0; n < FREE; n++)
      left.push(Number((await ended(n, of.keys[0]!.secret, "test/model:free", {})).left));
    expect(left).toEqual(Array.from({ length: FREE }, (_, n) => FREE_A_DAY - 1 - n));
    let [started, written] = [0, 0];
    const streams = Array.from({ length: STREAMS + FREE_STREAMS }, async (_, n) => {
      const isFree = n >= STREAMS;
      const key = of.keys[isFree ? 0 : n % 3]!.secret;
      const model = isFree ? "test/model:free" : "test/model";
      const body = { model, stream: true, max_tokens: 100 + n };
      const answer = await requestChat(n, key, isFree ? {} : namedBy(n), body);
      expect(answer.status).toBe(200);
      let text = "";
      const read = new TextDecoder();
      for await (const bytes of answer.body!) {
        const [was, is] = [text, (text += read.decode(bytes, { stream: true }))];
        for (const [word, count] of [
          [WORDS[0]!, () => started++],
          [WORDS.at(-1)!, () => written++],
        ] as const)
          if (!was.includes(word) && is.includes(word)) count();
      }
      return answer.headers.get("x-gateway-receipt")!;
    });
    await until(() => started === STREAMS + FREE_STREAMS);
    writing!.open();
    for (const [, shown] of await readAll(of)) if (shown.held_usd !== undefined) expectPlausible(shown);
    await until(() => written === STREAMS + FREE_STREAMS);
    // Where a process is late with its answer, the amounts are marked; and once a prompt is counted, less of it is held.
    let shown: [string, Shown][] = [];
    await until(async () => {
      const before = shown;
      shown = await readAll(of);
      return (
        Bun.deepEquals(shown, before) &&
        shown.every(([, { held_at = "all_processes" }]) => held_at === "all_processes")
      );
    });
    ending!.open();
    const receiptOf = (id: string) => receipt(id, of.owner);
    const receipts = await Promise.all((await Promise.all(streams)).map(receiptOf));
    const costs = await Promise.all(charged.map(({ id }) => receiptOf(id)));
    const books = booksOf(of, receipts, costs);
    for (const [scope, { path, ...amounts }] of shown) {
      const known = Object.keys(books[scope]!).filter((name) => amounts[name] !== undefined);
      expect([path, known]).not.toEqual([path, []]);
      const picked = (from: Shown) => Object.fromEntries(known.map((name) => [name, from[name]]));
      expect({ scope, path, ...picked(amounts) }).toEqual({ scope, path, ...picked(books[scope]!) });
    }
    for (const [, { path, open_calls }] of shown)
      if (open_calls !== undefined)
        expect({ path, open_calls }).toEqual({ path, open_calls: Math.floor(STREAMS / 3) });
    for (const [, { held_usd, held_at }] of await readAll(of))
      if (held_at === "all_processes") expect(held_usd).toBe(0);
  }, 600_000);

  test.skipIf(processes === 1)(
    "count all that was granted to a process that was killed, until it is back",
    async () => {
      const of = await customer();
      const charged = await Promise.all(
        of.keys.map(({ secret }, n) => ended(n, secret, "test/model", namedBy(n))),
      );
      const streams = await Promise.all(
        Array.from({ length: 30 }, async (_, n) => {
          const body = { model: "test/model", stream: true, max_tokens: 100 + n };
          const { headers, body: text } = await requestChat(n, of.keys[n % 3]!.secret, namedBy(n), body);
          const reader = text!.getReader();
          await reader.read();
          return { id: headers.get("x-gateway-receipt")!, reader };
        }),
      );
      const unused = (await gateways[0]!.keyWith(1)).balance_id;
      const last = gateways.pop()!;
      await last.kill();
      const shown = (await readAll(of)).filter(([, { held_usd }]) => held_usd !== undefined);
      expect((await gateways[0]!.get(`/admin/balances/${unused}`, ADMIN)).json).toMatchObject({
        held_usd: 0,
        available_usd: 1,
        held_at: "all_processes",
      });
      gateways.push(await GatewayProcess.start(last.folder));
      writing!.open();
      ending!.open();
      for (const { reader } of streams) while (!(await reader.read().catch(() => ({ done: true }))).done);
      const receiptOf = (id: string) => receipt(id, of.owner);
      const receipts = await Promise.all(streams.map(({ id }) => receiptOf(id)));
      const books = booksOf(of, receipts, await Promise.all(charged.map(({ id }) => receiptOf(id))));
      for (const [scope, amounts] of shown) {
        const { path, held_at, held_usd, balance_usd, available_usd } = amounts;
        expect({ path, held_at }).toEqual({ path, held_at: "all_processes_at_most" });
        expect(held_usd).toBeGreaterThanOrEqual(books[scope]!.held_usd!);
        if (balance_usd !== undefined) expect(available_usd).toBeCloseTo(balance_usd - held_usd!, 9);
      }
      await until(async () =>
        (await readAll(of)).every(
          ([, { held_usd = 0, held_at = "all_processes" }]) => held_usd === 0 && held_at === "all_processes",
        ),
      );
    },
    600_000,
  );
}

/** What the receipts come to: of the streams, while they were open, and of the requests that had ended before. */
function booksOf(
  { keys }: { readonly keys: readonly { readonly id: string }[] },
  open: readonly Shown[],
  ended: readonly Shown[],
): Record<string, Shown> {
  const ids = keys.map(({ id }) => id);
  const nano = (receipts: readonly Shown[], field: "held_usd" | "cost_usd", of: readonly string[]): number =>
    receipts
      .filter(({ key_id }) => of.includes(key_id as string))
      .reduce((sum, receipt) => sum + Math.round((receipt[field] as number) * 1e9), 0);
  const held = (of: readonly string[]): number => nano(open, "held_usd", of);
  const spent = (of: readonly string[]): number => nano(ended, "cost_usd", of);
  const spentFor = (customer: string): number =>
    nano(
      ended.filter(({ tags }) => (tags as Shown | undefined)?.customer === customer),
      "cost_usd",
      ids,
    );
  const [first, second, third] = ids as [string, string, string];
  expect(Math.min(...ids.map((id) => held([id])), ...ids.map((id) => spent([id])))).toBeGreaterThan(0);
  const credit = CREDIT_USD * 1e9;
  const all: Shown = {
    held_usd: held(ids) / 1e9,
    balance_usd: (credit - spent(ids)) / 1e9,
    available_usd: (credit - spent(ids) - held(ids)) / 1e9,
  };
  const ofKey = (id: string): [string, Shown] => [
    id,
    {
      held_usd: held([id]) / 1e9,
      used_day_usd: spent([id]) / 1e9,
      used_month_usd: spent([id]) / 1e9,
      used_week_usd: spent([id]) / 1e9,
      left_usd: (DAY_USD * 1e9 - spent([id])) / 1e9,
    },
  ];
  return {
    ...Object.fromEntries(ids.map(ofKey)),
    all,
    balance: { ...all, credited_usd: CREDIT_USD, spent_usd: spent(ids) / 1e9 },
    team: { held_usd: held([first, second]) / 1e9, used_usd: spent([first, second]) / 1e9 },
    each: { held_usd: held([second]) / 1e9, used_usd: spent([second]) / 1e9 },
    ...Object.fromEntries(CUSTOMERS.map((customer) => [customer, { used_usd: spentFor(customer) / 1e9 }])),
    ended: { cost_usd: spent(ids) / 1e9, requests: ENDED + FREE },
    run: { held_usd: held([third]) / 1e9, used_usd: spent([third]) / 1e9, used_calls: ENDED / 3 },
    free: { free_used: FREE + FREE_STREAMS, free_left: FREE_A_DAY - FREE - FREE_STREAMS },
  };
}

/** Nothing is made up of amounts of different moments or processes. */
function expectPlausible({ path, held_usd, held_at, available_usd, balance_usd }: Shown): void {
  expect({ path, held_at }).toEqual({
    path,
    held_at: expect.stringMatching(/^all_processes(_at_most)?$/),
  });
  expect(held_usd).toBeGreaterThanOrEqual(0);
  if (balance_usd !== undefined) expect(available_usd).toBeCloseTo(balance_usd - held_usd!, 9);
}

export interface HeldConfig {
  /** Gateways that are started, each of which may have several workers. */
  readonly processes: number;
  /** Names the store. */
  config(): Promise<string>;
}

type Page = [bearer: string, path: string, pick: (json: Shown) => (readonly [scope: string, shown: Shown])[]];

interface Shown {
  readonly [field: string]: unknown;
  readonly held_usd?: number;
  readonly balance_usd?: number;
  readonly available_usd?: number;
  readonly data?: Shown[];
}

/** Headers of a request. */
type Named = Readonly<Record<string, string>>;

/** What the n-th request is for, by its key. */
const namedBy = (n: number): Named =>
  [{}, { "x-gateway-tags": `customer=${CUSTOMERS[n % 2]}` }, { "x-gateway-run": "job" }][n % 3]!;

const summed = (list: Shown[]): Shown =>
  Object.fromEntries(
    ["cost_usd", "requests"].map((name) => [
      name,
      list.reduce((sum, one) => sum + Math.round((one[name] as number) * 1e9), 0) / 1e9,
    ]),
  );

const keyOf = (list: Shown[], id: string): Shown => list.find((one) => one.id === id)!;

const inUsd = (audit: Shown): Shown => ({
  held_usd: Number(audit.held_nano) / 1e9,
  available_usd: Number(audit.available_nano) / 1e9,
  balance_usd: (Number(audit.held_nano) + Number(audit.available_nano)) / 1e9,
  held_at: audit.held_at,
});

const FREE_A_DAY = 40;
const UNLIMITED =
  "open_tier: { rpm: 1000, accountless_requests_per_day: 40 }\ndefaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }";
const CREDIT_USD = 50;
const DAY_USD = 45;
const CUSTOMERS = ["acme", "globex"] as const;
const STREAMS = 200;
/** Requests that have ended before the streams open, as many of each of three keys. */
const ENDED = 30;
const FREE = 6;
const FREE_STREAMS = 3;
const READS = 6;
const FIRST_WORDS = 5;
const WORDS = ["alpha", ...Array.from({ length: 40 }, () => " word"), " omega"];
