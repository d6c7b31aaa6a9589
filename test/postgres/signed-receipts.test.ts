import { expect, test } from "bun:test";
import { compactVerify, createLocalJWKSet } from "jose";
import { until } from "../fakes/until.ts";
import { open } from "../gateway/open.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("signed receipts of several gateways", (cluster) => {
  test("are signed with one key, which all of them list within moments after one has made it", async () => {
    const store = await cluster.database();
    const config = `store: ${store}\nreceipts: { sign: true }\n`;
    const gateways = await Promise.all([1, 2].map(() => open(config)));
    const [one, two] = gateways as [(typeof gateways)[0], (typeof gateways)[0]];
    const jwks = async (at: typeof one) => (await at.send("GET", "/.well-known/jwks.json")).json;
    // Both find no key, and make one.
    const [made, found] = await Promise.all([jwks(one), jwks(two)]);
    expect(made.keys).toHaveLength(1);
    expect(found).toEqual(made);

    await one.admin("/admin/signing-keys", {});
    // Each reads the list once a second at most.
    await until(async () => (await jwks(two)).keys.length === 2);
    const { key } = await one.key(0);
    const id = (await one.chat(key, { model: "gateway/auto:free" })).headers.get("x-gateway-receipt");
    for (const at of gateways) {
      const headers = { accept: "application/jose" };
      const { text } = await at.send("GET", `/v1/receipts/${id}`, { bearer: key, headers });
      const { protectedHeader } = await compactVerify(text, createLocalJWKSet(await jwks(two)));
      expect(protectedHeader.kid).toBe((await jwks(one)).keys[1].kid);
    }
    for (const gateway of gateways) await gateway.close();
  });
});
