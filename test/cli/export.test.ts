import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { exportedLines, filesIn, sumOf } from "../fakes/exported.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "../process/gateway.ts";
import { gateway } from "./command.ts";

const folder = new Folder("");
folder.configure(`export: { to: "file:${join(folder.path, "running")}", every: 1s }`);
const serving = await GatewayProcess.start(folder);
afterAll(async () => {
  await serving.stop();
  folder.remove();
});

const { key } = await serving.keyWith(1);
for (let request = 0; request < 3; request++)
  await serving.post(
    "/v1/chat/completions",
    { model: "sim/echo", messages: [{ role: "user", content: "Hello" }] },
    key,
  );
const env = { ...folder.env, GATEWAY_URL: serving.url, GATEWAY_ADMIN_TOKEN: ADMIN };

test("`export once` writes all that is booked, with the sums of the audit, and a time names where to begin", async () => {
  const audit = (await serving.audit()).json;
  const to = join(folder.path, "once");
  const { out, err, code } = await gateway(["export", "once", "--to", `file:${to}`, "--json"], env);
  expect([err, code]).toEqual(["", 0]);
  expect(JSON.parse(out).data).toMatchObject([
    { kind: "receipts", rows: 3, files: 1, through: 3 },
    { kind: "entries", rows: 1, files: 1, through: 1 },
    { kind: "events", files: 1 },
    { kind: "changes", files: 1 },
  ]);
  const files = await filesIn(to);
  expect(String(sumOf(exportedLines(files, "receipts"), "charged_nano_usd"))).toBe(audit.charges_nano);
  expect(String(sumOf(exportedLines(files, "entries"), "amount_nano_usd"))).toBe(audit.credits_nano);
  const later = await gateway(
    ["export", "once", "--to", `file:${to}-later`, "--since", "2999-01-01", "--json"],
    env,
  );
  expect(JSON.parse(later.out).data.map(({ rows }: { rows: number }) => rows)).toEqual([0, 0, 0, 0]);
}, 60_000);

test("`export status` shows how far the running export is", async () => {
  await until(async () => {
    const { out } = await gateway(["export", "status", "--json"], env);
    return JSON.parse(out).data.every(({ waiting }: { waiting: number }) => waiting === 0);
  });
  const { out, code } = await gateway(["export", "status"], env);
  expect(code).toBe(0);
  expect(out).toContain(`file:${join(folder.path, "running")}`);
  expect(exportedLines(await filesIn(join(folder.path, "running")), "receipts")).toHaveLength(3);
}, 150_000);

test.each([
  ["no target", ["export", "once"], "--to"],
  [
    "a folder without its whole path",
    ["export", "once", "--to", "file:here"],
    "file:/folder or s3://bucket/prefix",
  ],
  ["a bucket without a key", ["export", "once", "--to", "s3://books"], "AWS_ACCESS_KEY_ID"],
])(
  "%s is refused",
  async (_what, args, problem) => {
    const { err, code } = await gateway(args, env);
    expect(code).not.toBe(0);
    expect(err).toContain(problem);
  },
  60_000,
);
