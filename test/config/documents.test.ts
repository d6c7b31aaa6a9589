import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { Glob } from "bun";
import { parse } from "yaml";
import { withSettings } from "../../scripts/settings-document.ts";
import { isDiskless } from "../../src/config/config.ts";
import { PRESETS } from "../../src/config/provider-presets.ts";
import { quirkRow } from "../../src/config/quirks.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { Networks } from "../../src/units/networks.ts";
import { goodConfig } from "./fixture.ts";

const read = (path: string) => Bun.file(new URL(`../../${path}`, import.meta.url).pathname).text();

test("the example file is good, and its simulated model needs no host of its own", async () => {
  const { catalog } = goodConfig(await read("gateway.example.yaml"), {
    OPENAI_API_KEY: "a",
    ANTHROPIC_API_KEY: "b",
  });
  expect([...catalog.hosts.keys()]).toEqual(["openai", "anthropic", "vllm", "sim"]);
  expect([...catalog.auto.keys()]).toEqual(["fast", "free"]);
});

test("docs/configuration.md has the settings as src/config has them (bun run document:settings)", async () => {
  const text = await read("docs/configuration.md");
  expect(withSettings(text)).toBe(text);
});

test("docs/configuration.md names every key of the file and every variable of the presets", async () => {
  const text = await read("docs/configuration.md");
  const names = [...keysOf(SETTINGS.schema), ...PRESETS.map(({ env }) => env), "OLLAMA_HOST"];
  expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([]);
});

test("docs/hosts.md has every preset with its address, its languages and its quirks", async () => {
  const text = await read("docs/hosts.md");
  for (const { baseUrl, speaks, quirks = {} } of PRESETS) {
    const at = text.indexOf(baseUrl);
    expect([baseUrl, at > 0]).toEqual([baseUrl, true]);
    const row = text.slice(at, at + 500);
    for (const entry of [speaks.join(", "), ...Object.keys(quirkRow(quirks))]) expect(row).toContain(entry);
  }
});

/** Every property name in a schema, however deep. */
function keysOf(schema: TSchema): string[] {
  const properties: Record<string, TSchema> = schema.properties ?? {};
  const inner = [schema.items, ...Object.values(schema.patternProperties ?? {})].filter(
    (one) => one !== undefined,
  );
  return [
    ...Object.keys(properties),
    ...[...Object.values(properties), ...inner].flatMap((one) => keysOf(one as TSchema)),
  ];
}

test("deploy/gateway.cluster.yaml is good, and trusts the address that its proxy has, and no wider block", async () => {
  const { services, networks } = parse(await read("deploy/compose.cluster.yaml"));
  const address = services.proxy.networks.default.ipv4_address;
  const file = await read("deploy/gateway.cluster.yaml");
  expect(services.gateway.volumes).toEqual(["./gateway.cluster.yaml:/etc/gateway.yaml:ro"]);
  expect(isDiskless(goodConfig(file, { PG_PASSWORD: "a" }))).toBe(true);
  expect(parse(file).trusted_proxies).toEqual([address]);
  const [{ subnet, ip_range: range }] = networks.default.ipam.config;
  expect([subnet, range].map((row) => networksOf(row).has(address))).toEqual([true, false]);
});

function networksOf(row: string): Networks {
  const networks = new Networks();
  expect(networks.add(row)).toBe(true);
  return networks;
}

test("no document leads to a file or to a heading that is not there", async () => {
  const root = new URL("../../", import.meta.url).pathname;
  const broken: string[] = [];
  for (const file of [...new Glob("*.md").scanSync(root), ...new Glob("docs/**/*.md").scanSync(root)]) {
    for (const [, link = "", heading] of (await read(file)).matchAll(/\]\(([^)#\s]*)(?:#([^)\s]+))?\)/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      const target = link === "" ? join(root, file) : join(root, dirname(file), link);
      const there = existsSync(target) && (heading === undefined || (await headings(target)).has(heading));
      if (!there) broken.push(`${file}: ${link}#${heading ?? ""}`);
    }
  }
  expect(broken).toEqual([]);
  expect(await read("SECURITY.md")).toContain("(docs/security.md)");
});

/** The anchors that GitHub gives the headings of a document. */
async function headings(path: string): Promise<Set<string>> {
  const prose = (await Bun.file(path).text()).replace(/```[\s\S]*?```/g, "");
  return new Set(
    [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test("CONTRIBUTING.md names files that are there", async () => {
  const root = new URL("../../", import.meta.url).pathname;
  const named = [...(await read("CONTRIBUTING.md")).matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(
    ([, path]) => path!,
  );
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
