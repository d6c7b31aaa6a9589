import { afterAll, beforeAll, expect, test } from "bun:test";
import { checkDatabase } from "../../src/cli/service-checks.ts";
import { json } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres(
  "three gateways on one PostgreSQL, of which one has another admin token and another model",
  (cluster) => {
    let host: FakeHost;
    let gateways: OpenGateway[];
    let store: { kind: "postgres"; url: string; journal: "disk" };
    beforeAll(async () => {
      host = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 1 }).whole));
      store = { kind: "postgres", url: await cluster.database(), journal: "disk" };
      const simulated = `models:
  - id: sim/echo
    context_length: 1000
    max_output_tokens: 100
    price: { input: 0, output: 10 }
    routes: [{ host: sim, model: echo }]`;
      const config = `${oneHost(host.url).replace("models:", simulated).replace("routes: [{ host: h,", "routes: [{ host: h, model: free-model, free: true }, { host: h,")}
setup: { accountless_keys_per_address_per_hour: 1000 }
open_tier: { rpm: 1000, accountless_requests_per_day: 40 }
store: ${store.url}`;
      gateways = [await open(config), await open(config)];
      const other = config.replace("setup: { ", "low_credit_usd: 3\nsetup: { ");
      gateways.push(await open(other, { GATEWAY_ADMIN_TOKEN: "another-admin-token" }));
    }, 600_000);
    afterAll(async () => {
      for (const gateway of gateways ?? []) await gateway.close();
      await host.close();
    });

    const nodesOf = async (at: number, bearer = "test-admin-token") =>
      (await gateways[at]!.send("GET", "/admin/nodes", { bearer })).json.data as { differs_in: string[] }[];

    test("it says so at its start, and names in what", () => {
      expect(gateways[0]!.logged.join()).not.toContain("node differs");
      expect(gateways[1]!.logged.join()).not.toContain("node differs");
      const logged = gateways[2]!.logged.filter((line) => line.includes("node differs"));
      expect(logged).toHaveLength(2);
      for (const line of logged) {
        expect(line).toContain("GATEWAY_ADMIN_TOKEN");
        expect(line).toContain("low_credit_usd");
        expect(line).not.toContain("another-admin-token");
      }
    });

    test("the list of nodes shows it", async () => {
      const differing = async (at: number, bearer?: string) =>
        (await nodesOf(at, bearer)).map(({ differs_in }) => differs_in.length > 0).filter(Boolean).length;
      expect(await differing(0)).toBe(1);
      expect(await differing(1)).toBe(1);
      expect(await differing(2, "another-admin-token")).toBe(2);
    });

    test("every answer tells what is left of the day's free requests at all of them", async () => {
      const { key } = (await gateways[0]!.send("POST", "/v1/keys")).json;
      const left: (string | null)[] = [];
      for (let n = 0; n < 20; n++) {
        const answer = await gateways[n % 3]!.chat(key, { model: "test/model:free" });
        left.push(answer.headers.get("x-gateway-open-tier-remaining"));
      }
      expect(left).toEqual(Array.from({ length: 20 }, (_, n) => String(39 - n)));
    });

    test("amounts that open requests hold are those of all", async () => {
      const { key, recovery_secret: bearer } = await gateways[0]!.key(1);
      expect((await gateways[0]!.send("GET", "/v1/me", { bearer: key })).json).toMatchObject({
        held_at: "all_processes",
        key: { held_at: "all_processes" },
      });
      const json = { name: "team", cap_usd: 1, window: "day" };
      expect((await gateways[0]!.send("POST", "/v1/budgets", { bearer, json })).json.held_at).toBe(
        "all_processes",
      );
      expect((await gateways[0]!.admin("/admin/ledger/audit")).json.held_at).toBe("all_processes");
    });

    test("the allowance of a network is one, whatever their admin tokens", async () => {
      const statuses = await Promise.all(
        gateways.map(async (gateway) => {
          const { key } = (await gateway.send("POST", "/v1/keys")).json;
          const answers: number[] = [];
          for (let n = 0; n < 22; n++)
            answers.push((await gateway.chat(key, { model: "test/model:free" })).status);
          return answers;
        }),
      );
      expect(statuses.flat().filter((status) => status === 200)).toHaveLength(20);
      expect(statuses.flat().filter((status) => status === 429)).toHaveLength(46);
    });

    test("doctor says so of a token that is neither's", async () => {
      const [none, other] = [
        await checkDatabase(store, "test-admin-token"),
        await checkDatabase(store, "a third admin token"),
      ];
      expect(none.filter(({ check }) => check === "nodes")).toHaveLength(1);
      const [found] = other.filter(({ check }) => check === "nodes");
      expect(found).toMatchObject({ state: "warn" });
      expect(found!.detail.split(", ")).toHaveLength(3);
    });
  },
);
