import { afterAll, beforeAll, expect, test } from "bun:test";
import { sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "./gateway.ts";

/**
 * What pages and endpoints show of amounts that open requests hold, while many streams are open at three processes
 * that share a store. Once the streams have ended, their receipts show what each of them held: an amount that
 * was shown as that of all processes has to be their sum.
 */
export function testHeldAmounts(start: () => Promise<HeldConfig>): void {
  let host: FakeHost;
  let folders: Folder[];
  let gateways: GatewayProcess[];
  /** Streams write a few words, then all others once the first opens, and end once the second does. */
  let [writing, ending]: Gate<void>[] = [];

  beforeAll(async () => {
    [writing, ending] = [gate(), gate()];
    // Usage would lower what is held at the end, below what was shown.
    const events = chatText(WORDS).events.filter(({ data }) => !data.includes('"usage":{'));
    const before = async (n: number) => {
      if (n === FIRST_WORDS) await writing!.passed;
      if (n === WORDS.length + 1) await ending!.passed;
    };
    host = await startFakeHost(() => sse(events, { before }));
    const { processes, config } = await start();
    const text = simpleConfig([host.port], `${config}\n${UNLIMITED}`);
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

  /** A balance with three keys: two of them share a budget, and the third's requests are of a run. */
  async function customer() {
    const { key, id, balance_id: balance, recovery_secret: owner } = await gateways[0]!.keyWith(50);
    await made("POST", "/v1/budgets", owner, { name: "team", cap_usd: 40, window: "day" });
    const [second, third] = [
      await made("POST", "/v1/keys", owner, { budget: "team" }),
      await made("POST", "/v1/keys", owner, {}),
    ];
    await made("PATCH", `/v1/keys/${id}`, owner, { budget: "team" });
    const keys = [
      { id, secret: key },
      { id: second.id as string, secret: second.key as string },
      { id: third.id as string, secret: third.key as string },
    ];
    return { balance, owner, keys };
  }

  type Customer = Awaited<ReturnType<typeof customer>>;

  /** Everywhere that an amount held by open requests is shown. */
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
        ],
      ],
      [owner, "/v1/keys", ({ data }) => ofKeys(data!)],
      [owner, `/v1/keys/${second}`, (key) => [[second, key]]],
      [owner, "/v1/budgets", ({ data }) => [["team", team(data!)]]],
      [owner, "/v1/budgets/team", (budget) => [["team", budget]]],
      [keys[2]!.secret, "/v1/usage?run=job", ({ run }) => [["run", run as Shown]]],
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

  test("are what all processes hold, or are marked as one's part", async () => {
    const of = await customer();
    let [started, written] = [0, 0];
    const streams = Array.from({ length: STREAMS }, async (_, n) => {
      const max_tokens = 100 + n;
      const messages = [{ role: "user", content: "Hello" }];
      const answer = await fetch(`${gateways[n % gateways.length]!.url}/v1/chat/completions`, {
        method: "POST",
        keepalive: false,
        headers: {
          authorization: `Bearer ${of.keys[n % 3]!.secret}`,
          ...(n % 3 === 2 && { "x-gateway-run": "job" }),
        },
        body: JSON.stringify({ model: "test/model", stream: true, max_tokens, messages }),
      });
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
    await until(() => started === STREAMS);
    writing!.open();
    for (const [, shown] of await readAll(of)) expectPlausible(shown);
    await until(() => written === STREAMS);
    // A process that is late with its answer is left out, and the amounts are marked.
    let shown: [string, Shown][] = [];
    await until(async () => {
      shown = await readAll(of);
      return shown.every(([, { held_at }]) => held_at === "all_processes");
    });
    ending!.open();
    const ended = await Promise.all(streams);
    const receipts = await Promise.all(
      ended.map(
        async (id) => (await (await fetched(0, "GET", `/v1/receipts/${id}`, of.owner)).json()) as Shown,
      ),
    );
    const heldOf = (which: (receipt: Shown) => boolean): number =>
      receipts.filter(which).reduce((sum, { held_usd }) => sum + Math.round(held_usd! * 1e9), 0) / 1e9;
    const [first, second, third] = of.keys.map(({ id }) => heldOf(({ key_id }) => key_id === id));
    const books: Record<string, number> = {
      all: heldOf(() => true),
      balance: heldOf(() => true),
      team: (Math.round(first! * 1e9) + Math.round(second! * 1e9)) / 1e9,
      run: third!,
    };
    for (const [at, { id }] of of.keys.entries()) books[id] = [first!, second!, third!][at]!;
    expect(books.all).toBeGreaterThan(0);
    for (const [scope, { path, held_usd }] of shown)
      expect({ scope, path, held_usd }).toEqual({ scope, path, held_usd: books[scope]! });
    for (const [, { path, open_calls }] of shown)
      if (open_calls !== undefined)
        expect({ path, open_calls }).toEqual({ path, open_calls: Math.floor(STREAMS / 3) });
    for (const [, { held_usd, held_at }] of await readAll(of))
      if (held_at === "all_processes") expect(held_usd).toBe(0);
  }, 600_000);
}

/** Nothing is made up of amounts of different moments or processes. */
function expectPlausible({ path, held_usd, held_at, available_usd, balance_usd }: Shown): void {
  expect({ path, held_at }).toEqual({
    path,
    held_at: expect.stringMatching(/^(all_processes|this_process)$/),
  });
  expect(held_usd).toBeGreaterThanOrEqual(0);
  if (balance_usd !== undefined) expect(available_usd).toBeCloseTo(balance_usd - held_usd!, 9);
}

export interface HeldConfig {
  /** Gateways that are started, each of which may have several workers. */
  readonly processes: number;
  /** Names the store. */
  readonly config: string;
}

type Page = [bearer: string, path: string, pick: (json: Shown) => (readonly [scope: string, shown: Shown])[]];

interface Shown {
  readonly [field: string]: unknown;
  readonly held_usd?: number;
  readonly balance_usd?: number;
  readonly available_usd?: number;
  readonly data?: Shown[];
}

const keyOf = (list: Shown[], id: string): Shown => list.find((one) => one.id === id)!;

const inUsd = (audit: Shown): Shown => ({
  held_usd: Number(audit.held_nano) / 1e9,
  available_usd: Number(audit.available_nano) / 1e9,
  balance_usd: (Number(audit.held_nano) + Number(audit.available_nano)) / 1e9,
  held_at: audit.held_at,
});

const UNLIMITED =
  "defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }";
const STREAMS = 200;
const READS = 6;
const FIRST_WORDS = 5;
const WORDS = ["alpha", ...Array.from({ length: 40 }, () => " word"), " omega"];
