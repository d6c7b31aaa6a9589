import { afterAll, beforeAll, expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { json } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { Folder, GatewayProcess } from "../process/gateway.ts";
import { rounds } from "../rounds.ts";
import { describeOnPostgres } from "./fixture.ts";

const REQUESTS = rounds(60, 300);
const COVERED = 10;
/** Each request holds exactly this. */
const COST = 0.001;

describeOnPostgres(
  "three gateways on one PostgreSQL, and processors that have no time for them",
  (cluster) => {
    let host: FakeHost;
    let gateways: GatewayProcess[] = [];
    let burners: Bun.Subprocess[] = [];
    let held: Gate<void> = gate();
    let arrivals = 0;

    beforeAll(async () => {
      const { whole } = chatText(["ok"], { input: 10, output: 1 });
      host = await startFakeHost(() => async (wire, seen) => {
        arrivals += 1;
        // Nothing is answered, so nothing given back, until every request was admitted or refused.
        await held.passed;
        await json(whole)(wire, seen);
      });
      const config = `${oneHost(host.url)}
generation: { first_token_ms: 120000 }
setup: { accountless_keys_per_address_per_hour: 1000 }
store: ${await cluster.database()}`;
      gateways = await Promise.all([0, 1, 2].map(() => GatewayProcess.start(new Folder(config))));
      burners = Array.from({ length: 2 * availableParallelism() }, () =>
        Bun.spawn([process.execPath, "-e", "for (;;);"], {
          stdin: "ignore",
          stdout: "ignore",
          stderr: "ignore",
        }),
      );
    }, 600_000);
    afterAll(async () => {
      for (const burner of burners) burner.kill("SIGKILL");
      held.open();
      for (const gateway of gateways) {
        await gateway.stop();
        gateway.folder.remove();
      }
      await host.close();
    }, 600_000);

    /** What they are answered, by status, once all are decided. */
    async function storm(keys: readonly string[]): Promise<Record<number, number>> {
      held = gate();
      arrivals = 0;
      let refused = 0;
      const statuses: Record<number, number> = {};
      const body = { model: "test/model", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
      const requests = Array.from({ length: REQUESTS }, async (_, n) => {
        const gateway = gateways[n % gateways.length]!;
        const { status } = await gateway.post("/v1/chat/completions", body, keys[n % keys.length]!);
        if (status !== 200) refused += 1;
        statuses[status] = (statuses[status] ?? 0) + 1;
      });
      await until(() => refused + arrivals >= REQUESTS);
      held.open();
      await Promise.all(requests);
      return statuses;
    }

    test(`a balance that covers ${COVERED} of ${REQUESTS} requests admits as many, and says of the rest that it is spent`, async () => {
      const { key } = await gateways[0]!.keyWith(COVERED * COST);
      const statuses = await storm([key]);
      expect(statuses).toEqual({ 200: COVERED, 402: REQUESTS - COVERED });
    }, 600_000);

    test("so does a daily cap", async () => {
      const { id, key, recovery_secret } = await gateways[1]!.keyWith(10);
      await gateways[2]!.send(
        "PATCH",
        `/v1/keys/${id}`,
        { daily_limit_usd: COVERED * COST },
        recovery_secret,
      );
      const statuses = await storm([key]);
      expect(statuses).toEqual({ 200: COVERED, 429: REQUESTS - COVERED });
    }, 600_000);
  },
);
