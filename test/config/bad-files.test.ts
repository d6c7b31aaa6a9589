// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file form of a reference is ${NAME}
import { describe, expect, test } from "bun:test";
import { GOOD, GOOD_ENV, problemsOf } from "./fixture.ts";

/** The good file with one text of it replaced. */
const spoilt = (from: string, to: string): string => {
  expect(GOOD).toContain(from);
  return GOOD.replace(from, to);
};

const CASES: [what: string, text: string, message: string][] = [
  [
    "a contact that is a script",
    `${GOOD}contact: "javascript:alert(1)"\n`,
    'gateway.yaml:14:10: contact: found "javascript:alert(1)", expected an http:// or https:// address without a user or a fragment',
  ],
  [
    "a contact that is no mailbox",
    `${GOOD}contact: "mailto:ops"\n`,
    'gateway.yaml:14:10: contact: found "mailto:ops", expected mailto: and an email address',
  ],
  [
    "an unknown key at the top",
    `${GOOD}hostz: []\n`,
    "gateway.yaml:14:1: hostz: found an unknown key, expected hosts, or one of: base_url, dashboard_url, status_url, contact, catalog, models, add_models, auto, price_lists, defaults, low_credit_usd, open_tier, setup, sign_in, generation, routing, payments, webhooks, export, receipts, operators, changes, unused_days, body_bytes, body_memory_bytes, websocket_message_bytes, shutdown_delay_ms, drain_ms, grace_ms, store, journal, workers, log, durability, metrics, trusted_proxies, smtp, wallet",
  ],
  [
    "an unknown key of a route",
    spoilt("model: gpt-4o-mini-2024-07-18", "modle: gpt-4o-mini"),
    [
      "gateway.yaml:13:9: models[0].routes[0].model: found nothing, expected the model's id at the host",
      "gateway.yaml:13:25: models[0].routes[0].modle: found an unknown key, expected model, or one of: host, price, cost, free, cache_ms, quantization, parameters, quirks",
    ].join("\n"),
  ],
  [
    "a text where a number belongs",
    spoilt("context_length: 128000", "context_length: 128k"),
    'gateway.yaml:9:21: models[0].context_length: found "128k", expected a whole number from 1',
  ],
  [
    "a missing key",
    spoilt("    context_length: 128000\n", ""),
    "gateway.yaml:7:5: models[0].context_length: found nothing, expected a whole number from 1",
  ],
  [
    "a number out of range",
    `${GOOD}workers: 0\n`,
    "gateway.yaml:14:10: workers: found 0, expected a whole number from 1 to 256, or auto",
  ],
  [
    "receipts that are kept for less than the month that usage is shown of",
    `${GOOD}receipts: { keep_days: 30 }\n`,
    "gateway.yaml:14:24: receipts.keep_days: found 30, expected a whole number of days from 31, or null to keep them forever",
  ],
  [
    "an operator's token that is too short",
    `${GOOD}operators: [{ name: eve, role: read, token: short }]\n`,
    "gateway.yaml:14:45: operators[0].token: found a string, expected a token of at least 16 characters, or sha256: and its SHA-256 in 64 digits",
  ],
  [
    "two operators with one name",
    `${GOOD}operators: [{ name: eve, role: read, token: ${"a".repeat(16)} }, { name: eve, role: read, token: ${"b".repeat(16)} }]\n`,
    'gateway.yaml:14:73: operators[1].name: found "eve", expected a name that is not taken',
  ],
  [
    "an operator with a name that stands for another",
    `${GOOD}operators: [{ name: admin, role: read, token: ${"a".repeat(16)} }]\n`,
    'gateway.yaml:14:21: operators[0].name: found "admin", expected a name that is not taken',
  ],
  [
    "a fraction of a millisecond",
    `${GOOD}drain_ms: 1.5\n`,
    "gateway.yaml:14:11: drain_ms: found 1.5, expected a whole number of milliseconds from 0 to 2147483647",
  ],
  [
    "an unknown wire language",
    spoilt("[chat.completions, responses]", "[chat, responses]"),
    'gateway.yaml:4:14: hosts[0].speaks[0]: found "chat", expected one of: chat.completions, responses, messages',
  ],
  [
    "a host that speaks nothing",
    spoilt("[chat.completions, responses]", "[]"),
    "gateway.yaml:4:5: hosts[0].speaks: found an empty list, expected a list of at least one of: chat.completions, responses, messages",
  ],
  [
    "a language said twice",
    spoilt("[chat.completions, responses]", "[responses, responses]"),
    "gateway.yaml:4:5: hosts[0].speaks: found responses, responses, expected each of them only once",
  ],
  [
    "a variable that is not set",
    spoilt("${OPENAI_API_KEY}", "${OPENAI_KEY}"),
    "gateway.yaml:5:14: hosts[0].api_key: found ${OPENAI_KEY}, which is not set, expected the environment variable OPENAI_KEY",
  ],
  [
    "a reference without its end",
    spoilt("${OPENAI_API_KEY}", '"${OPENAI_API_KEY"'),
    'gateway.yaml:5:14: hosts[0].api_key: found "${OPENAI_API_KEY", expected ${NAME}, or $${ for a literal ${',
  ],
  [
    "a route to a host that is not there",
    spoilt("host: openai, model", "host: opena, model"),
    'gateway.yaml:13:17: models[0].routes[0].host: found "opena", expected the id of a host: openai',
  ],
  [
    "an automatic route to a model that is not there",
    `${GOOD}auto: { fast: [openai/gpt-4o] }\n`,
    'gateway.yaml:14:16: auto.fast[0]: found "openai/gpt-4o", expected the id of a listed model',
  ],
  [
    "a free variant of a model without a free route",
    `${GOOD}auto:\n  free: [openai/gpt-4o-mini]\n`,
    'gateway.yaml:15:10: auto.free[0]: found "openai/gpt-4o-mini", expected a model with a route that is `free: true`',
  ],
  [
    "a model id without an author",
    spoilt("id: openai/gpt-4o-mini", "id: gpt-4o-mini"),
    'gateway.yaml:7:9: models[0].id: found "gpt-4o-mini", expected <author>/<name>, with an author other than `gateway`',
  ],
  [
    "a model that takes the gateway's own name",
    spoilt("id: openai/gpt-4o-mini", "id: gateway/auto"),
    'gateway.yaml:7:9: models[0].id: found "gateway/auto", expected <author>/<name>, with an author other than `gateway`',
  ],
  [
    "an address without a scheme",
    spoilt("https://api.openai.com/v1", "api.openai.com/v1"),
    'gateway.yaml:3:15: hosts[0].base_url: found "api.openai.com/v1", expected an http:// or https:// address without a user or a fragment',
  ],
  [
    "an address with a fragment",
    spoilt("https://api.openai.com/v1", '"https://api.openai.com/v1#x"'),
    'gateway.yaml:3:15: hosts[0].base_url: found "https://api.openai.com/v1#x", expected an http:// or https:// address without a user or a fragment',
  ],
  [
    "an address with the endpoint in it",
    spoilt("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
    'gateway.yaml:3:15: hosts[0].base_url: found "https://api.openai.com/v1/chat/completions", expected the address without `/chat/completions`, which the gateway appends',
  ],
  [
    "an address with the endpoint before its query",
    spoilt("https://api.openai.com/v1", "https://api.openai.com/v1/responses/?api-version=1"),
    'gateway.yaml:3:15: hosts[0].base_url: found "https://api.openai.com/v1/responses/?api-version=1", expected the address without `/responses`, which the gateway appends',
  ],
  [
    "the address that clients are given, which holds /v1",
    `base_url: https://gateway.example/v1/\n${GOOD}`,
    'gateway.yaml:1:11: base_url: found "https://gateway.example/v1/", expected the address without `/v1`, which is put behind it',
  ],
  [
    "an address with a query, behind which no path can be put",
    `base_url: https://gateway.example?a=b\n${GOOD}`,
    'gateway.yaml:1:11: base_url: found "https://gateway.example?a=b", expected the address without a query',
  ],
  [
    "a variable named as in a shell",
    spoilt("${OPENAI_API_KEY}", "$OPENAI_API_KEY"),
    "gateway.yaml:5:14: hosts[0].api_key: found the name of an environment variable, expected a reference to it: ${OPENAI_API_KEY}",
  ],
  [
    "a variable named as in another gateway's file",
    spoilt("${OPENAI_API_KEY}", "os.environ/OPENAI_API_KEY"),
    "gateway.yaml:5:14: hosts[0].api_key: found the name of an environment variable, expected a reference to it: ${OPENAI_API_KEY}",
  ],
  [
    "a variable that is set to nothing",
    spoilt("${OPENAI_API_KEY}", "${NOTHING}"),
    "gateway.yaml:5:14: hosts[0].api_key: found ${NOTHING} from the environment, which is empty, expected a secret, usually from an environment variable",
  ],
  [
    "a secret with the quotes that docker's --env-file keeps",
    spoilt("${OPENAI_API_KEY}", "'\"sk-1\"'"),
    "gateway.yaml:5:14: hosts[0].api_key: found a string with quotes or spaces around it, expected the secret alone: docker's --env-file keeps quotes",
  ],
  [
    "a secret with a space at its end",
    spoilt("${OPENAI_API_KEY}", "'sk-1 '"),
    "gateway.yaml:5:14: hosts[0].api_key: found a string with quotes or spaces around it, expected the secret alone: docker's --env-file keeps quotes",
  ],
  [
    "a price with ten decimals",
    spoilt("input: 0.15", "input: 0.0000000001"),
    "gateway.yaml:11:21: models[0].price.input: found 1e-10, expected USD per million tokens, at most 1000000, with at most nine decimals",
  ],
  [
    "a negative price",
    spoilt("input: 0.15", "input: -1"),
    "gateway.yaml:11:21: models[0].price.input: found -1, expected USD per million tokens, from 0, with at most nine decimals",
  ],
  ...(
    [
      [
        "without a line of its price",
        "{ prompt: 9, input: 2, output: 2 }",
        "gateway.yaml:11:22: models[0].price.above[0]: found a step without `cache_read`, expected the lines of its price",
      ],
      [
        "that is cheaper than its price",
        "{ prompt: 9, input: 0.1, output: 2, cache_read: 1 }",
        "gateway.yaml:11:42: models[0].price.above[0].input: found a step that is cheaper, expected at least the price before it",
      ],
      [
        "that is not above the one before",
        "{ prompt: 9, input: 2, output: 2, cache_read: 1 }, { prompt: 9, input: 3, output: 3, cache_read: 1 }",
        "gateway.yaml:11:83: models[0].price.above[1].prompt: found 9, expected more than 9, as steps grow",
      ],
    ] as const
  ).map(([what, steps, message]): [string, string, string] => [
    `a step ${what}`,
    spoilt("input: 0.15", `above: [${steps}], input: 0.15`),
    message,
  ]),
  [
    "an unknown retention",
    spoilt("input: 0.15", 'cache_write: { "24h": 1 }, input: 0.15'),
    "gateway.yaml:11:14: models[0].price.cache_write: found a map, expected USD per million tokens, or such a price for each retention: 5m, 30m, 1h, 12h",
  ],
  [
    "a price on a free route",
    spoilt("2024-07-18 }", "2024-07-18, free: true, price: { input: 1, output: 1 } }"),
    "gateway.yaml:13:68: models[0].routes[0].price: found a price on a free route, expected either `free: true` or a price",
  ],
  [
    "an answer longer than the context",
    spoilt("max_output_tokens: 16384", "max_output_tokens: 200000"),
    "gateway.yaml:10:24: models[0].max_output_tokens: found 200000, expected at most context_length, 128000",
  ],
  [
    "a header that belongs to the transport",
    spoilt("    api_key:", "    headers: { Host: example.com }\n    api_key:"),
    'gateway.yaml:5:22: hosts[0].headers.Host: found "Host", expected none of host, content-length, connection, transfer-encoding, expect, te, upgrade',
  ],
  [
    "a header with a line break",
    spoilt("    api_key:", '    headers: { x-a: "b\\r\\nx-c: d" }\n    api_key:'),
    "gateway.yaml:5:21: hosts[0].headers.x-a: found a string with control characters, expected printable ASCII",
  ],
  [
    "a cap with ten decimals",
    `${GOOD}defaults: { account: { daily_limit_usd: 0.0000000001 } }\n`,
    "gateway.yaml:14:41: defaults.account.daily_limit_usd: found 1e-10, expected an amount in USD, at most 8000000, with at most nine decimals",
  ],
  [
    "a first token later than the whole",
    `${GOOD}generation: { first_token_ms: 5000, total_ms: 1000 }\n`,
    "gateway.yaml:14:31: generation.first_token_ms: found 5000, expected at most total_ms, 1000",
  ],
  [
    "a notice of low credit below nothing",
    `${GOOD}low_credit_usd: -1\n`,
    "gateway.yaml:14:17: low_credit_usd: found -1, expected an amount in USD with at most nine decimals, or null for no notice",
  ],
  [
    "an endpoint whose secret is none",
    `${GOOD}webhooks: { endpoints: [{ url: "https://a.test/hook", secret: hush }] }\n`,
    "gateway.yaml:14:63: webhooks.endpoints[0].secret: found a string, expected whsec_ and 24 to 64 bytes in base64, or a list of them",
  ],
  [
    "a webhook without a secret",
    `${GOOD}webhooks: { endpoints: [{ url: "https://a.test/hook" }] }\n`,
    "gateway.yaml:14:25: webhooks.endpoints[0].secret: found nothing, expected whsec_ and 24 to 64 bytes in base64",
  ],
  [
    "a secret for Slack",
    `${GOOD}webhooks: { endpoints: [{ url: "https://a.test/hook", format: slack, secret: whsec_${"c2VjcmV0".repeat(4)} }] }\n`,
    "gateway.yaml:14:78: webhooks.endpoints[0].secret: found a secret, expected none, where the format is slack",
  ],
  [
    "two endpoints with one address",
    `${GOOD}webhooks: { endpoints: [&a { url: "https://a.test/hook", secret: whsec_${"c2VjcmV0".repeat(4)} }, *a] }\n`,
    'gateway.yaml:14:108: webhooks.endpoints[1].url: found "https://a.test", expected an address that no other endpoint has',
  ],
  ...(
    [
      [
        "to a folder without its whole path",
        '{ to: "file:here" }',
        '15: export.to: found "file:here", expected file:/folder or s3://bucket/prefix',
      ],
      [
        "to a website",
        '{ to: "https://a.test" }',
        '15: export.to: found "https://a.test", expected file:/folder or s3://bucket/prefix',
      ],
      [
        "to nowhere",
        "{ every: 1m }",
        "1: export.to: found nothing, expected file:/folder or s3://bucket/prefix",
      ],
      [
        "all the time",
        '{ to: "file:/a", every: 0s }',
        '33: export.every: found "0s", expected a time from 1s to 24h, such as 30s, 1m or 1h',
      ],
      [
        "once a week",
        '{ to: "file:/a", every: 168h }',
        '33: export.every: found "168h", expected a time from 1s to 24h',
      ],
      [
        "to no address",
        '{ to: "s3://abc", endpoint: minio }',
        '37: export.endpoint: found "minio", expected an http:// or https:// address without a user or a fragment',
      ],
    ] as const
  ).map(([name, block, problem]): [string, string, string] => [
    `an export ${name}`,
    `${GOOD}export: ${block}\n`,
    `gateway.yaml:14:${problem}`,
  ]),
  ...["localhost:9090", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "::1:9090", ":9090"].map(
    (address): [string, string, string] => [
      `metrics at ${address}`,
      `${GOOD}metrics: "${address}"\n`,
      `gateway.yaml:14:10: metrics: found "${address}", expected an IP address of this machine and a port, such as 127.0.0.1:9090`,
    ],
  ),
  [
    "a journal in PostgreSQL without a PostgreSQL",
    `${GOOD}journal: postgres\n`,
    'gateway.yaml:14:10: journal: found "postgres", expected disk, or store: postgres://…',
  ],
  [
    "a journal in PostgreSQL that need not be committed",
    `${GOOD}store: postgres://db/gateway\njournal: postgres\ndurability: relaxed\n`,
    'gateway.yaml:16:13: durability: found "relaxed", expected strict: with journal: postgres, only what is committed is acknowledged',
  ],
  [
    "a store of an unknown kind",
    `${GOOD}store: mysql://db\n`,
    "gateway.yaml:14:8: store: found another string, expected sqlite, or a postgres:// address",
  ],
  [
    "a store at an address that is none",
    `${GOOD}store: postgres://db:port/gateway\n`,
    "gateway.yaml:14:8: store: found another string, expected sqlite, or a postgres:// address",
  ],
  [
    "an automatic route to a simulated model that is not there",
    `${GOOD}auto: { fast: [sim/other] }\n`,
    'gateway.yaml:14:16: auto.fast[0]: found "sim/other", expected the id of a listed model',
  ],
  [
    "hosts without models",
    GOOD.slice(0, GOOD.indexOf("models:")),
    "gateway.yaml:1:1: hosts: found `hosts` without `models`, expected a list of models with routes to these hosts",
  ],
  ["a list where a map belongs", "- hosts\n", "gateway.yaml:1:1: found a list, expected a map of settings"],
  [
    "several mistakes, a variable that is not set among them",
    `${spoilt("${OPENAI_API_KEY}", "${OPENAI_KEY}")}workers: 0\n`,
    [
      "gateway.yaml:5:14: hosts[0].api_key: found ${OPENAI_KEY}, which is not set, expected the environment variable OPENAI_KEY",
      "gateway.yaml:14:10: workers: found 0, expected a whole number from 1 to 256, or auto",
    ].join("\n"),
  ],
  [
    "a variable that is not set where a number belongs",
    `${GOOD}drain_ms: \${DRAIN}\n`,
    "gateway.yaml:14:11: drain_ms: found ${DRAIN}, which is not set, expected the environment variable DRAIN",
  ],
  [
    "a reference that its braces end too soon, once and not with all that the parser then trips over",
    "hosts:\n  - { id: a, api_key: ${KEY}, auth: bearer }\n  - { id: b }\n",
    'gateway.yaml:2:24: this is not well-formed YAML: Unexpected flow-map-start at node end; inside braces, write a reference in quotes: "${NAME}"',
  ],
  [
    "a key said twice",
    "drain_ms: 1\ndrain_ms: 2\n",
    "gateway.yaml:2:1: this name stands twice in its map: keep one",
  ],
  [
    "a line indented with a tab",
    "smtp:\n\thost: a\n",
    "gateway.yaml:2:1: this line is indented with a tab: use spaces",
  ],
  [
    "a quote that is never closed",
    'contact: "a@b\n',
    "gateway.yaml:2:1: the quote that opens here is never closed",
  ],
  [
    "a line that is indented unlike its neighbours",
    "smtp:\n    host: a\n  from: b\n",
    "gateway.yaml:3:1: this line is not indented like the other lines of its list or map",
  ],
  [
    "a name that is indented too little for its list's row",
    "hosts:\n  - id: a\n   base_url: b\n",
    "gateway.yaml:3:1: this line is not indented like the other lines of its list or map",
  ],
  [
    "a list in brackets that is never closed",
    "trusted_proxies: [10.0.0.1\ndrain_ms: 1\n",
    "gateway.yaml:2:1: a list or map in brackets opens before this and is not closed with ], or this line is not indented deeper than its name",
  ],
  [
    "a map in braces that is never closed",
    "smtp: { host: a\n",
    "gateway.yaml:2:1: a list or map in brackets opens before this and is not closed with }, or this line is not indented deeper than its name",
  ],
  [
    "a colon in a value",
    "contact: write: me\n",
    "gateway.yaml:1:10: a value that has a colon and a space in it has to be in quotes",
  ],
  [
    "a value that begins with a character of YAML's own",
    "contact: @me\n",
    "gateway.yaml:1:10: a value that begins with this character has to be in quotes",
  ],
  [
    "a decimal comma",
    spoilt("input: 0.15,", "input: 0,15,"),
    'gateway.yaml:11:23: models[0].price["15"]: found an unknown key, expected a decimal point in place of the comma: 0.15',
  ],
  [
    "a number in quotes",
    spoilt("input: 0.15,", 'input: "0.15",'),
    'gateway.yaml:11:21: models[0].price.input: found "0.15", expected USD per million tokens, from 0, with at most nine decimals, without quotes',
  ],
  [
    "the configuration of LiteLLM",
    "model_list:\n  - { model_name: gpt-4o, litellm_params: { model: azure/gpt-4o } }\n",
    "gateway.yaml:1:1: model_list: this looks like the configuration of LiteLLM. `gateway import litellm` prints it as this gateway reads it, and says what it cannot carry; docs/moving.md has the steps",
  ],
];

describe("a bad file names the place, what was found and what was expected", () => {
  test.each(CASES)("%s", (_what, text, message) => {
    expect(problemsOf(text, GOOD_ENV)).toBe(message);
  });
});

test("the good file, unspoilt, has no problem", () => {
  expect(problemsOf(GOOD, GOOD_ENV)).toBe("");
});

test("duplicate ids of hosts and models are both reported", () => {
  const [hosts, models] = GOOD.split("models:\n");
  const doubled = `${hosts}${hosts!.replace("hosts:\n", "")}models:\n${models}${models}`;
  expect(problemsOf(doubled, GOOD_ENV)).toBe(
    [
      'gateway.yaml:6:9: hosts[1].id: found "openai", expected an id that no other host has',
      'gateway.yaml:18:9: models[1].id: found "openai/gpt-4o-mini", expected an id that no other model has',
    ].join("\n"),
  );
});

test("everything that is wrong is reported at once, in the order of the file", () => {
  const text = "workers: many\ndrain_ms: soon\nsmtp: { host: mail.example.com }\nunknown: 1\n";
  expect(
    problemsOf(text)
      .split("\n")
      .map((line) => line.split(": found")[0]),
  ).toEqual([
    "gateway.yaml:1:10: workers",
    "gateway.yaml:2:11: drain_ms",
    "gateway.yaml:3:1: smtp.from",
    "gateway.yaml:4:1: unknown",
  ]);
});

test("all missing variables are reported at once", () => {
  const text = `${GOOD.replace("api.openai.com", "${REGION}.openai.com")}`;
  expect(problemsOf(text).split("\n")).toHaveLength(2);
});

test("a hundred problems are cut short", () => {
  const text = Array.from({ length: 100 }, (_, index) => `key${index}: 1`).join("\n");
  const lines = problemsOf(text).split("\n");
  expect(lines).toHaveLength(51);
  expect(lines.at(-1)).toBe("and 50 more");
});

describe("secrets stay out of messages", () => {
  const secret = "sk-very-secret";
  const cases: [what: string, text: string][] = [
    ["a key of the wrong type", GOOD.replace("api_key: ${OPENAI_API_KEY}", `api_key: [${secret}]`)],
    ["a key that no header can hold", GOOD.replace("${OPENAI_API_KEY}", `"${secret}\\n"`)],
    ["a variable in the wrong place", GOOD.replace("https://api.openai.com/v1", "${SECRET}")],
    ["a variable that should be a number", GOOD.replace("128000", "${SECRET}")],
    ["a variable behind an alias", GOOD.replace("${OPENAI_API_KEY}", "&k ${SECRET}").replace("128000", "*k")],
    ["a password in an address", GOOD.replace("https://api", `https://me:${secret}@api`)],
    ["a store's address", `${GOOD}store: mysql://me:${secret}@db\n`],
    ["a mail server's password", `${GOOD}smtp: { host: a, from: b, password: { ${secret}: 1 } }\n`],
    [
      "Stripe's key",
      `${GOOD}payments: { stripe: { secret_key: "", webhook_secret: w${secret.repeat(1_000)} } }\n`,
    ],
    ["an account's key", `${GOOD}payments: { x402: [{ gas_key: ${secret} }] }\n`],
    [
      "headers that are no map",
      GOOD.replace("    api_key:", `    headers: "x-key: ${secret}"\n    api_key:`),
    ],
    ["a header", GOOD.replace("    api_key:", `    headers: { x-key: [${secret}] }\n    api_key:`)],
  ];
  test.each(cases)("%s", (_what, text) => {
    const problems = problemsOf(text, { ...GOOD_ENV, SECRET: secret });
    expect(problems).not.toBe("");
    expect(problems).not.toContain(secret);
  });
});

test("a bomb of aliases is refused, not unfolded", () => {
  const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
  for (let level = 0; level < 9; level++) {
    const [from, to] = [String.fromCharCode(97 + level), String.fromCharCode(98 + level)];
    bomb.push(`${to}: &${to} [${Array(10).fill(`*${from}`).join(", ")}]`);
  }
  expect(problemsOf(bomb.join("\n"))).toContain("Excessive alias count");
});
