import { describe, expect, test } from "bun:test";
import { linksOf } from "../../src/config/config.ts";
import { configView } from "../../src/config/config-view.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { GOOD, GOOD_ENV, goodConfig } from "./fixture.ts";

const viewOf = (text: string, env = GOOD_ENV) => {
  const config = goodConfig(text, env);
  return configView(config, linksOf(config, "http://127.0.0.1:8080")) as Record<string, unknown>;
};

describe("the configuration in force", () => {
  test("has the file's members, with every default applied", () => {
    expect(viewOf(GOOD)).toMatchObject({
      file: "gateway.yaml",
      base_url: "http://127.0.0.1:8080",
      models: [{ id: "openai/gpt-4o-mini", price: { input: 0.15, output: 0.6, cache_read: 0.075 } }],
      defaults: { accountless: { rpm_limit: 60, daily_limit_usd: 5 } },
      generation: { max_hosts: 3, first_token_ms: 30_000 },
      store: "sqlite",
      smtp: null,
    });
  });

  test("calls a host's quirks what the file calls them", () => {
    const text = GOOD.replace("api_key:", "quirks: { no_stream: true, own_tools: false }\n    api_key:");
    expect(viewOf(text)).toMatchObject({ hosts: [{ quirks: { no_stream: true, own_tools: false } }] });
  });

  test("has every member that a file may have, and no other", () => {
    expect(Object.keys(viewOf(GOOD)).sort()).toEqual(
      ["file", ...Object.keys(SETTINGS.schema.properties)].sort(),
    );
  });

  test("names the setting of each member as the file does", () => {
    const { defaults, payments } = goodConfig(
      `${GOOD}payments: { stripe: { secret_key: a, webhook_secret: b } }\n`,
      GOOD_ENV,
    );
    expect(Object.keys(defaults.account)).toEqual(["rpmLimit", "tpmLimit", "dailyLimit", "monthlyLimit"]);
    expect(payments?.amounts).toEqual({ min: 1e9, suggested: 5e9, max: 500e9, maxPerDay: 1_000e9 } as never);
  });

  test("holds no secret, wherever the file may have one", () => {
    const text = `${GOOD.replace("api_key:", "headers: { x-team: canary-header }\n    api_key:")}
smtp: { host: mail.test, user: postman, password: canary-mail, from: gateway@mail.test }
`;
    const shown = JSON.stringify(viewOf(text, { OPENAI_API_KEY: "canary-key" }));
    expect(shown).not.toContain("canary");
    expect(shown).toContain(`"api_key":"***"`);
    expect(shown).toContain(`"x-team":"***"`);
    expect(shown).toContain(`"password":"***"`);
  });
});
