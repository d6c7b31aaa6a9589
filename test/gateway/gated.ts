import { afterAll, beforeAll, expect } from "bun:test";
import { type Gate, gate } from "../fakes/gate.ts";
import { type Behaviour, type FakeHost, type FakeRequest, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { until } from "../fakes/until.ts";
import type { Reply } from "../process/gateway.ts";
import { type OpenGateway, open } from "./open.ts";

/** So many gateways on one store, in turn, and a host that leaves prompts with `wait` in them until a test opens its gate. */
export function gatedGateways(
  count: number,
  store: () => Promise<string>,
  answer: (request: FakeRequest) => Behaviour,
) {
  let host: FakeHost;
  const gateways: OpenGateway[] = [];
  let held: Gate<void> = gate();
  let arrivals = 0;
  let turn = 0;
  const any = () => gateways[turn++ % count]!;

  beforeAll(async () => {
    host = await startFakeHost((request) => async (wire, seen) => {
      arrivals += 1;
      if (request.text().includes("wait")) await held.passed;
      await answer(request)(wire, seen);
    });
    const config = `${oneHost(host.url)}
setup: { accountless_keys_per_address_per_hour: 1000 }
generation: { first_token_ms: 60000, max_hosts: 3 }
${await store()}`;
    gateways.push(...(await Promise.all(Array.from({ length: count }, () => open(config)))));
  }, 600_000);
  afterAll(async () => {
    held.open();
    for (const gateway of gateways) await gateway.close();
    await host.close();
  });

  return {
    gateways,
    any,
    send: (method: string, path: string, bearer: string, json?: object) =>
      any().send(method, path, { bearer, ...(json === undefined ? {} : { json }) }),
    call: (bearer: string, headers: Record<string, string>, content = "Hello", gateway = any()) =>
      gateway.send("POST", "/v1/chat/completions", {
        bearer,
        headers,
        json: { model: "test/model", max_tokens: 100, messages: [{ role: "user", content }] },
      }),
    /** How often each status and code came, where nothing is answered, so nothing given back, until all were admitted or refused. */
    async raced(requests: number, call: (content: string) => Promise<Reply>): Promise<object> {
      [held, arrivals] = [gate(), 0];
      const codes = new Map<string, number>();
      let refused = 0;
      const replies = Array.from({ length: requests }, async (_, n) => {
        const { status, json } = await call(`wait ${n}`);
        if (status !== 200) refused += 1;
        const code = `${status} ${json.error?.code ?? ""}`;
        codes.set(code, (codes.get(code) ?? 0) + 1);
      });
      await until(() => refused + arrivals >= requests);
      held.open();
      await Promise.all(replies);
      return Object.fromEntries(codes);
    },
    async expectNoDrift(): Promise<void> {
      for (const gateway of gateways)
        expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({
          ok: true,
          drift_nano: "0",
        });
    },
  };
}
