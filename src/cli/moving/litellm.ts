import { parseDocument } from "yaml";
import { CommandFailure, EXIT } from "../failure.ts";
import type { Draft } from "./draft.ts";
import { type Fields, fieldsOf, numberOf, perMillion, rowOf, textOf } from "./fields.ts";
import type { UsdPrice } from "./known-models.ts";
import type { Share } from "./pools.ts";
import { addressOf, LITELLM_PROVIDERS, NOT_SERVED, OPENAI, ownHost, type Provider } from "./providers.ts";

/**
 * Reads LiteLLM's configuration file, as its documentation describes it ("All settings", proxy/config_settings). Keys,
 * teams and what they spent are in LiteLLM's database, not in this file.
 */
export function readLiteLLM(text: string, file: string, draft: Draft): void {
  const root = fieldsOf(parsed(text, file));
  const { model_list, router_settings, litellm_settings, general_settings, ...others } = root;
  if (!Array.isArray(model_list))
    throw new CommandFailure(EXIT.usage, `${file} has no model_list, so it is not LiteLLM's configuration`);
  const credentials = credentialsOf(others.credential_list);
  readEnvironment(fieldsOf(others.environment_variables), draft);
  const rows = model_list.map((row, at) => ({ row: fieldsOf(row), from: `model_list[${at}]` }));
  const isPattern = ({ row }: { row: Fields }) => textOf(row.model_name)?.includes("*") === true;
  // Models that are named win over those that a pattern matches.
  const named = rows.filter((one) => !isPattern(one));
  for (const { row, from } of inOrder(named, draft)) readModel(row, from, credentials, draft);
  for (const { row, from } of rows.filter(isPattern)) readPattern(row, from, draft);
  draft.pool();
  readRouting(fieldsOf(router_settings), fieldsOf(litellm_settings), draft);
  readLimits(fieldsOf(litellm_settings), draft);
  readGeneral(fieldsOf(general_settings), draft);
  for (const name of Object.keys(others)) {
    if (name === "credential_list" || name === "environment_variables") continue;
    draft.leaveOut(name, UNKNOWN);
  }
  draft.note(
    "keys",
    "LiteLLM keeps keys, teams and what they spent in its database, which this does not read: make keys with `gateway keys create`",
  );
}

const UNKNOWN = "there is no such setting here";

function parsed(text: string, file: string): unknown {
  const document = parseDocument(text, { logLevel: "silent" });
  const [error] = document.errors;
  if (error !== undefined) throw new CommandFailure(EXIT.usage, `${file} is no YAML: ${error.message}`);
  return document.toJS({ maxAliasCount: MAX_ALIASES });
}

const MAX_ALIASES = 100;

interface Row {
  readonly row: Fields;
  readonly from: string;
}

/**
 * LiteLLM tries the lowest `order` first, and shares by weight what has the same: so do keys of one host here. The first of
 * several hosts serves while it works.
 */
function inOrder(rows: readonly Row[], draft: Draft): Row[] {
  const of = ({ row }: Row, name: string): number => numberOf(fieldsOf(row.litellm_params)[name]) ?? 0;
  if (rows.some((row) => of(row, "weight") > 0))
    draft.note(
      "litellm_params.weight",
      "keys of one host share by weight; of several hosts, the heaviest gets all requests while it works",
    );
  return [...rows].sort((a, b) => of(a, "order") - of(b, "order") || of(b, "weight") - of(a, "weight"));
}

type Credentials = ReadonlyMap<string, Fields>;

const credentialsOf = (list: unknown): Credentials =>
  new Map(
    (Array.isArray(list) ? list : []).map((one) => {
      const { credential_name, credential_values } = fieldsOf(one);
      return [String(credential_name), fieldsOf(credential_values)];
    }),
  );

function readEnvironment(variables: Fields, draft: Draft): void {
  for (const [name, value] of Object.entries(variables))
    if (typeof value === "string" || typeof value === "number") draft.secrets.set(name, String(value));
}

/** Handled, or without a meaning here. */
const READ_PARAMS = new Set([
  ...["model", "api_key", "api_base", "base_url", "api_version", "custom_llm_provider", "weight", "order"],
  ...["rpm", "tpm", "max_parallel_requests"],
  ...["litellm_credential_name", "extra_headers", "organization", "drop_params", "use_in_pass_through"],
]);

const WHY_PARAMS: Readonly<Record<string, string>> = {
  timeout: "times are the same for all models: `generation`",
  stream_timeout: "times are the same for all models: `generation.first_token_ms`",
  max_retries: "each host is tried once, at most `generation.max_hosts` of them",
};

