import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { backUp } from "../../src/store/database/backup.ts";
import { Folder, simpleConfig } from "../process/gateway.ts";
import { type OpenGateway, openIn } from "./open.ts";

/** As on a machine where everybody may read what anybody makes. */
let umask = 0;
beforeEach(() => {
  umask = process.umask(0);
});
afterEach(() => void process.umask(umask));

/** Paths of what others than the owner may read, and of all files. */
function filesIn(folder: string): { open: string[]; all: string[] } {
  const all = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  );
  return { open: all.filter((name) => (statSync(join(folder, name)).mode & 0o077) !== 0), all };
}

async function used(gateway: OpenGateway): Promise<void> {
  expect((await gateway.send("POST", "/v1/keys")).status).toBe(201);
  expect((await gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } })).status).toBe(
    202,
  );
}

const WRITTEN = ["admin-token", "gateway.sqlite", "gateway.sqlite-shm", "gateway.sqlite-wal", "lock"];

test("whatever is written into a folder that all may read, only its owner may read", async () => {
  const folder = new Folder(simpleConfig([9]));
  mkdirSync(join(folder.path, "data"), { mode: 0o755 });
  const gateway = await openIn(folder, { GATEWAY_ADMIN_TOKEN: "" });
  await used(gateway);
  const data = join(folder.path, "data");
  const { open: readable, all } = filesIn(data);
  expect(readable).toEqual([]);
  expect(all).toEqual(expect.arrayContaining(WRITTEN));
  expect(all.some((name) => name.startsWith("outbox/"))).toBe(true);
  expect(all.some((name) => name.startsWith("journal-"))).toBe(true);
  const copy = join(folder.path, "copy");
  backUp(data, copy);
  expect(filesIn(copy).open).toEqual([]);
  await gateway.close();
});

test("what all may read of an earlier start, only its owner may read after the next; other files stay", async () => {
  const folder = new Folder(simpleConfig([9]));
  const first = await openIn(folder, { GATEWAY_ADMIN_TOKEN: "" });
  await used(first);
  const data = join(folder.path, "data");
  await first.gateway.stop();
  chmodSync(data, 0o755);
  for (const name of filesIn(data).all) chmodSync(join(data, name), 0o644);
  writeFileSync(join(data, "notes.txt"), "the operator's own");
  const second = await openIn(folder, { GATEWAY_ADMIN_TOKEN: "" });
  expect(filesIn(data).open).toEqual(["notes.txt"]);
  await second.close();
});
