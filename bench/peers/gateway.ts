import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Measured, start } from "../processes.ts";
import { PACES, PATH, type Peer } from "./peer.ts";

/** As it is shipped: ledger, journal and receipts on, a real key with every limit set. */
export const gateway: Peer = {
  name: "gateway",
  async install() {
    const { version } = (await Bun.file(`${ROOT}/package.json`).json()) as { version: string };
    return {
      version: `${version}, bun ${Bun.version}`,
      settings: "one process; key, ledger, every limit, durable journal and receipts on",
      async start(hostPort, folder) {
        const config = join(folder, "gateway.yaml");
        writeFileSync(config, configuration(hostPort));
        const process_ = await start([process.execPath, `${ROOT}/src/main.ts`], {
          GATEWAY_CONFIG: config,
          GATEWAY_DATA: join(folder, "data"),
          GATEWAY_ADMIN_TOKEN: ADMIN,
          PORT: "0",
        });
        const key = await fundedKey(process_, join(folder, "key"));
        const target = (secret: string) => ({
          port: process_.port,
          path: PATH,
          headers: { authorization: `Bearer ${secret}` },
        });
        return {
          process: process_,
          target: target(key),
          stranger: target("or-live-123456789ABCDEFGHJKLMNPQRSTUVWXY"),
          prefix: "bench/",
          refusesLarge: true,
        };
      },
    };
  },
};

const ROOT = join(import.meta.dir, "../..");
const ADMIN = "bench-admin";

/** The key that is kept in `file`, or a new one with credit enough: a gateway that comes back knows it. */
async function fundedKey({ port }: Measured, file: string): Promise<string> {
  if (existsSync(file)) return readFileSync(file, "utf8");
  const url = `http://127.0.0.1:${port}`;
  const made = (await (await fetch(`${url}/v1/keys`, { method: "POST" })).json()) as {
    key: string;
    balance_id: string;
  };
  const credited = await fetch(`${url}/admin/credits`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
    body: JSON.stringify({ balance_id: made.balance_id, amount_usd: 100_000, idempotency_key: "bench" }),
  });
  if (!credited.ok) throw new Error(`no credit: ${await credited.text()}`);
  writeFileSync(file, made.key);
  return made.key;
}

const configuration = (hostPort: number): string => `
hosts:
  - { id: mock, base_url: "http://127.0.0.1:${hostPort}/v1", speaks: [chat.completions] }
models:
${Object.values(PACES).map(model).join("")}
defaults:
  accountless: { rpm_limit: 1000000000, tpm_limit: null, daily_limit_usd: 100000, monthly_limit_usd: 100000 }
`;

/** A window wide enough for a body of 10 MB. */
const model = (name: string): string => `
  - id: bench/${name}
    name: Bench
    context_length: 20000000
    max_output_tokens: 4000
    price: { input: 0.001, output: 10 }
    routes: [{ host: mock, model: ${name} }]
`;
