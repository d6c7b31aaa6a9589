import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Measured, start } from "./processes.ts";

/** The gateway with this configuration, in a process of its own; all that it keeps is in the folder. */
export function startGateway(folder: string, configuration: string): Promise<Measured> {
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "gateway.yaml");
  writeFileSync(config, configuration);
  return start([process.execPath, join(import.meta.dir, "../src/main.ts")], {
    GATEWAY_CONFIG: config,
    GATEWAY_DATA: join(folder, "data"),
    GATEWAY_ADMIN_TOKEN: ADMIN,
    PORT: "0",
  });
}

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
