import { expect, test } from "bun:test";
import { parse } from "yaml";
import { linksOf } from "../../src/config/config.ts";
import { configView } from "../../src/config/config-view.ts";
import type { SettingRows } from "../../src/config/setting.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { goodConfig } from "./fixture.ts";

/** Every setting, with a value other than its default. */
const EVERYTHING = `
base_url: https://gateway.test
dashboard_url: https://dashboard.test
status_url: https://status.test
contact: mailto:operator@gateway.test
catalog: public
hosts:
  - id: a
    base_url: https://a.test/v1
    speaks: [chat.completions]
    api_key: a secret
    auth: x-api-key
    headers: { x-team: a secret }
    on_disconnect: drain
    bills_cancelled: prompt
    refusals: free
    fallbacks: native
    max_concurrent: 7
    cache_ms: 8
    auto_cache: true
    paused: false
    region: eu
    data_collection: deny
    zdr: true
    quirks:
      no_stream: true
      no_stream_options: true
      no_chat: true
      no_chat_tools: true
      max_completion_tokens: true
      core_fields_only: true
      strict_messages: true
      short_call_ids: true
      names_results: true
      plain_content: true
      cache_control: true
      cache_marks: true
      takes_reasoning: true
      signs_calls: true
      adaptive_thinking: true
      no_sampling: true
      no_reasoning_effort: true
      no_reasoning_summary: true
      own_tools: true
      account_references: true
      known_fields_only: true
  - id: b
    base_url: https://b.test/v1
    speaks: [chat.completions]
    keys:
      - { env: FIRST_KEY, weight: 2, max_concurrent: 3, rpm: 4, tpm: 5 }
models:
  - id: author/model
    name: The model
    aliases: [other]
    fallbacks: [author/second]
    context_length: 10
    max_output_tokens: 9
    inputs: [text, image]
    tools: true
    reasoning: true
    price: { input: 1, output: 2, cache_read: 3, cache_write: 4, cache_write_1h: 5, audio_input: 6, audio_output: 7 }
    order: price
    auto_cache: true
    routes:
      - host: a
        model: m
        price: { input: 1, output: 2, cache_read: 3, cache_write: 4, cache_write_1h: 5 }
        cost: { input: 0.5, output: 1, cache_read: 1, cache_write: 2, cache_write_1h: 3 }
        free: false
        cache_ms: 5
        quantization: fp8
        parameters: [tools]
        quirks: { no_stream: false }
  - id: author/second
    context_length: 10
    max_output_tokens: 9
    routes: [{ host: a, model: n }]
auto: { fast: [author/model] }
price_lists:
  partner:
    - { model: "author/*", factor: 0.9 }
    - { model: author/second, price: { input: 1, output: 2, cache_read: 3, cache_write: 4, cache_write_1h: 5 } }
defaults:
  accountless: { rpm_limit: 1, tpm_limit: 2, daily_limit_usd: 3, monthly_limit_usd: 4 }
  account: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }
low_credit_usd: 0.5
open_tier: { requests_per_day: 1, accountless_requests_per_day: 2, rpm: null }
setup: { accountless_keys_per_address_per_hour: 3 }
sign_in: { mails_per_hour: 4 }
generation:
  first_token_ms: 1
  max_hosts: 2
  chunk_gap_ms: 3
  keepalive_ms: null
  total_ms: 4
  write_off_tokens: 5
  default_max_output_tokens: 6
routing: { order: latency, hedge_ms: 1 }
payments:
  amounts: { min_usd: 2, suggested_usd: 3, max_usd: 4, max_usd_per_day: 5 }
  x402:
    - network: "eip155:1"
      asset: "0x00000000000000000000000000000000000000aa"
      pay_to: "0x00000000000000000000000000000000000000bb"
      rpc: https://node.test/secret
      gas_key: "0x${"ab".repeat(32)}"
      confirmations: 2
      finalized_above_usd: 3
      wasted_gas_per_hour: 4
      wait_ms: 5
    - network: "eip155:2"
      asset: "0x00000000000000000000000000000000000000aa"
      pay_to: "0x00000000000000000000000000000000000000bb"
      rpc: https://node.test/secret
      facilitator: https://facilitator.test/secret
      confirmations: 2
      finalized_above_usd: 3
      wasted_gas_per_hour: 4
      wait_ms: 5
  stripe: { secret_key: a secret, webhook_secret: [a secret], fee: { percent: 1, fixed_usd: 0.25 }, api_base: https://stripe.test }
  sanctions: { list: ./addresses, oracle: true }
  inline: { enabled: true, max_usd_per_hour: 6 }
webhooks:
  endpoints:
    - { url: https://slack.test/secret, format: slack, kinds: [credit.low] }
    - { url: https://hooks.test/secret, secret: ["whsec_${"c2VjcmV0".repeat(4)}"], kinds: [credit.low] }
  owners: loopback
export: { to: "s3://books/gateway", every: 30s, endpoint: https://s3.test }
receipts: { keep_days: 31, sign: true }
operators:
  - { name: eve, role: operate, token: "0xabababababababab" }
changes: { keep_days: null }
unused_days: null
body_bytes: 1
body_memory_bytes: 2
websocket_message_bytes: 65536
shutdown_delay_ms: 1
drain_ms: 2
grace_ms: 3
store: postgres://user:secret@db.test/gateway
journal: postgres
workers: auto
log: json
durability: strict
metrics: 127.0.0.1:9090
trusted_proxies: [10.0.0.0/8]
smtp: { host: mail.test, port: 25, user: postman, password: a secret, from: gateway@gateway.test }
wallet: { rpc: { 1: https://node.test/secret } }
`;

