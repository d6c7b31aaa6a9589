import { afterAll, expect, test } from "bun:test";
import { closeAll } from "../fakes/close-all.ts";
import { FakeStripe } from "../fakes/stripe.ts";
import { open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { type Credential, nameOf, OPERATIONS } from "./credentials.ts";
import { Fixture, isRotated, OPERATORS_WEBHOOK, World } from "./world.ts";

const stripe = new FakeStripe();
const gateway = await open(`trusted_proxies: [127.0.0.0/8]
receipts: { sign: true }
webhooks:
  owners: loopback
  endpoints: [{ url: "${OPERATORS_WEBHOOK}", format: slack, kinds: [payment.disputed] }]
payments: { stripe: { secret_key: sk_test_1, webhook_secret: whsec_1, api_base: "${stripe.url}" } }
`);
const fixture = new Fixture(gateway);
afterAll(() => closeAll(gateway, stripe));

/** Everything that is not a GET, by the first who may. */
const CHANGING = OPERATIONS.flatMap((operation) => {
  const by = operation.who.find((one) => one !== "none");
  return operation.method === "GET" || by === undefined ? [] : [{ operation, by }];
});

/** Reading and generating by POST; a sign-in that has not happened yet; and a price list that stays none. */
const CHANGES_NOTHING =
  /\/find`|\/v1\/(chat|responses|messages)|POST \/v1\/auth\/(email|email\/preview|wallet)`|(POST \/admin\/models|PATCH \/admin\/balances\/\{balance\})`|\/test`/;

const newest = async (): Promise<string | undefined> =>
  (await fixture.send("GET", "/admin/changes?limit=1", { bearer: ADMIN })).json.data[0]?.id;

test.each(CHANGING.map(({ operation, by }) => [nameOf(operation), operation, by] as const))(
  "%s is in the log of changes",
  async (name, operation, by: Credential) => {
    const world = await World.make(fixture, operation.state ?? "claimed", isRotated(by));
    const before = await newest();
    expect(await world.send(operation, by)).toMatch(/^2/);
    const isLogged = (await newest()) !== before;
    expect(`${name}: ${isLogged}`).toBe(`${name}: ${!CHANGES_NOTHING.test(name)}`);
  },
);
