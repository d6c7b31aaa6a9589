import { expect, test } from "bun:test";
import { Glob } from "bun";

/**
 * The house: imports point down, and rooms on one floor do not import each other (docs/architecture.md).
 * `ledger` may see nothing of `http`; a test that fails here means that something was put in the wrong room.
 */
const FLOORS = [
  ["units"],
  ["errors", "tokens"],
  ["catalog", "keys", "accounts", "limits", "payments"],
  ["ledger", "surfaces", "api"],
  ["routing", "stream"],
  ["hosts", "store", "counting", "mail", "open-tier", "wallets", "rails"],
  ["generation", "signing"],
  ["http", "dashboard", "telemetry"],
  ["cli", "config", "server", "workers", "main.ts", "gateway.ts"],
];
/** I/O begins at floor 6: below it, only these may be imported from outside. */
const PURE_PACKAGES = new Set([
  "lru-cache",
  "@sinclair/typebox",
  "@sinclair/typebox/value",
  "viem/siwe",
  "viem/utils",
  "gpt-tokenizer",
  // Reads addresses; opens nothing.
  "node:net",
  "node:zlib",
]);
const FIRST_FLOOR_WITH_IO = 6;
const ELYSIA_FLOOR = 8;

const floorOf = (room: string): number => FLOORS.findIndex((rooms) => rooms.includes(room)) + 1;
const SRC = new URL("../src/", import.meta.url).pathname;
const files = [...new Glob("**/*.{ts,tsx}").scanSync(SRC)];
const IMPORT = /^(?:import .*from |import |export .*from |\} from )"([^"]+)";$|\bimport\("([^"]+)"\)/gm;

const imports = await Promise.all(
  files.map(async (file) => {
    const text = await Bun.file(SRC + file).text();
    return [...text.matchAll(IMPORT)].map(([, target, dynamic]) => ({ file, target: (target ?? dynamic)! }));
  }),
).then((lists) => lists.flat());

test("every room has a floor", () => {
  expect(
    [...new Set(files.map((file) => file.split("/")[0]!))].filter((room) => floorOf(room) === 0),
  ).toEqual([]);
});

test("imports point down", () => {
  const wrong = imports.flatMap(({ file, target }) => {
    if (!target.startsWith(".")) return [];
    const to = new URL(target, `file:///${file}`).pathname.slice(1).split("/")[0]!;
    const from = file.split("/")[0]!;
    const fine = from === to || floorOf(to) < floorOf(from) || floorOf(from) === FLOORS.length;
    return fine ? [] : [`${file} → ${target}`];
  });
  expect(wrong).toEqual([]);
});

test("ways to pay do not import each other", () => {
  const wayOf = (path: string) => /^rails\/(\w+)\//.exec(path)?.[1];
  const wrong = imports.flatMap(({ file, target }) => {
    const to = wayOf(new URL(target, `file:///${file}`).pathname.slice(1));
    return wayOf(file) === undefined || to === undefined || to === wayOf(file) ? [] : [`${file} → ${target}`];
  });
  expect(wrong).toEqual([]);
});

test("floors 1 to 5 are pure: no I/O, no clock, no randomness of their own", async () => {
  const wrong = imports
    .filter(
      ({ file, target }) => floorOf(file.split("/")[0]!) < FIRST_FLOOR_WITH_IO && !target.startsWith("."),
    )
    .filter(
      ({ target }) =>
        !PURE_PACKAGES.has(target) &&
        !PURE_PACKAGES.has(
          target
            .split("/")
            .slice(0, target.startsWith("@") ? 3 : 1)
            .join("/"),
        ),
    )
    .map(({ file, target }) => `${file} → ${target}`);
  for (const file of files.filter((name) => floorOf(name.split("/")[0]!) < FIRST_FLOOR_WITH_IO)) {
    if (file === "units/clock.ts" || file === "units/random.ts") continue;
    const text = await Bun.file(SRC + file).text();
    if (
      /\b(Date\.now|performance\.now|Math\.random|setTimeout|setInterval|crypto\.getRandomValues)\b/.test(
        text,
      )
    ) {
      wrong.push(`${file} reads the clock or chance by itself`);
    }
  }
  expect(wrong).toEqual([]);
});

test("rooms are joined in gateway.ts and nowhere else", async () => {
  const joined = /\bnew (Health|HostSlots|Affinity|OpenStreams|FreeRoutes|ExpectedOutput|SpendableCredit)\(/;
  const elsewhere: string[] = [];
  for (const file of files)
    if (file !== "gateway.ts" && joined.test(await Bun.file(SRC + file).text())) elsewhere.push(file);
  expect(elsewhere).toEqual([]);
});

test("Elysia lives on the HTTP floor and nowhere below", () => {
  const below = imports.filter(
    ({ file, target }) => target.startsWith("elysia") && floorOf(file.split("/")[0]!) < ELYSIA_FLOOR,
  );
  expect(below).toEqual([]);
});

const TYPE = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm;

test("no type name is declared twice", async () => {
  const places = new Map<string, string[]>();
  for (const file of files) {
    const names = [...(await Bun.file(SRC + file).text()).matchAll(TYPE)].map(([, name]) => name!);
    for (const name of new Set(names)) places.set(name, [...(places.get(name) ?? []), file]);
  }
  const twice = [...places].filter(([, among]) => among.length > 1);
  expect(twice).toEqual([]);
});
