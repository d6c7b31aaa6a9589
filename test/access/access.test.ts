import { afterAll, expect, test } from "bun:test";
import { closeAll } from "../fakes/close-all.ts";
import { FakeStripe } from "../fakes/stripe.ts";
import { open } from "../gateway/open.ts";
import { Conformity } from "../http/conformity.ts";
import {
  ALL,
  type Credential,
  credentialTable,
  expected,
  nameOf,
  OPERATIONS,
  type Operation,
  readDocument,
  type State,
  tableIn,
} from "./credentials.ts";
import { Fixture, isRotated, OPERATORS_WEBHOOK, World } from "./world.ts";

const stripe = new FakeStripe();
const gateway = await open(`trusted_proxies: [127.0.0.0/8]
receipts: { sign: true }
webhooks:
  owners: loopback
  endpoints: [{ url: "${OPERATORS_WEBHOOK}", format: slack, kinds: [payment.disputed] }]
payments: { stripe: { secret_key: sk_test_1, webhook_secret: whsec_1, api_base: "${stripe.url}" } }
`);
const deps = new Fixture(gateway);
afterAll(() => closeAll(gateway, stripe));

const worlds = new Map<string, World>();

/** One that nobody has changed; what is refused, or only reads, leaves it as it was. */
async function freshWorld(state: State, rotated: boolean): Promise<World> {
  const name = `${state} ${rotated}`;
  const known = worlds.get(name);
  if (known !== undefined && !known.used) return known;
  const world = await World.make(deps, state, rotated);
  worlds.set(name, world);
  return world;
}

const answer = async (operation: Operation, by: Credential): Promise<string> =>
  (await freshWorld(operation.state ?? "claimed", isRotated(by))).send(operation, by);

for (const operation of OPERATIONS) {
  test(nameOf(operation), async () => {
    const seen: string[] = [];
    for (const by of ALL) seen.push(`${by}: ${await answer(operation, by)}`);
    expect(seen).toEqual(ALL.map((by) => `${by}: ${expected(operation, by)}`));
  });
}

test("a cookie is its session to the gateway's own pages; to others it changes nothing", async () => {
  for (const operation of OPERATIONS) {
    const { method, path, state = "claimed" } = operation;
    const inCookie = async (origin: string) => {
      const world = await freshWorld(state, false);
      return world.send(operation, "session", world.inCookie(origin));
    };
    const [none, session] = [expected(operation, "none"), expected(operation, "session")];
    // The operator's token and generation are never in a cookie.
    const readsNone = path.startsWith("/admin/") || path === "/metrics" || session === "401 invalid_api_key";
    const own = readsNone ? none : session;
    // Pages elsewhere may try the endpoints that take a key, where a cookie says nothing.
    const maySend = method === "GET" || /completions|responses|messages/.test(path);
    const foreign = maySend ? own : "400 invalid_request";
    expect(`${nameOf(operation)} ${await inCookie(deps.url)}`).toBe(`${nameOf(operation)} ${own}`);
    expect(`${nameOf(operation)} ${await inCookie("https://evil.example")}`).toBe(
      `${nameOf(operation)} ${foreign}`,
    );
  }
});

test("the table has every operation", async () => {
  const { operations } = await Conformity.of(deps.url);
  const shape = (path: string) => path.replaceAll(/\{\w+\}|\?.*$/g, (part) => (part[0] === "?" ? "" : "*"));
  const known = OPERATIONS.map(({ method, path }) => `${method} ${shape(path)}`);
  const missing = operations
    .map(({ name }) => name)
    .filter((name) => {
      const pattern = new RegExp(`^${shape(name).replaceAll("*", "[^/]+")}$`);
      return !known.some((one) => pattern.test(one));
    });
  // A WebSocket is no request, on SQLite there are no other nodes to close, nothing is paid here, Stripe signs what it
  // sends, no list of models was applied, and the names of the pages' files differ from build to build.
  expect(missing.toSorted()).toEqual([
    "GET /dashboard/{file}",
    "GET /v1/responses",
    "POST /admin/models/undo",
    "POST /admin/nodes/{id}/close",
    "POST /admin/payments/{id}/refund",
    "POST /admin/payments/{id}/resolve",
    "POST /webhooks/stripe",
  ]);
});

test("decision 8 shows this table", async () => {
  expect(tableIn(await readDocument())).toBe(credentialTable());
});