const read = (text: string) => {
  const config = goodConfig(text, { FIRST_KEY: "sk-first" });
  return configView(config, linksOf(config, "http://127.0.0.1:8080"));
};

test("a file that sets everything is shown as it was written, but for its secrets", () => {
  const shown = (written: unknown): unknown => {
    if (Array.isArray(written)) return written.map(shown);
    if (typeof written === "object" && written !== null)
      return Object.fromEntries(Object.entries(written).map(([name, value]) => [name, shown(value)]));
    if (typeof written !== "string") return written;
    return /^(0xabab|whsec_)/.test(written)
      ? "***"
      : written
          .replace(/user:secret|a secret/, (found) => (found === "a secret" ? "***" : "***:***"))
          .replace(/secret$/, "***");
  };
  const written = shown(parse(EVERYTHING)) as {
    hosts: object[];
    models: { routes: { quirks?: unknown }[]; auto_cache?: unknown }[];
    webhooks: { endpoints: object[] };
  };
  const [slack, signed] = written.webhooks.endpoints;
  const [model] = written.models;
  const [a, b] = written.hosts;
  const [, defaults] = (read(EVERYTHING) as unknown as typeof written).hosts;
  // A route has what its model and its host say, all of it.
  const { auto_cache, ...others } = model!;
  const routes = model!.routes.map(({ quirks: _, ...route }) => ({ ...route, auto_cache }));
  expect(read(EVERYTHING) as unknown).toEqual({
    file: "gateway.yaml",
    add_models: null,
    ...written,
    // What the second host leaves out is shown with its default.
    hosts: [a, { ...defaults, ...b }],
    // The second is there to be named.
    models: [{ ...others, routes }, expect.objectContaining({ id: "author/second" })],
    webhooks: {
      ...written.webhooks,
      endpoints: [
        { secret: [], ...slack },
        { format: "signed", ...signed },
      ],
    },
  });
});

test("no setting is missing from it, and none has its default there", () => {
  const [set, otherwise] = [parse(EVERYTHING), read("")];
  const same = leaves(SETTINGS.rows).filter((path) => {
    const value = at(set, path);
    if (NOT_WITH_OTHERS.has(path)) return false;
    return value === undefined || (Bun.deepEquals(value, at(otherwise, path)) && !NO_OTHER.has(path));
  });
  expect(same).toEqual([]);
});

/** With their other values, other settings would not be allowed or not be shown. */
const NO_OTHER = new Set(["durability", "hosts.paused", "payments.inline.enabled"]);
/** A file that lists all models adds none; a key that is a variable is no file. */
const NOT_WITH_OTHERS = new Set(["add_models", "hosts.keys.file"]);

const leaves = (rows: SettingRows, before = ""): string[] =>
  Object.entries(rows).flatMap(([name, { rows: members }]) =>
    members === undefined ? [`${before}${name}`] : leaves(members, `${before}${name}.`),
  );

/** The value at a path, in whichever row of a list has one. */
const at = (value: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((found, step) => {
    const maps = [found].flat() as (Readonly<Record<string, unknown>> | null | undefined)[];
    return maps.map((map) => map?.[step]).find((member) => member !== undefined);
  }, value);
