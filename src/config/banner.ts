import { RELEASE } from "../units/version.ts";
import { type Config, isDiskless, isWildcard, type Links, linksOf } from "./config.ts";
import type { FoundHosts } from "./hosts-from-environment.ts";
import { costWarnings, priceWarnings } from "./price-warnings.ts";
import { timeWarnings } from "./time-warnings.ts";

/** What the start prints: where it listens, what it serves, and the two commands of a first request. */
export function banner(facts: BannerFacts): string[] {
  const { config, found, listening, adminTokenPath, dataPath, damagedFiles, schema } = facts;
  const links = linksOf(config, listening);
  return [
    `listening on ${listening}`,
    ...everywhere(facts),
    "",
    ...table([
      ["version", `${RELEASE}, schema ${schema}`],
      ["config", config.file ?? "built-in defaults (write a gateway.yaml, or set GATEWAY_CONFIG)"],
      ["data", isDiskless(config) ? "only in PostgreSQL (journal: postgres)" : dataPath],
      ["admin token", adminTokenPath ?? "GATEWAY_ADMIN_TOKEN"],
      ["dashboard", links.dashboardUrl],
      ["operator", `${links.baseUrl}/admin`],
      ["status", links.statusUrl],
      ["API reference", `${links.baseUrl}/docs/api`],
      ["errors", `${links.baseUrl}/docs/errors`],
      ["hosts", hostsLine(config, found)],
      ["models", modelsLine(config)],
    ]),
    ...unlisted(config, found),
    ...(facts.guessableToken === null ? [] : [`  ${facts.guessableToken}`]),
    ...[...priceWarnings(config.catalog), ...costWarnings(config.catalog), ...timeWarnings(config)].map(
      (doubt) => `  ${doubt}`,
    ),
    ...damagedFiles.map(
      (path) =>
        `  ${path} is a journal that was damaged; some of it may not be booked. Keep it until you know why.`,
    ),
    "",
    "Create a key:",
    `  ${createKeyCommand(links)}`,
    ...(hasFreeModel(config) ? [] : ["Give it credit:", `  ${creditCommand(links, adminTokenPath)}`]),
    "Use it:",
    `  ${useKeyCommand(links, firstModel(config))}`,
  ];
}

export interface BannerFacts {
  readonly config: Config;
  /** The version of the store's tables. */
  readonly schema: number;
  readonly found: FoundHosts;
  /** `http://HOST:PORT` of the server. */
  readonly listening: string;
  /** As the operator named it. */
  readonly hostname: string;
  /** Null when the environment names the token. */
  readonly adminTokenPath: string | null;
  /** What to say of an admin token that could be guessed; null for any other. */
  readonly guessableToken: string | null;
  readonly dataPath: string;
  /** Journals that a start found damaged, and kept. */
  readonly damagedFiles: readonly string[];
}

/** `localhost` is the operator's way in: others come by addresses that the gateway cannot know. */
function everywhere({ config, hostname }: BannerFacts): string[] {
  if (!isWildcard(hostname)) return [];
  const everywhereElse = "  and at every other address of this machine";
  if (config.baseUrl !== null) return [`${everywhereElse}.`];
  return [
    `${everywhereElse}. Messages and links name localhost: set base_url to the address that clients use.`,
  ];
}

/**
 * Shows the answer, the recovery secret in it, and sets KEY in the reader's shell, so that the next line can
 * be pasted as it is.
 */
const createKeyCommand = ({ baseUrl }: Links): string =>
  `MADE=$(curl -s -X POST ${baseUrl}/v1/keys); echo "$MADE"; export KEY=$(echo "$MADE" | grep -oE 'or-live-[[:alnum:]]{32}' | head -n 1)`;

/** Credits the key's balance once, however often it is pasted. */
function creditCommand({ baseUrl }: Links, adminTokenPath: string | null): string {
  const token = adminTokenPath === null ? "$GATEWAY_ADMIN_TOKEN" : `$(cat '${adminTokenPath}')`;
  const balance = `BALANCE=$(echo "$MADE" | grep -oE 'bal_[[:alnum:]]+' | head -n 1)`;
  const credit = `{\\"balance_id\\":\\"$BALANCE\\",\\"amount_usd\\":1,\\"idempotency_key\\":\\"first of $BALANCE\\"}`;
  return `${balance}; curl -s -X POST ${baseUrl}/admin/credits -H "Authorization: Bearer ${token}" -d "${credit}"; echo`;
}

const useKeyCommand = ({ baseUrl }: Links, model: string): string =>
  `curl -N ${baseUrl}/v1/chat/completions -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -d '${JSON.stringify(
    { model, stream: true, messages: [{ role: "user", content: "Hello!" }] },
  )}'`;

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
}

function hostsLine({ catalog }: Config, { sources, simulatedUrl }: FoundHosts): string {
  const names = [...catalog.hosts.values()].map(({ id, baseUrl }) => {
    if (baseUrl === simulatedUrl) return `${id} (built in, simulated)`;
    const env = sources.find(({ host }) => host === id)?.env;
    return env === undefined ? id : `${id} (${env})`;
  });
  return names.join(", ");
}

function modelsLine({ catalog }: Config): string {
  const variants = [...catalog.auto.keys()].map((variant) => `gateway/auto:${variant}`);
  return `${catalog.models.size}${variants.length === 0 ? "" : `, and ${variants.join(", ")}`}`;
}

/** A found host whose models no catalogue knows serves nothing until the operator lists them. */
function unlisted({ catalog }: Config, { sources, models }: FoundHosts): string[] {
  const listedByFile = models.some((model) => catalog.models.get(model.id) !== model);
  if (listedByFile) return [];
  const routed = new Set(models.flatMap(({ routes }) => routes.map(({ host }) => host.id)));
  return sources
    .filter(({ host }) => !routed.has(host))
    .map(
      ({ host, env, isQueried }) =>
        `  ${host} (${env}) ${isQueried ? "named no models when it was asked: start it or give it one, and reload." : "serves nothing yet: none of its models are known. List them in gateway.yaml."}`,
    );
}

/** Free where there is something free, so that the first request needs no credit. */
function firstModel({ catalog }: Config): string {
  const first = catalog.models.keys().next().value;
  return hasFreeModel({ catalog }) || first === undefined ? "gateway/auto:free" : first;
}

const hasFreeModel = ({ catalog }: Pick<Config, "catalog">): boolean =>
  catalog.auto.has("free") || [...catalog.models.values()].some(hasFreeRoute);

const hasFreeRoute = ({ routes }: { readonly routes: readonly { readonly free: boolean }[] }): boolean =>
  routes.some(({ free }) => free);
