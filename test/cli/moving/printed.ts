import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { gateway, type Run } from "../command.ts";

interface Printed {
  readonly hosts: { id: string; base_url: string; keys?: object[] }[];
  readonly models: {
    id: string;
    aliases?: string[];
    price: object;
    routes: { host: string; model: string }[];
  }[];
}

export const readPrinted = (file: string): Printed => parse(readFileSync(file, "utf8"));

/** Every variable that the file names, and the secrets that were written next to it. */
function environmentOf(file: string): Record<string, string> {
  const names = readFileSync(file, "utf8").matchAll(/(?:\$\{|env: )([A-Z][A-Z0-9_]*)/g);
  return Object.fromEntries([...names].map(([, name]) => [name!, "a-key"]));
}

/** The lines of the report below a heading. */
export function reported({ err }: Run, heading: "Left out" | "Carried otherwise"): string[] {
  const lines = err.split("\n");
  const from = lines.findIndex((line) => line.startsWith(`${heading} (`));
  if (from < 0) return [];
  const rest = lines.slice(from + 1);
  const end = rest.findIndex((line) => !line.startsWith("  "));
  return rest.slice(0, end < 0 ? rest.length : end).map((line) => line.trim());
}

/** The simulated host under the names of any models. */
export function anyModelAt(simulated: string) {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const body = { ...((await request.json()) as object), model: "echo" };
      const path = new URL(request.url).pathname.replace(/^\/v1/, "");
      return fetch(simulated + path, { method: "POST", body: JSON.stringify(body) });
    },
  });
}

/** `gateway config check --strict` of the file, and `gateway models try` with all of its hosts simulated. */
export async function tried(file: string, folder: string, simulated: string): Promise<[Run, Run]> {
  const env = environmentOf(file);
  const check = await gateway(["config", "check", file, "--strict"], env, folder);
  const printed = readPrinted(file);
  for (const host of printed.hosts) host.base_url = simulated;
  const copy = join(folder, "simulated.yaml");
  writeFileSync(copy, stringify(printed));
  return [check, await gateway(["models", "try"], { ...env, GATEWAY_CONFIG: copy }, folder)];
}
