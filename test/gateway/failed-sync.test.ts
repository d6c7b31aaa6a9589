import { afterAll, expect, spyOn, test } from "bun:test";
import { LogSync } from "../../src/store/database/log-sync.ts";
import { StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import { open } from "./open.ts";

const gateway = await open("");
afterAll(() => gateway.close());

test("a key whose revocation was answered with an error, because the disk did not take it, has ended all the same", async () => {
  const { id, key, recovery_secret } = await gateway.key(1);
  const statusOf = async () => (await gateway.send("GET", "/v1/me", { bearer: key })).status;
  expect(await statusOf()).toBe(200);
  const failed = spyOn(LogSync.prototype, "durable").mockRejectedValue(new StoreUnreachable("no sync"));
  const { status } = await gateway.send("DELETE", `/v1/keys/${id}`, { bearer: recovery_secret });
  failed.mockRestore();
  expect(status).toBe(500);
  expect(await statusOf()).toBe(401);
});
