import { afterEach, expect, test } from "bun:test";
import { closeAll } from "../fakes/close-all.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("operators of several gateways", (cluster) => {
  const gateways: OpenGateway[] = [];
  afterEach(() => closeAll(...gateways.splice(0)));

  test("a token is taken by all, and by none from the request after its removal on", async () => {
    const url = await cluster.database();
    for (let node = 0; node < 3; node++) gateways.push(await open(`store: "${url}"\n`));
    const [first, second, third] = gateways as [OpenGateway, OpenGateway, OpenGateway];
    for (let round = 0; round < 5; round++) {
      const json = { name: "eve", role: "read" };
      const { token } = (await first.send("POST", "/admin/operators", { bearer: ADMIN, json })).json;
      const statuses = async () => {
        const replies = gateways.map((one) => one.send("GET", "/admin/me", { bearer: token }));
        return (await Promise.all(replies)).map(({ status }) => status);
      };
      expect(await statuses()).toEqual([200, 200, 200]);
      await second.send("DELETE", "/admin/operators/eve", { bearer: ADMIN });
      expect(await statuses()).toEqual([401, 401, 401]);
    }
    const { data } = (await third.admin("/admin/changes?subject=eve")).json;
    expect(data.map(({ action }: { action: string }) => action)).toEqual(
      Array.from({ length: 5 }, () => ["operator.removed", "operator.added"]).flat(),
    );
  });
});
