import { afterAll, afterEach, expect, test } from "bun:test";
import { Bucket } from "../fakes/bucket.ts";
import { exportedLines, sumOf } from "../fakes/exported.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

const bucket = new Bucket();
const gateway = await open('export: { to: "s3://books/gateway", every: 1s }', bucket.env);
afterEach(() => {
  bucket.away = null;
});
afterAll(async () => {
  await gateway.close();
  await bucket.stop();
});

const PROMPT = "a prompt that nobody may read";
const SPENDING = { model: "sim/echo", messages: [{ role: "user", content: PROMPT }] };
const lines = (kind: string) => exportedLines(bucket.files, kind);

test("a bucket has what the books have: each receipt once, what was credited, and events, without prompts and secrets", async () => {
  const { key, balance_id, recovery_secret } = await gateway.key(1);
  const ids: string[] = [];
  for (let request = 0; request < 5; request++) {
    const { headers } = await gateway.chat(key, SPENDING);
    ids.push(headers.get("x-gateway-receipt")!);
  }
  await until(
    () => lines("receipts").length === 5 && lines("events").length > 0 && lines("entries").length === 1,
  );
  expect(lines("receipts").map(({ id }) => id)).toEqual(ids);
  expect(lines("entries")).toMatchObject([{ kind: "credit", balance_id, amount_usd: 1 }]);
  expect(lines("events")[0]).toMatchObject({ type: "key.created", balance_id });
  await until(() => lines("changes").length > 0);
  const { data } = (await gateway.admin("/admin/changes")).json;
  const { id, at, action, subject, before, after } = data.at(-1);
  expect(lines("changes")[0]).toMatchObject({ number: 1, id, at, action, subject, before, after });
  const audit = (await gateway.admin("/admin/ledger/audit")).json;
  expect(String(sumOf(lines("receipts"), "charged_nano_usd"))).toBe(audit.charges_nano);
  expect(String(sumOf(lines("entries"), "amount_nano_usd"))).toBe(audit.credits_nano);
  for (const name of bucket.files.keys())
    expect(name).toMatch(
      /^books\/gateway\/(receipts|entries|events|changes)\/\d{4}\/\d\d\/\d\d\/\d{12}-\d{12}\.jsonl\.gz$/,
    );
  const words = JSON.stringify([
    ...lines("receipts"),
    ...lines("entries"),
    ...lines("events"),
    ...lines("changes"),
  ]);
  for (const secret of [PROMPT, key, recovery_secret, bucket.env.AWS_SECRET_ACCESS_KEY!])
    expect(words).not.toContain(secret);
}, 60_000);

test("a bucket that is away delays the export and nothing else: the log, a metric and GET /admin/exports say so", async () => {
  const { key } = await gateway.key(1);
  await until(() => lines("entries").length === 2);
  const before = lines("receipts").length;
  bucket.away = 503;
  expect((await gateway.chat(key, SPENDING)).status).toBe(200);
  const receipts = async () => {
    const { data } = (await gateway.admin("/admin/exports")).json;
    return data.find(({ kind }: { kind: string }) => kind === "receipts");
  };
  await until(async () => {
    const { problem, waiting } = await receipts();
    return problem !== null && waiting === 1;
  });
  expect(await receipts()).toMatchObject({ to: "s3://books/gateway", exported_through: before });
  expect((await gateway.admin("/metrics")).text).toMatch(/^gateway_export_lag_seconds [0-9.]+$/m);
  expect(gateway.logged.some((line) => line.includes('"event":"export"'))).toBe(true);
  expect(gateway.logged.join("")).not.toContain(bucket.env.AWS_SECRET_ACCESS_KEY!);
  bucket.away = null;
  await until(() => lines("receipts").length === before + 1);
  await until(async () => (await receipts()).problem === null);
  expect(await receipts()).toMatchObject({ waiting: 0, exported_through: before + 1 });
}, 60_000);

test("a reload ends the export, and begins it again where it was", async () => {
  const { key } = await gateway.key(1);
  gateway.folder.configure("");
  await gateway.gateway.reload();
  expect((await gateway.admin("/admin/exports")).json.data).toEqual([]);
  const puts = bucket.puts.size;
  const { headers } = await gateway.chat(key, SPENDING);
  gateway.folder.configure('export: { to: "s3://books/gateway", every: 1s }');
  await gateway.gateway.reload();
  await until(() => bucket.puts.size > puts);
  await until(() => lines("receipts").some(({ id }) => id === headers.get("x-gateway-receipt")));
  expect([...bucket.puts.values()].every((count) => count === 1)).toBe(true);
}, 60_000);
