import { afterAll, beforeAll, expect, test } from "bun:test";
import { freePort } from "../../../bench/processes.ts";
import { newRecoverySecret } from "../../../src/customers/keys/secret.ts";
import { systemRandom } from "../../../src/units/random.ts";
import { json, sse } from "../../fakes/behaviours.ts";
import { type Gate, gate } from "../../fakes/gate.ts";
import { type Behaviour, type FakeHost, startFakeHost } from "../../fakes/host.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { workersOf } from "./processes.ts";

/** Whatever store they share. */
export function testWorkersTogether(database: () => Promise<string>): void {
  let host: FakeHost;
  let folder: Folder;
  let gateway: GatewayProcess;
  let key: string;
  /** Keys of balances that hardly pay more than some long answers at once. */
  let scarce: string[];
  /** The store has a keeper. */
  let isKept = false;
  let [atHost, mostAtHost, hostTakesMs] = [0, 0, 0];
  let streamed: Behaviour | null = null;
  /** Requests stay at the host until it is opened. */
  let held: Gate<void> | null = null;
  const metricsPort = freePort();

  beforeAll(async () => {
    const answer = json(chatText(["ok"], { input: 10, output: 1 }).whole);
    host = await startFakeHost(() => async (wire, request) => {
      atHost += 1;
      mostAtHost = Math.max(mostAtHost, atHost);
      await Bun.sleep(hostTakesMs);
      await held?.passed;
      atHost -= 1;
      await (streamed ?? answer)(wire, request);
    });
    const store = await database();
    isKept = store === "sqlite";
    const free = "defaults: { accountless: { rpm_limit: 100000, tpm_limit: null } }";
    const config = simpleConfig(
      [host.port],
      `store: ${store}\nworkers: 2\nmetrics: 127.0.0.1:${metricsPort}\n${free}\n`,
    );
    folder = new Folder(
      config
        .replace("per_hour: 100000", `per_hour: ${SET_UPS}`)
        .replace("max_output_tokens: 4000", `max_output_tokens: ${MAX_TOKENS}`)
        .replace("speaks: [chat.completions]", `speaks: [chat.completions], max_concurrent: ${SLOTS}`),
    );
    gateway = await GatewayProcess.start(folder);
    key = (await gateway.keyWith(10)).key;
    scarce = [(await gateway.keyWith(AT_ONCE * 0.22)).key, (await gateway.keyWith(AT_ONCE * 0.22)).key];
  }, 600_000);
  afterAll(async () => {
    await gateway.kill();
    folder.remove();
    await host.close();
  });

  const LONG_TOKENS = 16_000;
  const MAX_TOKENS = 32_000;
  const AT_ONCE = 3;
  /** An hour, from one network. */
  const SET_UPS = 10;
  /** The keys of these tests. */
  const OWN = 3;
  const WRONG_SECRETS = 60;
  /** At the host, for all workers together: an odd number, and few. */
  const SLOTS = 3;

  const workers = (): number[] => workersOf(gateway.pid);

  /**
   * On a connection of its own, so that the kernel picks a worker again; again where that worker is stopped or
   * gone.
   */
  async function send(path: string, init: RequestInit = {}, timeoutMs = 60_000): Promise<Response> {
    for (let attempt = 0; attempt < 200; attempt++) {
      try {
        const headers = { ...init.headers, connection: "close" };
        const answer = await fetch(gateway.url + path, {
          ...init,
          headers,
          signal: AbortSignal.timeout(timeoutMs),
        });
        if (answer.status < 500) return answer;
        await answer.body?.cancel();
      } catch {
        // Another connection, another worker.
      }
      await Bun.sleep(20);
    }
    throw new Error(`${path} was never answered`);
  }

  async function chat(times: number, bearer = key): Promise<void> {
    for (let done = 0; done < times; done++) {
      const answer = await send("/v1/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "test/model",
          max_tokens: 10,
          messages: [{ role: "user", content: "Hi" }],
        }),
      });
      expect(answer.status).toBe(200);
    }
  }

  async function scrape(): Promise<Map<string, number>> {
    const text = await (
      await send("/metrics", { headers: { authorization: `Bearer ${ADMIN}` } }, 1_000)
    ).text();
    const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return new Map(
      samples.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
    );
  }

  const WAY = 'surface="chat.completions",model="test/model",host="h0"';
  const SERVED = `gateway_requests_total{${WAY},outcome="settled",code=""}`;
  const COUNTED = `gateway_request_seconds_count{${WAY}}`;

  test("whichever worker is asked tells of all requests, and each process's memory", async () => {
    await chat(40);
    for (let time = 0; time < 10; time++) {
      const samples = await scrape();
      expect([samples.get(SERVED), samples.get(COUNTED)]).toEqual([40, 40]);
      expect(samples.get('gateway_workers{state="answered"}')).toBe(2);
      expect(samples.get("gateway_journal_healthy")).toBe(1);
      expect(samples.get("gateway_lease_seconds")).toBeLessThanOrEqual(10);
      for (const worker of [1, 2, ...(isKept ? ["keeper"] : [])]) {
        expect(samples.get(`process_resident_memory_bytes{worker="${worker}"}`)).toBeGreaterThan(1e6);
      }
      const apart = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      expect(apart).toContain(`\n${SERVED} 40\n`);
    }
  }, 600_000);

  test("whichever worker is asked tells what was used at all of them", async () => {
    const read = async (path: string) =>
      (await send(path, { headers: { authorization: `Bearer ${key}` } })).json();
    await until(async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const { stretches } = await read("/v1/usage?period=day");
          const { balance_usd } = await read("/v1/me");
          const requests = stretches.map((one: { requests: number }) => one.requests);
          return [requests.reduce((sum: number, count: number) => sum + count, 0), balance_usd];
        }),
      );
      return answers.every(([requests, balance]) => requests === 40 && balance === 10 - 40 * 0.000_02);
    });
  }, 600_000);

  test("what a network may do in an hour, it may do at all workers together", async () => {
    const statuses = async (times: number, path: string, init: RequestInit) => {
      const answers = await Promise.all(Array.from({ length: times }, () => send(path, init)));
      return answers.map(({ status }) => status);
    };
    const made = await statuses(30, "/v1/keys", { method: "POST" });
    expect(made.filter((status) => status === 201)).toHaveLength(SET_UPS - OWN);
    expect(made.filter((status) => status === 429)).toHaveLength(30 - SET_UPS + OWN);

    const wrong = { headers: { authorization: `Bearer ${newRecoverySecret(systemRandom)}` } };
    const guessed = await statuses(90, "/v1/keys", wrong);
    expect(guessed.filter((status) => status === 401)).toHaveLength(WRONG_SECRETS);
    expect(guessed.filter((status) => status === 429)).toHaveLength(90 - WRONG_SECRETS);
  }, 600_000);

  test("a host is never given more at once than its limit, and everybody has a turn", async () => {
    hostTakesMs = 20;
    await Promise.all(Array.from({ length: 20 }, () => chat(2)));
    hostTakesMs = 0;
    expect(mostAtHost).toBe(SLOTS);
  }, 600_000);

  test("whichever worker is asked tells what the host has from all of them", async () => {
    held = gate();
    const served = Promise.all(Array.from({ length: SLOTS }, () => chat(1)));
    await until(() => atHost >= SLOTS);
    for (let time = 0; time < 6; time++) {
      const { data } = await (
        await send("/admin/hosts", { headers: { authorization: `Bearer ${ADMIN}` } })
      ).json();
      expect(data).toMatchObject([{ id: "h0", state: "available", in_flight: SLOTS, waiting: 0 }]);
    }
    held.open();
    await served;
    held = null;
  }, 600_000);

  test("whichever worker is asked finds a receipt at once, of a refused request too", async () => {
    const authorization = `Bearer ${key}`;
    const found: string[] = [];
    for (let time = 0; time < 10; time++) {
      const model = time % 2 === 0 ? "test/model" : "test/none";
      const body = JSON.stringify({ model, max_tokens: 10, messages: [{ role: "user", content: "Hi" }] });
      const answer = await send("/v1/chat/completions", { method: "POST", headers: { authorization }, body });
      const receipt = answer.headers.get("x-gateway-receipt");
      found.push(
        (await (await send(`/v1/receipts/${receipt}`, { headers: { authorization } })).json()).state,
      );
    }
    expect(found).toEqual(Array.from({ length: 5 }, () => ["settled", "refused"]).flat());
    const none = await send(`/v1/receipts/rcpt_${"1".repeat(22)}`, { headers: { authorization } });
    expect(none.status).toBe(400);
  }, 600_000);

  test("a worker that is stopped is said to be silent, and no sum falls", async () => {
    // What it did since its last report is not known once it is silent.
    await scrape();
    const [stopped] = workers();
    process.kill(stopped!, "SIGSTOP");
    try {
      const samples = await scrape();
      expect(samples.get('gateway_workers{state="silent"}')).toBe(1);
      expect([samples.get(SERVED), samples.get(COUNTED)]).toEqual([88, 88]);
      const memory = [...samples.keys()].filter((name) => /^process_resident_memory_bytes.*"\d"/.test(name));
      expect(memory).toHaveLength(1);
    } finally {
      process.kill(stopped!, "SIGCONT");
    }
  }, 600_000);

  test("when a worker dies, what it had counted stays in the sums, and its successor's counts are added", async () => {
    const [dying] = workers();
    process.kill(dying!, "SIGKILL");
    for (;;) {
      const samples = await scrape();
      expect([samples.get(SERVED), samples.get(COUNTED)]).toEqual([88, 88]);
      if (samples.get('gateway_workers{state="answered"}') === 2) break;
    }
    await chat(20);
    const samples = await scrape();
    expect([samples.get(SERVED), samples.get(COUNTED)]).toEqual([108, 108]);
    expect(samples.get("gateway_worker_restarts_total")).toBe(1);
    expect(mostAtHost).toBe(SLOTS);
  }, 600_000);

  test.each([
    ["a thousand pieces", 16],
    ["one piece", LONG_TOKENS],
  ])(
    "long answers that their hosts send in one moment, in %s, are neither stopped nor given away where a worker's grant ends",
    async (_, words) => {
      const funded = scarce.pop()!;
      const pieces = Array<string>(LONG_TOKENS / words).fill(" one".repeat(words));
      streamed = sse(chatText(pieces, { input: 10, output: LONG_TOKENS }).events);
      const headers = { authorization: `Bearer ${funded}`, "content-type": "application/json" };
      const messages = [{ role: "user", content: "Hi" }];
      const body = JSON.stringify({ model: "test/model", stream: true, max_tokens: MAX_TOKENS, messages });
      const both = Array.from({ length: AT_ONCE }, async () => {
        const answer = await send("/v1/chat/completions", { method: "POST", headers, body });
        expect(await answer.text()).toEndWith("data: [DONE]\n\n");
        const receipt = await send(`/v1/receipts/${answer.headers.get("x-gateway-receipt")}`, { headers });
        const { state, tokens, cost_usd } = (await receipt.json()) as {
          state: string;
          tokens: { output: number };
          cost_usd: number;
        };
        expect([state, tokens.output, cost_usd]).toEqual(["settled", LONG_TOKENS, 0.160_01]);
      });
      await Promise.all(both);
      streamed = null;
    },
    600_000,
  );
}