function readModel(row: Fields, from: string, credentials: Credentials, draft: Draft): void {
  const name = textOf(row.model_name);
  const given = fieldsOf(row.litellm_params);
  const params = { ...credentials.get(String(given.litellm_credential_name)), ...given };
  const model = textOf(params.model);
  if (name === null || model === null)
    return draft.leaveOut(from, "it lacks model_name or litellm_params.model");
  const at = `${from} ${name} (${model})`;
  const info = fieldsOf(row.model_info);
  const mode = textOf(info.mode);
  if (mode !== null && !TEXT_MODES.has(mode))
    return draft.leaveOut(at, `only text is generated here, not ${mode}`);
  const base = textOf(params.api_base) ?? textOf(params.base_url);
  const found = providerOf(model, textOf(params.custom_llm_provider), base);
  if (typeof found === "string") return draft.leaveOut(at, found);
  const { provider, wireName, isNamed } = found;
  if (base === null && provider.address === null)
    return draft.leaveOut(at, "it has no api_base, and there is no usual one");
  draft.add({
    name,
    provider,
    address: base === null ? null : addressOf(base, provider),
    key: textOf(params.api_key),
    headers: headersOf(params),
    model: wireName,
    knownAs: textOf(info.base_model)?.replace(/^[a-z_]+\//, "") ?? (isNamed ? wireName : null),
    contextLength: numberOf(info.max_input_tokens) ?? numberOf(info.max_tokens),
    maxOutputTokens: numberOf(info.max_output_tokens) ?? numberOf(info.max_tokens),
    price: priceOf({ ...given, ...info }),
    share: shareOf(params),
    from: at,
  });
  leaveOutParams(params, at, draft);
}

function shareOf(params: Fields): Share {
  const positive = (name: string) => {
    const number = numberOf(params[name]);
    return number !== null && number > 0 ? number : null;
  };
  return {
    order: numberOf(params.order) ?? 0,
    weight: positive("weight"),
    rpm: positive("rpm"),
    tpm: positive("tpm"),
    maxConcurrent: positive("max_parallel_requests"),
  };
}

function leaveOutParams(params: Fields, from: string, draft: Draft): void {
  for (const name of Object.keys(params))
    if (!READ_PARAMS.has(name) && !IS_PRICE.test(name))
      draft.leaveOut(
        `${from}: litellm_params.${name}`,
        rowOf(WHY_PARAMS, name) ?? "requests are not changed by their model here",
      );
}

const TEXT_MODES = new Set(["chat", "completion", "responses"]);
const IS_PRICE = /cost/;

const headersOf = ({ extra_headers, organization }: Fields): Record<string, string> => ({
  ...Object.fromEntries(
    Object.entries(fieldsOf(extra_headers)).map(([name, value]) => [name, String(value)]),
  ),
  ...(textOf(organization) === null ? {} : { "openai-organization": textOf(organization)! }),
});

interface Served {
  readonly provider: Provider;
  /** At the host. */
  readonly wireName: string;
  /** The name is one of OpenAI's or Anthropic's, wherever it is served. */
  readonly isNamed: boolean;
}

/** The provider of `<provider>/<model>`, or why it is not served. */
function providerOf(model: string, given: string | null, base: string | null): Served | string {
  const [first, ...rest] = model.split("/");
  const isPrefix =
    rest.length > 0 && [LITELLM_PROVIDERS, NOT_SERVED].some((table) => Object.hasOwn(table, first!));
  const prefix = given ?? (isPrefix ? first! : vendorOf(model));
  if (prefix === null) return "LiteLLM's name for its provider is not known here; list its host by hand";
  const why = rowOf(NOT_SERVED, prefix);
  if (why !== undefined) return why;
  const provider = rowOf(LITELLM_PROVIDERS, prefix);
  if (provider === undefined) return `models of ${prefix} are not served here; list its host by hand`;
  const bare = prefix === first && rest.length > 0 ? rest.join("/") : model;
  const wireName = bare.replace(/^responses\//, "");
  if (provider !== OPENAI || base === null || /^https:\/\/api\.openai\.com/.test(base))
    return { provider, wireName, isNamed: false };
  return { provider: { ...ownHost(hostName(base)), path: "" }, wireName, isNamed: true };
}

/** LiteLLM knows these without a provider in front. */
function vendorOf(model: string): string | null {
  if (/^(gpt-|chatgpt-|o\d)/.test(model)) return "openai";
  if (model.startsWith("claude-")) return "anthropic";
  return model.startsWith("gemini-") ? "vertex_ai" : null;
}

/** For the id of a host. */
function hostName(base: string): string {
  const name = URL.canParse(base) ? new URL(base).hostname : "own";
  return name.replaceAll(/[^A-Za-z0-9._-]/g, "").slice(0, 60) || "own";
}

/** USD per token in the source, per million here; null where it names none. */
function priceOf(info: Fields): UsdPrice | null {
  const line = (name: string): number | null => {
    const perToken = numberOf(info[name]);
    return perToken === null ? null : perMillion(perToken);
  };
  const [input, output] = [line("input_cost_per_token"), line("output_cost_per_token")];
  if (input === null && output === null) return null;
  const read = line("cache_read_input_token_cost");
  const write = line("cache_creation_input_token_cost");
  return {
    input: input ?? 0,
    output: output ?? 0,
    ...(read === null ? {} : { cache_read: read }),
    ...(write === null ? {} : { cache_write: write }),
  };
}

/** `anthropic/*`: every model of the provider whose price is known. */
function readPattern(row: Fields, from: string, draft: Draft): void {
  const pattern = textOf(row.model_name)!;
  const params = fieldsOf(row.litellm_params);
  const target = textOf(params.model) ?? "";
  const provider = rowOf(LITELLM_PROVIDERS, target.split("/")[0] ?? "");
  const at = `${from} ${pattern} (${target})`;
  const base = textOf(params.api_base) ?? textOf(params.base_url);
  if (!/^[^/]+\/\*$/.test(target) || !provider?.preset || (base !== null && provider === OPENAI))
    return draft.leaveOut(
      at,
      "only a pattern of all models of one known provider can be written out; list its models, or leave `models` out: providers whose keys are in the environment are then found",
    );
  const { preset } = provider;
  const share = shareOf(params);
  const names = draft.known.of(preset).map(({ wireName }) => wireName);
  const added = names.filter((name) => !draft.has(pattern.replace("*", name)) && !draft.has(name));
  for (const name of added)
    draft.add({
      name: pattern.replace("*", name),
      provider,
      address: base === null ? null : addressOf(base, provider),
      key: textOf(params.api_key),
      headers: headersOf(params),
      model: name,
      share,
      from: at,
    });
  draft.note(at, `written out as the ${added.length} models whose prices are known`);
  leaveOutParams(params, at, draft);
}

const ORDERS: Readonly<Record<string, string>> = {
  "latency-based-routing": "latency",
  "cost-based-routing": "price",
};

/** Read below, or without a meaning here. */
const ROUTING_READ = new Set([
  ...["model_group_alias", "routing_strategy", "fallbacks", "default_fallbacks", "timeout"],
  ...["content_policy_fallbacks", "context_window_fallbacks"],
]);

const WHY_ROUTING: Readonly<Record<string, string>> = {
  num_retries: "each host is tried once, at most `generation.max_hosts` of them",
  allowed_fails: "a host rests after failures by a rule of its own (docs/routing.md)",
  cooldown_time: "a host rests after failures by a rule of its own (docs/routing.md)",
  redis_host: "nodes share their state by PostgreSQL (`store`)",
  redis_port: "nodes share their state by PostgreSQL (`store`)",
  redis_password: "nodes share their state by PostgreSQL (`store`)",
  enable_pre_call_checks: "it is always on",
};

function readRouting(router: Fields, settings: Fields, draft: Draft): void {
  for (const [alias, to] of Object.entries(fieldsOf(router.model_group_alias)))
    draft.addAlias(
      alias,
      textOf(to) ?? textOf(fieldsOf(to).model) ?? "",
      `router_settings.model_group_alias.${alias}`,
    );
  const strategy = textOf(router.routing_strategy);
  const order = rowOf(ORDERS, strategy ?? "");
  if (order !== undefined) draft.settings.routing = { order };
  else if (strategy !== null && strategy !== "simple-shuffle")
    draft.leaveOut("router_settings.routing_strategy", `there is no ${strategy}: hosts are tried as listed`);
  const seconds = numberOf(router.timeout) ?? numberOf(settings.request_timeout);
  if (seconds !== null && seconds > 0) draft.settings.generation = { total_ms: Math.round(seconds * 1000) };
  for (const from of ["router_settings", "litellm_settings"] as const)
    readFallbacks(from === "router_settings" ? router : settings, from, draft);
  for (const name of Object.keys(router))
    if (!ROUTING_READ.has(name))
      draft.leaveOut(`router_settings.${name}`, rowOf(WHY_ROUTING, name) ?? UNKNOWN);
}

/** LiteLLM's lists are `[{ model: [others] }]`. */
function readFallbacks(of: Fields, from: string, draft: Draft): void {
  for (const [name, others] of pairsOf(of.content_policy_fallbacks))
    draft.setFallbacks(name, others, `${from}.content_policy_fallbacks.${name}`);
  for (const [name, others] of pairsOf(of.fallbacks)) {
    const at = `${from}.fallbacks.${name}`;
    const auto = draft.has(name) ? draft.addAuto(name, [name, ...others], at) : null;
    if (auto === null) draft.leaveOut(at, `${name} is not carried`);
    else
      draft.note(
        at,
        `no other model takes over by itself; clients call ${auto}, or name the others in \`models\``,
      );
  }
  for (const name of ["context_window_fallbacks", "default_fallbacks"])
    if (of[name] !== undefined)
      draft.leaveOut(`${from}.${name}`, "clients name the models that may take over, in `models`");
}

const pairsOf = (list: unknown): [string, string[]][] =>
  (Array.isArray(list) ? list : []).flatMap((one) =>
    Object.entries(fieldsOf(one)).map(([name, others]): [string, string[]] => [
      name,
      (Array.isArray(others) ? others : []).filter((other) => typeof other === "string"),
    ]),
  );

const LIMITS_READ = new Set([
  ...["default_key_generate_params", "upperbound_key_generate_params", "request_timeout", "fallbacks"],
  ...["content_policy_fallbacks", "context_window_fallbacks", "default_fallbacks", "budget_duration"],
]);

const WHY_SETTINGS: Readonly<Record<string, string>> = {
  drop_params: "what a host does not take is always left out, and named in `x-gateway-omitted`",
  max_budget: "there is no cap over all customers: each balance is prepaid, and keys and budgets have caps",
  cache: "answers are not cached here",
  cache_params: "answers are not cached here",
  callbacks: "metrics, traces and the request log are docs/operating.md's",
  success_callback: "metrics, traces and the request log are docs/operating.md's",
  failure_callback: "metrics, traces and the request log are docs/operating.md's",
  num_retries: "each host is tried once, at most `generation.max_hosts` of them",
  set_verbose: "set `log: json` for a line per request",
  json_logs: "set `log: json` for a line per request",
};

/** What new keys get. */
function readLimits(settings: Fields, draft: Draft): void {
  const from =
    settings.default_key_generate_params === undefined
      ? "upperbound_key_generate_params"
      : "default_key_generate_params";
  const { rpm_limit, tpm_limit, max_budget, budget_duration, duration, ...others } = fieldsOf(settings[from]);
  const at = `litellm_settings.${from}`;
  const cap = numberOf(max_budget);
  const window = cap === null ? null : windowOf(textOf(budget_duration));
  const limits = {
    ...(numberOf(rpm_limit) === null ? {} : { rpm_limit: numberOf(rpm_limit) }),
    ...(numberOf(tpm_limit) === null ? {} : { tpm_limit: numberOf(tpm_limit) }),
    ...(window === null ? {} : { [window]: cap }),
  };
  if (cap !== null && window === null)
    draft.leaveOut(
      `${at}.max_budget`,
      "caps of keys are by day or month; a balance is prepaid, and budgets can be `total`",
    );
  if (duration !== undefined)
    draft.leaveOut(`${at}.duration`, "a key ends when its maker says so: `expires_at`");
  for (const name of Object.keys(others)) draft.leaveOut(`${at}.${name}`, UNKNOWN);
  if (Object.keys(limits).length > 0) draft.settings.defaults = { accountless: limits, account: limits };
  for (const name of Object.keys(settings))
    if (!LIMITS_READ.has(name))
      draft.leaveOut(`litellm_settings.${name}`, rowOf(WHY_SETTINGS, name) ?? UNKNOWN);
}

function windowOf(duration: string | null): "daily_limit_usd" | "monthly_limit_usd" | null {
  if (duration === "1d" || duration === "24h") return "daily_limit_usd";
  return duration === "30d" || duration === "1mo" ? "monthly_limit_usd" : null;
}

const MIN_TOKEN = 16;

const WHY_GENERAL: Readonly<Record<string, string>> = {
  database_url: "this is LiteLLM's own database; the gateway's is `store`",
  alerting: "deploy/alerts.yaml has alerts on the gateway's metrics",
};

/** The master key becomes the operator's token: it opens administration, and generates nothing. */
function readGeneral(general: Fields, draft: Draft): void {
  for (const [name, value] of Object.entries(general)) {
    const at = `general_settings.${name}`;
    const token = name === "master_key" ? textOf(value) : null;
    if (token === null) draft.leaveOut(at, rowOf(WHY_GENERAL, name) ?? UNKNOWN);
    else if (token.startsWith("os.environ/"))
      draft.note(
        at,
        `set GATEWAY_ADMIN_TOKEN to the value of ${token.slice("os.environ/".length)}; it opens /admin alone`,
      );
    else if (token.length < MIN_TOKEN)
      draft.leaveOut(
        at,
        `an admin token has at least ${MIN_TOKEN} characters; the gateway makes one at its first start`,
      );
    else {
      draft.secrets.set("GATEWAY_ADMIN_TOKEN", token);
      draft.note(at, "carried as GATEWAY_ADMIN_TOKEN, which opens /admin alone and generates nothing");
    }
  }
}
