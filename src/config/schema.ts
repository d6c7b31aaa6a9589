import { type Static, type TOptional, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { HOST_ORDERS, MODALITIES, QUANTIZATIONS, SURFACE_NAMES } from "../catalog/catalog.ts";
import { QuirkSchema } from "./quirks.ts";

/**
 * The configuration file as its author writes it (contract §2; docs/configuration.md). `expected` is what a
 * problem message says in place of TypeBox's own words. Whatever one schema cannot tell, such as a route to a
 * host that is not there, is checked in read-config.
 */
const MAX_COUNT = 1_000_000_000;
/** `GET /v1/usage` adds up the receipts of 30 days, the present one among them. */
const USAGE_DAYS = 31;
/** Timers hold 31 bits of milliseconds. */
const MAX_MS = 2_147_483_647;

const text = (expected: string, pattern?: string) =>
  Type.String({ minLength: 1, maxLength: 4096, expected, ...(pattern === undefined ? {} : { pattern }) });
const secret = () => text("a secret, usually from an environment variable");
const webAddress = () => text("an http:// or https:// address");
const count = (least: number, most = MAX_COUNT) =>
  Type.Integer({
    minimum: least,
    maximum: most,
    expected: `a whole number from ${least}${most === MAX_COUNT ? "" : ` to ${most}`}`,
  });
const ms = (least = 0) =>
  Type.Integer({
    minimum: least,
    maximum: MAX_MS,
    expected: `a whole number of milliseconds from ${least} to ${MAX_MS}`,
  });
const msOrNull = () =>
  Type.Union([Type.Integer({ minimum: 1, maximum: MAX_MS }), Type.Null()], {
    expected: `a whole number of milliseconds from 1 to ${MAX_MS}, or null for never`,
  });
const countOrNull = () =>
  Type.Union([Type.Integer({ minimum: 1, maximum: MAX_COUNT }), Type.Null()], {
    expected: "a whole number from 1, or null for no limit",
  });
const workers = () =>
  Type.Union([Type.Integer({ minimum: 1, maximum: 256 }), Type.Literal("auto")], {
    expected: "a whole number from 1 to 256, or auto",
  });
const daysOrNull = (least: number) =>
  Type.Union([Type.Integer({ minimum: least, maximum: 36_500 }), Type.Null()], {
    expected: `a whole number of days from ${least}, or null to keep them forever`,
  });
const amountOrNull = (without = "no limit") =>
  Type.Union([Type.Number({ minimum: 0 }), Type.Null()], {
    expected: `an amount in USD with at most nine decimals, or null for ${without}`,
  });
const usdPerMillion = () =>
  Type.Number({ minimum: 0, expected: "USD per million tokens, from 0, with at most nine decimals" });
const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Union(
    values.map((value) => Type.Literal(value as T[number])),
    { expected: `one of: ${values.join(", ")}` },
  );
const map = <T extends TSchema>(values: T, expected: string) =>
  Type.Record(Type.String(), values, { expected });
/** A map of these members and no others. */
const members = <T extends TProperties>(
  fields: T,
  expected = `a map: { ${Object.keys(fields).join(", ")} }`,
) => Type.Object(fields, { additionalProperties: false, expected });
/** The same, where none of them has to be there. */
const settings = <T extends TProperties>(fields: T, expected?: string) => {
  const optional = Object.entries(fields).map(([name, value]) => [name, Type.Optional(value)]);
  return members(Object.fromEntries(optional) as { [Name in keyof T]: TOptional<T[Name]> }, expected);
};
const yesOrNo = () => Type.Boolean({ expected: "true or false" });
const list = <T extends TSchema>(items: T, expected: string) => Type.Array(items, { minItems: 1, expected });

const Price = members(
  {
    input: usdPerMillion(),
    output: usdPerMillion(),
    cache_read: Type.Optional(usdPerMillion()),
    cache_write: Type.Optional(usdPerMillion()),
    cache_write_1h: Type.Optional(usdPerMillion()),
    audio_input: Type.Optional(usdPerMillion()),
    audio_output: Type.Optional(usdPerMillion()),
  },
  "a price: { input, output, cache_read, cache_write, cache_write_1h, audio_input, audio_output }",
);

const Host = members(
  {
    id: text("letters, digits, dots, dashes or underscores, at most 64", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
    base_url: text("an http:// or https:// address, or simulated"),
    speaks: list(oneOf(SURFACE_NAMES), `a list of at least one of: ${SURFACE_NAMES.join(", ")}`),
    api_key: Type.Optional(secret()),
    auth: Type.Optional(oneOf(["bearer", "x-api-key"])),
    headers: Type.Optional(
      map(
        Type.String({ maxLength: 4096, expected: "the header's value" }),
        "a map from header names to values",
      ),
    ),
    on_disconnect: Type.Optional(oneOf(["cancel", "drain"])),
    bills_cancelled: Type.Optional(oneOf(["prompt"])),
    max_concurrent: Type.Optional(count(1, 100_000)),
    cache_ms: Type.Optional(ms()),
    auto_cache: Type.Optional(yesOrNo()),
    paused: Type.Optional(yesOrNo()),
    data_collection: Type.Optional(oneOf(["allow", "deny"])),
    zdr: Type.Optional(yesOrNo()),
    quirks: QuirkSchema,
  },
  "a host: { id, base_url, speaks, … }",
);

const Route = members(
  {
    host: text("the id of a host"),
    model: text("the model's id at the host"),
    price: Type.Optional(Price),
    free: Type.Optional(yesOrNo()),
    cache_ms: Type.Optional(ms()),
    quantization: Type.Optional(oneOf(QUANTIZATIONS)),
    parameters: Type.Optional(
      list(text("the name of a request parameter"), "a list of at least one request parameter"),
    ),
    quirks: QuirkSchema,
  },
  "a route: { host, model, price?, free?, … }",
);

/** What a model id may hold, and a name without an author. */
const ALIAS = "^[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,127}$";

const Model = members(
  {
    id: text("<author>/<name>"),
    name: Type.Optional(text("the model's name for people")),
    aliases: Type.Optional(list(text("another name for the model", ALIAS), "a list of at least one alias")),
    context_length: count(1),
    max_output_tokens: count(1),
    inputs: Type.Optional(list(oneOf(MODALITIES), `a list of: ${MODALITIES.join(", ")}`)),
    tools: Type.Optional(yesOrNo()),
    reasoning: Type.Optional(yesOrNo()),
    price: Type.Optional(Price),
    order: Type.Optional(oneOf(HOST_ORDERS)),
    auto_cache: Type.Optional(yesOrNo()),
    routes: list(Route, "a list of at least one route"),
  },
  "a model: { id, context_length, max_output_tokens, price, routes, … }",
);

const Limits = settings(
  {
    rpm_limit: countOrNull(),
    tpm_limit: countOrNull(),
    daily_limit_usd: amountOrNull(),
    monthly_limit_usd: amountOrNull(),
  },
  "a map of limits",
);

const amount = () => Type.Number({ minimum: 0, expected: "an amount in USD with at most two decimals" });
const address = () => text("0x and 40 hexadecimal digits", "^0x[0-9a-fA-F]{40}$");

const X402 = members(
  {
    network: text("eip155: and a chain id, such as eip155:8453", "^eip155:[1-9][0-9]{0,9}$"),
    asset: address(),
    pay_to: address(),
    rpc: webAddress(),
    facilitator: Type.Optional(webAddress()),
    gas_key: Type.Optional(text("0x and 64 hexadecimal digits", "^0x[0-9a-fA-F]{64}$")),
    confirmations: Type.Optional(count(1, 10_000)),
    finalized_above_usd: Type.Optional(amount()),
    wasted_gas_per_hour: Type.Optional(count(0)),
    wait_ms: Type.Optional(ms(1)),
  },
  "a network: { network, asset, pay_to, rpc, facilitator or gas_key, … }",
);

const Payments = settings({
  amounts: settings({
    min_usd: amount(),
    suggested_usd: amount(),
    max_usd: amount(),
    max_usd_per_day: amount(),
  }),
  x402: list(X402, "a list of at least one network"),
  stripe: members(
    {
      secret_key: secret(),
      webhook_secret: Type.Union([secret(), list(secret(), "a list of at least one secret")], {
        expected: "a secret, or a list of them",
      }),
      fee: Type.Optional(
        settings({
          percent: Type.Number({ minimum: 0, maximum: 50, expected: "a number from 0 to 50" }),
          fixed_usd: amount(),
        }),
      ),
      api_base: Type.Optional(webAddress()),
    },
    "a map: { secret_key, webhook_secret, fee }",
  ),
  sanctions: settings({
    list: text("the path of a file with one address in a line"),
    oracle: Type.Union([Type.Boolean(), address()], {
      expected: "true, false, or the address of a contract",
    }),
  }),
  inline: settings({
    enabled: yesOrNo(),
    max_usd_per_hour: amount(),
  }),
});

export const FileSchema = settings(
  {
    base_url: webAddress(),
    dashboard_url: webAddress(),
    status_url: webAddress(),
    contact: text("an http://, https:// or mailto: address"),
    catalog: oneOf(["keyed", "public"]),
    hosts: list(Host, "a list of at least one host"),
    models: list(Model, "a list of at least one model"),
    auto: map(
      list(text("a model id"), "a list of at least one model id"),
      "a map from variants to lists of model ids",
    ),
    defaults: settings({ accountless: Limits, account: Limits }),
    low_credit_usd: amountOrNull("no notice"),
    open_tier: settings({
      requests_per_day: count(0),
      accountless_requests_per_day: count(0),
      rpm: countOrNull(),
    }),
    setup: settings({ accountless_keys_per_address_per_hour: count(0) }),
    sign_in: settings({ mails_per_hour: count(0) }),
    generation: settings(
      {
        first_token_ms: ms(1),
        max_hosts: count(1, 100),
        chunk_gap_ms: ms(1),
        keepalive_ms: msOrNull(),
        total_ms: ms(1),
        write_off_tokens: count(0),
        default_max_output_tokens: count(1),
      },
      "a map of generation limits",
    ),
    routing: settings({ order: oneOf(HOST_ORDERS), hedge_ms: msOrNull() }),
    payments: Payments,
    receipts: settings({
      keep_days: daysOrNull(USAGE_DAYS),
      sign: yesOrNo(),
    }),
    unused_days: daysOrNull(1),
    body_bytes: count(1),
    body_memory_bytes: count(1, 1e12),
    websocket_message_bytes: count(65_536, 1e9),
    shutdown_delay_ms: ms(),
    drain_ms: ms(),
    grace_ms: ms(),
    store: text("sqlite, or a postgres:// address"),
    journal: oneOf(["disk", "postgres"]),
    workers: workers(),
    log: oneOf(["off", "json"]),
    durability: oneOf(["strict", "relaxed"]),
    metrics: text("an address and a port, such as 127.0.0.1:9090"),
    trusted_proxies: Type.Array(text("an address, or a block of them such as 10.0.0.0/8"), {
      expected: "a list of addresses and blocks",
    }),
    smtp: members({
      host: text("the name or address of a mail server"),
      port: Type.Optional(count(1, 65_535)),
      user: Type.Optional(text("a user name")),
      password: Type.Optional(secret()),
      from: text("the sender's email address"),
    }),
    wallet: settings({
      rpc: map(webAddress(), "a map from chain ids to addresses of nodes"),
    }),
  },
  "a map of settings",
);

export type ConfigFile = Static<typeof FileSchema>;
export type HostConfig = Static<typeof Host>;
export type ModelConfig = Static<typeof Model>;
export type RouteConfig = Static<typeof Route>;
export type PriceConfig = Static<typeof Price>;
export type PaymentsFile = Static<typeof Payments>;
export type LimitsConfig = Static<typeof Limits>;
