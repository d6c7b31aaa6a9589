import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { hostAndPort, type MetricsAddress } from "../config/address.ts";
import { BETTER_TOKEN, isGuessable, weaknessOf } from "../customers/operators/token-strength.ts";
import { isLoopback } from "../ledger/limits/address.ts";
import { folderInUse, remedyFor } from "../store/data-folder.ts";
import { probeSync } from "../store/journal/disk.ts";
import { counted, messageOf } from "./console.ts";
import { type Finding, failing, ok, okIf, warning } from "./finding.ts";
import { type LocalGateway, localGateway } from "./local-gateway.ts";

/** Whether something listens where the gateway would, and whether that is a gateway. */
export async function checkPort(
  url: string,
  fetch: typeof globalThis.fetch,
): Promise<{ readonly finding: Finding; readonly gateway: boolean }> {
  const check = "port";
  try {
    const response = await localGateway(url, null, fetch)("/readyz");
    const text = await response.text();
    if (text === "ready\n") return { finding: ok(check, `a gateway serves at ${url}`), gateway: true };
    if (text.startsWith("not ready")) {
      const detail = `a gateway at ${url} is ${text.trimEnd()}`;
      return { finding: warning(check, detail, "Wait, then check again."), gateway: true };
    }
    const detail = `another program answers at ${url}`;
    return { finding: failing(check, detail, "Set PORT to another port."), gateway: false };
  } catch {
    const { hostname, port } = new URL(url);
    const address = { hostname: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
    return { finding: listenable("port", address, "HOST and PORT"), gateway: false };
  }
}

function listenable(check: string, address: MetricsAddress, settings: string): Finding {
  const shown = hostAndPort(address);
  try {
    Bun.listen({ ...address, socket: { data() {} } }).stop(true);
    return ok(check, `${shown} is free`);
  } catch (error) {
    const detail = `cannot listen on ${shown}: ${messageOf(error)}`;
    const next = `Stop the program that listens there, or set ${settings} to another address.`;
    return failing(check, detail, next);
  }
}

/** `running`: the gateway has the address already. */
export function checkMetrics(address: MetricsAddress | null, running: boolean): Finding[] {
  if (address === null) return [];
  const shown = hostAndPort(address);
  const open = isLoopback(address.hostname)
    ? []
    : [
        warning(
          "metrics",
          `anybody who reaches ${shown} reads them, with what each model and host costs`,
          "Let only your Prometheus reach it, or set `metrics` to 127.0.0.1.",
        ),
      ];
  return running ? open : [listenable("metrics", address, "`metrics`"), ...open];
}

/** What the running gateway has seen of proxies that it does not trust. */
export async function checkProxies(gateway: LocalGateway): Promise<Finding[]> {
  try {
    const response = await gateway("/metrics");
    return [...(await response.text()).matchAll(UNTRUSTED)].map(([, address, count]) =>
      warning(
        "proxies",
        `${address} sent X-Forwarded-For (${counted(Number(count), "request")}) and is not in trusted_proxies`,
        "If it is your proxy, add it: until then all its clients share one address's limits.",
      ),
    );
  } catch {
    // That it does not answer is said of the port.
    return [];
  }
}

/** Whether the running gateway and the other nodes of its store run with the same configuration. */
export async function checkNodes(gateway: LocalGateway): Promise<Finding[]> {
  try {
    const response = await gateway("/admin/nodes");
    const { data = [] } = (await response.json()) as { data?: { id: string; differs_in: string[] }[] };
    return data
      .filter(({ differs_in }) => differs_in.length > 0)
      .map(({ id, differs_in }) =>
        warning(
          "nodes",
          `${id} differs from the gateway here in ${differs_in.join(", ")}`,
          "Give all nodes of the store the same gateway.yaml and GATEWAY_ADMIN_TOKEN, and restart them.",
        ),
      );
  } catch {
    return [];
  }
}

const UNTRUSTED = /^gateway_untrusted_forwarded_total\{[^}]*address="([^"]+)"[^}]*\} (\d+)$/gm;

/** Nothing where the gateway makes the token itself. */
export function checkAdminToken(token: string | undefined): Finding[] {
  const check = "admin token";
  if (!token) return [];
  const weakness = weaknessOf(token);
  if (weakness === null) {
    const detail = "GATEWAY_ADMIN_TOKEN is made of words or rows that can be guessed";
    return isGuessable(token) ? [warning(check, detail, BETTER_TOKEN)] : [];
  }
  const detail = `GATEWAY_ADMIN_TOKEN ${weakness}: the gateway does not start`;
  return [failing(check, detail, BETTER_TOKEN)];
}

/**
 * `running`: a gateway serves at the configured address, and most likely it is the one that holds the folder.
 */
export function checkFolder(path: string, running: boolean): Finding {
  const check = "data folder";
  try {
    if (!existsSync(path)) return ok(check, `${resolve(path)} will be created on the first start`);
    if (!statSync(path).isDirectory())
      return failing(check, `${resolve(path)} is not a folder`, "Set GATEWAY_DATA to a folder.");
    if (!folderInUse(path)) return ok(check, `${resolve(path)} exists, and no gateway uses it`);
    if (running) return ok(check, `${resolve(path)} is in use by the running gateway`);
    return warning(
      check,
      `${resolve(path)} is in use by a gateway, but none answers at the configured address`,
      "A second gateway would not start. Stop the first, or set HOST and PORT to its address.",
    );
  } catch (error) {
    return failing(check, messageOf(error), remedyFor(error));
  }
}

/**
 * Each batch of requests waits for a sync of the disk before its first byte, so a slow one is felt by
 * everybody.
 */
export function checkDisk(path: string): Finding {
  const check = "disk";
  const folder = nearestFolder(resolve(path));
  try {
    const { slowMs, syncing } = probeSync(folder);
    const detail = `a sync in ${folder} takes ${slowMs.toFixed(2)} ms (the third-slowest of 20), ${syncing === "inline" ? "fast enough for the event loop" : "done off the event loop"}`;
    const next = "Requests wait that long for their first byte: use a faster disk.";
    return okIf(slowMs < SLOW_SYNC_MS, check, detail, next);
  } catch (error) {
    return failing(check, `cannot write in ${folder}: ${messageOf(error)}`, remedyFor(error));
  }
}

/** Longer than most hosts vary in their first token. */
const SLOW_SYNC_MS = 20;

/** The folder may not exist before the first start. */
function nearestFolder(path: string): string {
  for (let folder = path; ; folder = dirname(folder)) {
    if (existsSync(folder) || dirname(folder) === folder) return folder;
  }
}
