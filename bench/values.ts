/**
 * What a process keeps of the end users of a budget with a cap for each: its memory while each request is another end user's,
 * next to that of a process whose requests are all of one.
 *
 *     bun run bench values [--values 100000]
 */
import { Folder, GatewayProcess } from "../test/process/gateway.ts";
import { table } from "./figures.ts";
import { numberOption } from "./options.ts";
import { residentBytesOf } from "./processes.ts";

export interface ValuesCost {
  readonly values: number;
  /** Memory of the process with so many end users, and of the one with as many requests of one. */
  readonly manyMb: number;
  readonly oneMb: number;
}

export async function benchValues(values: number, every: number): Promise<ValuesCost[]> {
  const folders = [new Folder(CONFIG), new Folder(CONFIG)];
  const gateways = await Promise.all(folders.map((folder) => GatewayProcess.start(folder)));
  const rows: ValuesCost[] = [];
  try {
    const [many, one] = await Promise.all(gateways.map(cappedKey));
    for (let sent = 0; sent < values; sent += every) {
      await send(gateways[0]!, many!, every, (at) => `u${sent + at}`);
      await send(gateways[1]!, one!, every, () => "u");
      const [manyMb, oneMb] = gateways.map(({ pid }) => residentBytesOf(pid) / 1e6);
      rows.push({ values: sent + every, manyMb: manyMb!, oneMb: oneMb! });
    }
    return rows;
  } finally {
    for (const gateway of gateways) await gateway.stop();
    for (const folder of folders) folder.remove();
  }
}

const CONFIG = `
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }
`;

async function cappedKey(gateway: GatewayProcess): Promise<string> {
  const { recovery_secret: by } = await gateway.keyWith(1_000);
  await gateway.post("/v1/budgets", { name: "each", cap_usd: 100, window: "day", per: "tag:user" }, by);
  return (await gateway.post("/v1/keys", { budget: "each" }, by)).json.key;
}

async function send(
  gateway: GatewayProcess,
  key: string,
  count: number,
  user: (at: number) => string,
): Promise<void> {
  let at = 0;
  const sender = async () => {
    while (at < count) {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "x-gateway-tags": `user=${user(at++)}`,
        },
        body: '{"model":"sim/echo","max_tokens":10,"messages":[{"role":"user","content":"Hello"}]}',
      });
      if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sender));
}

const AT_ONCE = 32;

if (import.meta.main) {
  const rows = await benchValues(numberOption("values", 100_000), numberOption("every", 10_000));
  const cells = rows.map(({ values, manyMb, oneMb }) => [
    String(values),
    manyMb.toFixed(0),
    oneMb.toFixed(0),
  ]);
  console.log(table(["values", "MB, each another's", "MB, all of one"], cells));
}
