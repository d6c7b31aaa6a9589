import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SurfaceName } from "../src/catalog/catalog.ts";
import type { Target } from "./load.ts";
import { type Measured, start } from "./processes.ts";

/** Parts of the configuration that replace those below, and what is added to them. */
export interface GatewaySettings {
  readonly hosts?: string;
  readonly models?: string;
  /** Credit of each key without an account. */
  readonly limits?: string;
  /** Any other settings. */
  readonly more?: string;
}

/** A gateway in a process of its own, in front of the host on this port; all that it keeps is in the folder. */
export function startGateway(
  folder: string,
  hostPort: number,
  { hosts, models, limits = NO_LIMITS, more = "" }: GatewaySettings,
): Promise<Measured> {
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "gateway.yaml");
  writeFileSync(
    config,
    `
hosts:
${hosts ?? hostRow("mock", hostPort, "chat.completions")}
models:
${models ?? modelRow(MODEL, "mock")}
defaults: { accountless: { ${limits} } }
${more}
`,
  );
  return start([process.execPath, join(import.meta.dir, "../src/main.ts")], {
    GATEWAY_CONFIG: config,
    GATEWAY_DATA: join(folder, "data"),
    GATEWAY_ADMIN_TOKEN: ADMIN,
    PORT: "0",
  });
}

export const hostRow = (id: string, port: number, speaks: SurfaceName): string =>
  `  - { id: ${id}, base_url: "http://127.0.0.1:${port}/v1", speaks: [${speaks}] }`;

export const modelRow = (
  id: string,
  host: string,
  model = "m",
  contextLength = WIDE,
): string => `  - id: ${id}
    context_length: ${contextLength}
    max_output_tokens: 4000
    price: { input: 0.001, output: 10 }
    routes: [{ host: ${host}, model: ${model} }]`;

/** Wide enough for a body of 10 MB. */
const WIDE = 20_000_000;

export const MODEL = "bench/model";
const NO_LIMITS = "rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null";

/** Where a client with this key sends chat completions. */
export const targetOf = ({ port }: Pick<Measured, "port">, key: string, path = CHAT_PATH): Target => ({
  port,
  path,
  headers: { authorization: `Bearer ${key}` },
});

const CHAT_PATH = "/v1/chat/completions";

export const chatBody = (content: string, own: object = { max_tokens: 16 }): string =>
  JSON.stringify({ model: MODEL, ...own, messages: [{ role: "user", content }] });

/** A key on a balance of its own, with credit. */
export async function fundedKey({ port }: Measured, usd: number): Promise<FundedKey> {
  const url = `http://127.0.0.1:${port}`;
  const made = (await answered(await fetch(`${url}/v1/keys`, { method: "POST" }))) as FundedKey;
  const credit = { balance_id: made.balance_id, amount_usd: usd, idempotency_key: made.id };
  await answered(
    await fetch(`${url}/admin/credits`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
      body: JSON.stringify(credit),
    }),
  );
  return made;
}

/** What an operator reads. */
export async function operator({ port }: Pick<Measured, "port">, path: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${ADMIN}` };
  return answered(await fetch(`http://127.0.0.1:${port}${path}`, { headers }));
}

/** One of the gateway's metrics without labels; NaN where it has none of this name. */
export async function metric({ port }: Pick<Measured, "port">, name: string): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN}` };
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
  return Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1]);
}

export interface FundedKey {
  readonly id: string;
  readonly key: string;
  readonly balance_id: string;
  readonly recovery_secret: string;
}

export async function answered(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`${response.url}: ${await response.text()}`);
  return response.json();
}

const ADMIN = "bench-admin-token";
