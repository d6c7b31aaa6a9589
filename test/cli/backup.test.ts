import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { json } from "../fakes/behaviours.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { gateway } from "./command.ts";

let folder: Folder;
let serving: GatewayProcess;
const host = await startFakeHost(() => json(chatText([" word"], { input: 10 }).whole));
afterAll(() => host.close());
beforeEach(async () => {
  folder = new Folder(simpleConfig([host.port]));
  serving = await GatewayProcess.start(folder);
});
afterEach(async () => {
  await serving.stop();
  folder.remove();
});

const CHAT = { model: "test/model", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] };
const limitless = { rpm_limit: null, tpm_limit: null };

/** A gateway on the copy, next to the one that it was made of. */
const restored = (copy: string) => GatewayProcess.start(folder, { GATEWAY_DATA: copy });

test("a backup that is made under load has all that was acknowledged before, and its books are right", async () => {
  const { key, id } = await serving.keyWith(1);
  await serving.send("PATCH", `/admin/keys/${id}`, limitless, "test-admin-token");
  const acknowledged: string[] = [];
  let done = false;
  const load = Array.from({ length: 8 }, async () => {
    while (!done) {
      const { status, headers } = await serving.post("/v1/chat/completions", CHAT, key);
      if (status === 200) acknowledged.push(headers.get("x-gateway-receipt")!);
    }
  });
  await until(() => acknowledged.length >= 200);
  const before = [...acknowledged];
  const copy = join(folder.path, "copy");
  const { code, out, err } = await gateway(["backup", copy], { GATEWAY_DATA: folder.env.GATEWAY_DATA! });
  done = true;
  await Promise.all(load);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain(`GATEWAY_DATA=${copy}`);

  const again = await restored(copy);
  for (const receipt of before)
    expect((await again.get(`/v1/receipts/${receipt}`, key)).json).toMatchObject({ state: "settled" });
  expect((await again.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });
  expect((await again.get("/v1/me", key)).json).toMatchObject({ held_usd: 0 });
  expect((await again.post("/v1/chat/completions", CHAT, key)).status).toBe(200);
  expect(await again.stop()).toBe(0);
});

test("nobody but its owner can read it", async () => {
  const copy = join(folder.path, "copy");
  await gateway(["backup", copy], { GATEWAY_DATA: folder.env.GATEWAY_DATA! });
  const modes = [copy, ...readdirSync(copy).map((name) => join(copy, name))].map(
    (path) => statSync(path).mode & 0o077,
  );
  expect(modes.length).toBeGreaterThan(2);
  expect(new Set(modes)).toEqual(new Set([0]));
});

test("it takes no folder that has something in it, and none for a data folder that has nothing", async () => {
  const full = join(folder.path, "full");
  mkdirSync(full);
  writeFileSync(join(full, "mine"), "");
  const onto = await gateway(["backup", full], { GATEWAY_DATA: folder.env.GATEWAY_DATA! });
  expect([onto.code, onto.err]).toEqual([1, expect.stringContaining(`${full} is not empty`)]);
  expect(readdirSync(full)).toEqual(["mine"]);
  const of = await gateway(["backup", join(folder.path, "copy")], { GATEWAY_DATA: full });
  expect([of.code, of.err]).toEqual([1, expect.stringContaining(`there is no database in ${full}`)]);
});
