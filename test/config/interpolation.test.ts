// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file form of a reference is ${NAME}
import { describe, expect, test } from "bun:test";
import { interpolate } from "../../src/config/document.ts";
import { GOOD, goodConfig, problemsOf } from "./fixture.ts";

const ENV = { NAME: "value", EMPTY: "", _x9: "y" };

describe("${NAME} is the environment's", () => {
  test.each([
    ["${NAME}", "value"],
    ["a ${NAME} b ${_x9}", "a value b y"],
    ["${EMPTY}", ""],
    ["$${NAME}", "${NAME}"],
    ["$$${NAME}", "$${NAME}"],
    ["$NAME and $$", "$NAME and $$"],
    ["plain", "plain"],
  ])("%s → %s", (source, result) => {
    expect(interpolate(source, ENV)).toBe(result);
  });

  test.each(["${MISSING}", "${}", "${NA ME}", "${9X}", "${NAME:-default}", "${NAME"])(
    "%s is refused",
    (source) => {
      expect(interpolate(source, ENV)).toBeArray();
    },
  );

  test("what a variable holds is not read again", () => {
    expect(interpolate("${A}", { A: "${B}", B: "b" })).toBe("${B}");
  });
});

test("a secret may hold any character without changing what the file means", () => {
  const key = "sk: {a} #b \"c\" 'd' *e &f";
  const config = goodConfig(GOOD, { OPENAI_API_KEY: key });
  expect(config.catalog.hosts.get("openai")?.apiKey).toBe(key);
});

test("a number may come from the environment", () => {
  const text = `${GOOD}smtp: { host: mail, from: a@b.c, port: "\${PORT}" }\ndrain_ms: \${DRAIN}\n`;
  const config = goodConfig(text, { OPENAI_API_KEY: "k", PORT: "2525", DRAIN: "100" });
  expect([config.smtp?.port, config.drainMs]).toEqual([2525, 100]);
});

test("a quoted number that the file itself holds stays a text", () => {
  expect(problemsOf('drain_ms: "100"\n')).toContain('drain_ms: found "100"');
});

test("a numeric secret stays a text", () => {
  expect(goodConfig(GOOD, { OPENAI_API_KEY: "12345" }).catalog.hosts.get("openai")?.apiKey).toBe("12345");
});

test("a key copied into the environment with its line break is refused, not sent", () => {
  expect(problemsOf(GOOD, { OPENAI_API_KEY: "sk-1\n" })).toContain("hosts[0].api_key");
});

test("the name of a setting is not the environment's", () => {
  expect(problemsOf(`${GOOD}"\${MISSING}": 1\n`)).toContain("found an unknown key");
});
