import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { balanceCounter, keyCounter } from "../../src/ledger/counter.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { folderDisk } from "../../src/store/journal/disk.ts";
import { DurableJournal } from "../../src/store/journal/journal.ts";
import { systemClock } from "../../src/units/clock.ts";
import { type BalanceId, type KeyId, newReceiptId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { Folder, GatewayProcess, simpleConfig } from "./gateway.ts";

/**
 * How long a start takes after the worst stop: a journal of so many receipts that the database does not know
 * yet, and so many open holds.
 *
 *     bun run test/process/recovery.ts [--receipts 100000] [--holds 10000]
 */
export async function recovery(receipts: number, holds: number): Promise<RecoveryReport> {
  const folder = new Folder(simpleConfig([9]));
  try {
    const first = await GatewayProcess.start(folder);
    const { key, id, balance_id } = await first.keyWith(1_000);
    await first.kill();
    await writeJournal(join(folder.path, "data"), balance_id as BalanceId, id as KeyId, receipts, holds);
    const startedMs = performance.now();
    const gateway = await GatewayProcess.start(folder);
    const readyMs = Math.round(performance.now() - startedMs);
    const me = await gateway.get("/v1/me", key);
    const audit = await gateway.audit();
    await gateway.stop();
    // Each receipt cost 10 nano-dollars; a hold with 100 delivered tokens is billed for them, one with 10 is
    // written off.
    const expectedNano = receipts * 10 + Math.floor(holds / 2) * 1_010;
    return {
      receipts,
      holds,
      readyMs,
      heldUsd: me.json.held_usd,
      chargedNano: Math.round((1_000 - me.json.balance_usd) * 1e9),
      expectedNano,
      driftNano: String(audit.json.drift_nano),
    };
  } finally {
    folder.remove();
  }
}

export interface RecoveryReport {
  readonly receipts: number;
  readonly holds: number;
  readonly readyMs: number;
  readonly heldUsd: number;
  readonly chargedNano: number;
  readonly expectedNano: number;
  readonly driftNano: string;
}

async function writeJournal(
  data: string,
  balance: BalanceId,
  key: KeyId,
  receipts: number,
  holds: number,
): Promise<void> {
  mkdirSync(data, { recursive: true });
  const journal = new DurableJournal({
    disk: folderDisk(data),
    firstFile: 9_000,
    fileBytes: Number.MAX_SAFE_INTEGER,
    relaxed: false,
    defer: (run) => void setImmediate(run),
    after() {},
  });
  const at = systemClock.now();
  const counters = [balanceCounter(balance), keyCounter("day", key, at), keyCounter("month", key, at)];
  const append = (record: LedgerRecord) => journal.append(record);
  const price = {
    input: 1_000_000,
    output: 10_000_000,
    cacheRead: 1_000_000,
    cacheWrite: 1_000_000,
  } as never;
  const about = { surface: "chat.completions", model: "test/model", stream: true };
  for (let index = 0; index < receipts; index++) {
    const receipt = newReceiptId(at, systemRandom);
    append({
      kind: "hold",
      receipt,
      at,
      balance,
      key,
      amount: 100 as NanoUsd,
      counters,
      allowances: [],
      price,
      promptTokens: 10,
      about,
    });
    append({
      kind: "terminal",
      receipt,
      state: "settled",
      at,
      balance,
      key,
      charged: 10 as NanoUsd,
      writtenOff: 0 as NanoUsd,
      lost: 0 as NanoUsd,
      counters,
      allowances: [],
      body: JSON.stringify({ id: receipt, filler: "x".repeat(600) }),
    });
    if (index % 10_000 === 0) await journal.flushed();
  }
  const tokens: (readonly [`rcpt_${string}`, number])[] = [];
  for (let index = 0; index < holds; index++) {
    const receipt = newReceiptId(at, systemRandom);
    append({
      kind: "hold",
      receipt,
      at,
      balance,
      key,
      amount: 5_000 as NanoUsd,
      counters,
      allowances: [],
      price,
      promptTokens: 10,
      about,
    });
    tokens.push([receipt, index % 2 === 0 ? 10 : 100]);
  }
  append({ kind: "delivered", tokens });
  await journal.close();
}

if (import.meta.main) {
  const option = (name: string, fallback: number) => {
    const at = process.argv.indexOf(`--${name}`);
    return at === -1 ? fallback : Number(process.argv[at + 1]);
  };
  console.log(await recovery(option("receipts", 100_000), option("holds", 10_000)));
}
