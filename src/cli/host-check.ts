import type { Host } from "../catalog/catalog.ts";
import { PRESETS } from "../config/provider-presets.ts";
import { whyUnanswered } from "./connection-errors.ts";
import { printable } from "./console.ts";
import { type Finding, failing, ok, warning } from "./finding.ts";

/** Checks a host with each of its keys. */
export async function checkKeys(
  host: Host,
  models: ReadonlySet<string>,
  fetch: typeof globalThis.fetch,
): Promise<Finding[]> {
  if (host.keys === undefined) return checkHost(host, models, fetch);
  const findings: Finding[] = [];
  for (const { name, secret } of host.keys) {
    const withKey = { ...host, id: `${host.id}, key ${name}`, apiKey: secret.text };
    findings.push(...(await checkHost(withKey, models, fetch)));
  }
  return findings;
}

/**
 * Whether a host can be reached and takes its key: asked for the list of its models, which costs nothing and
 * which all three languages' hosts have, or for what only a good key may read. Where the list comes, `models`
 * that it does not name are doubted: their rows may have a mistake in them.
 */
async function checkHost(
  host: Host,
  models: ReadonlySet<string>,
  fetch: typeof globalThis.fetch,
): Promise<Finding[]> {
  const check = `host ${host.id}`;
  const path = PRESETS.find(({ baseUrl }) => baseUrl === host.baseUrl)?.keyPath ?? "/models";
  const url = addressOf(host.baseUrl, path);
  const startedMs = performance.now();
  try {
    const response = await fetch(url, {
      headers: { ...host.headers, ...authorization(host) },
      // A redirect would carry the key to strangers.
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const ms = Math.round(performance.now() - startedMs);
    const answer = await jsonIn(response);
    if (response.ok && answer === null) return [noJson(check, response)];
    return [judge(check, response.status, host, ms), ...strangers(listIn(answer), models, check)];
  } catch (error) {
    const detail = `cannot be reached at ${new URL(url).origin}: ${whyUnanswered(error)}`;
    const next = "Check the address in the configuration, DNS, firewalls and the host's own status page.";
    return [failing(check, detail, next)];
  }
}

/** Null for what is no JSON, and for an error, whose status says enough. */
async function jsonIn(response: Response): Promise<object | null> {
  if (response.ok) return (await response.json().catch(() => null)) as object | null;
  await response.body?.cancel();
  return null;
}

/** The page of a website, a proxy or a sign-in has a good status, too. */
const noJson = (check: string, { status, headers }: Response): Finding =>
  warning(
    check,
    `answers ${status} to a listing of its models, but with ${printable(headers.get("content-type") ?? "nothing")} in place of JSON: something else may answer there`,
    "Check `base_url`, and any proxy in between.",
  );

/**
 * Ids of a whole list, as all three languages' hosts have it; null where it is something else, or a page of
 * it.
 */
function listIn(answer: object | null): ReadonlySet<string> | null {
  const list = answer as { data?: readonly { id?: unknown }[]; has_more?: boolean } | null;
  if (!Array.isArray(list?.data) || list.data.length === 0 || list.has_more === true) return null;
  // Google's are named models/….
  return new Set(list.data.map(({ id }) => String(id).replace(/^models\//, "")));
}

function strangers(list: ReadonlySet<string> | null, models: ReadonlySet<string>, check: string): Finding[] {
  const unknown = list === null ? [] : [...models].filter((model) => !list.has(model));
  if (unknown.length === 0) return [];
  const named = unknown.slice(0, MAX_NAMED).map(printable).join(", ");
  const detail = `its list of ${list!.size} models does not have ${named}${unknown.length > MAX_NAMED ? ", …" : ""}`;
  return [warning(check, detail, "Check `model` in the routes to it; `gateway models try` asks each once.")];
}

const MAX_NAMED = 5;

const ANSWER_MS = 10_000;

/** The path goes before the query that some hosts' addresses have. */
function addressOf(baseUrl: string, path: string): string {
  const [address, query] = baseUrl.split("?", 2);
  return `${address}${path}${query === undefined ? "" : `?${query}`}`;
}

function authorization({ apiKey, auth }: Host): Record<string, string> {
  if (apiKey === null) return {};
  return auth === "bearer" ? { authorization: `Bearer ${apiKey}` } : { "x-api-key": apiKey };
}

function judge(check: string, status: number, { apiKey }: Host, ms: number): Finding {
  const answers = `answers ${status} in ${ms} ms`;
  if (status >= 200 && status < 300)
    return ok(check, `${answers}; ${apiKey === null ? "no key is configured" : "its key is accepted"}`);
  if (status === 401 || status === 403)
    return failing(
      check,
      `${answers}: it ${apiKey === null ? "needs a key" : "refuses the key"}`,
      "Set a valid key where the configuration takes it from, and restart the gateway.",
    );
  if (status === 429) {
    const detail = "answers 429: its rate limit or quota is used up";
    return warning(check, detail, "Raise the limit at the host, or wait.");
  }
  if (status >= 500) return failing(check, answers, "See the host's own status page.");
  return warning(
    check,
    `can be reached, but answers ${status} to a listing of its models, so its key could not be checked`,
    "Check the path of `base_url`: it usually ends in /v1, once.",
  );
}
