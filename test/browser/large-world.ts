import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type EpochMs, HOUR_MS } from "../../src/units/clock.ts";
import { newReceiptId } from "../../src/units/id.ts";
import type { RandomBytes } from "../../src/units/random.ts";
import { type Made, type OpenGateway, open, openIn } from "../gateway/open.ts";

const MODELS = 225;

/**
 * A gateway as one looks after a busy fortnight: 225 models at two hosts, 1,000 keys of one owner and 100,000 receipts,
 * unless fewer will do. They are written into the database while no gateway has it open.
 */
export async function openLargeWorld({ keys = 1_000, receipts = 100_000 } = {}): Promise<{
  gateway: OpenGateway;
  owner: Made;
  keyIds: readonly string[];
}> {
  const first = await open(CONFIG);
  const owner = await first.key(1_000, { name: "key-0000" });
  const { folder } = first;
  await first.gateway.stop();
  const keyIds = fill(join(folder.env.GATEWAY_DATA!, "gateway.sqlite"), owner, keys, receipts);
  return { gateway: await openIn(folder), owner, keyIds };
}

const AUTHORS = ["aurora", "basalt", "cedar", "delta", "ember", "fjord", "granite", "harbour", "isle"];
const modelId = (index: number): string => `${AUTHORS[index % AUTHORS.length]}/model-${index}`;

const CONFIG = `catalog: public
price_lists: { partners: [{ model: "*", factor: 0.9 }] }
hosts:
  - { id: quarry, base_url: "http://127.0.0.1:9/v1", speaks: [chat.completions] }
  - { id: lagoon, base_url: "http://127.0.0.1:9/v1", speaks: [chat.completions, messages] }
models:
${Array.from({ length: MODELS }, (_, index) => {
  const inputs = index % 3 === 0 ? "[text, image]" : "[text]";
  return `  - id: ${modelId(index)}
    name: Model ${index}
    context_length: ${[8_000, 32_000, 128_000, 200_000, 1_000_000][index % 5]}
    max_output_tokens: 8000
    inputs: ${inputs}
    tools: ${index % 4 !== 0}
    price: { input: ${((index * 7) % 40) / 10 + 0.1}, output: ${((index * 11) % 90) / 5 + 0.2} }
    routes: [{ host: ${index % 2 === 0 ? "quarry" : "lagoon"}, model: m${index} }]`;
}).join("\n")}
`;

function fill(path: string, owner: Made, count: number, receipts: number): string[] {
  const db = new Database(path);
  // The gateway's threads may still be closing it.
  db.run("PRAGMA busy_timeout = 60000");
  const ids = db
    .transaction(() => {
      const own = db
        .query<Record<string, string | number | null>, [string]>("SELECT * FROM keys WHERE id = ?")
        .get(owner.id)!;
      const names = Object.keys(own);
      const addKey = db.query(
        `INSERT INTO keys (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
      );
      const keys = [owner.id];
      for (let index = 1; index < count; index++) {
        const id = `key_${String(index).padStart(22, "a")}`;
        const row = {
          // Its own id wherever the first key has its: no key replaced another.
          ...Object.fromEntries(names.map((name) => [name, own[name] === owner.id ? id : own[name]])),
          id,
          hash: Bun.CryptoHasher.hash("sha256", id, "hex"),
          name: `key-${String(index).padStart(4, "0")}`,
          state: index % 50 === 0 ? "revoked" : "active",
        };
        addKey.run(...(names.map((name) => row[name as keyof typeof row]) as (string | number | null)[]));
        keys.push(id);
      }
      addReceipts(db, owner.balance_id, keys, receipts);
      return keys;
    })
    .immediate();
  db.close();
  return ids;
}

/** Over a fortnight up to now, each key and model in turn; one of forty failed. */
function addReceipts(db: Database, balance: string, keys: readonly string[], count: number): void {
  const add = db.query(
    `INSERT INTO ends (receipt, at, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body)
     VALUES (?, ?, ?, ?, ?, ?, 0, 0, '', '', ?)`,
  );
  const random: RandomBytes = (into) => crypto.getRandomValues(into);
  const now = Date.now();
  let spent = 0;
  for (let index = 0; index < count; index++) {
    const at = (now - Math.floor(((count - index) * 14 * 24 * HOUR_MS) / count)) as EpochMs;
    const failed = index % 40 === 0;
    const charged = failed ? 0 : 100_000 + ((index * 7_919) % 900_000);
    const id = newReceiptId(at, random);
    const model = modelId(index % MODELS);
    const host = index % 2 === 0 ? "quarry" : "lagoon";
    const key = keys[(index * 31) % keys.length]!;
    spent += charged;
    const body = {
      id,
      created_at: new Date(at).toISOString(),
      state: failed ? "failed" : "settled",
      surface: "chat.completions",
      key_id: key,
      model_requested: model,
      model,
      host: failed ? null : host,
      attempts: [{ host, outcome: failed ? "unreachable" : "opened", ms: 120 + (index % 700) }],
      stream: true,
      tokens: {
        input: 900 + (index % 500),
        cache_read: 0,
        cache_write: 0,
        output: 200 + (index % 300),
        reasoning: 0,
        source: "host",
      },
      price: { input: 1, output: 2, cache_read: 0.1, cache_write: 1 },
      cost_usd: charged / 1e9,
      held_usd: 0,
      write_off: false,
      write_off_usd: 0,
      first_token_ms: failed ? null : 120 + (index % 700),
      total_ms: 900 + (index % 4_000),
      error_code: failed ? "upstream_error" : null,
    };
    add.run(id, at, balance, key, body.state, charged, JSON.stringify(body));
  }
  db.query("UPDATE counters SET spent = spent + ? WHERE id = ?").run(spent, `balance:${balance}`);
}
