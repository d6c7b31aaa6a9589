import { afterAll, expect, test } from "bun:test";
import { OPERATOR_ROLES } from "../../src/units/operator-roles.ts";
import { closeAll } from "../fakes/close-all.ts";
import { open } from "../gateway/open.ts";
import { Conformity } from "../http/conformity.ts";
import { ADMIN } from "../process/gateway.ts";
import { Fixture } from "./world.ts";

/**
 * Every endpoint of /openapi.json, sent what it takes by everybody whom the document does not name for it: nobody may be
 * let in, and nobody may see anything of the balance that the requests name but who belongs to it. The table of
 * `access.test.ts` says what those may who are named.
 */
const gateway = await open("trusted_proxies: [127.0.0.0/8]\nreceipts: { sign: true }\ncatalog: keyed\n");
const fixture = new Fixture(gateway);
afterAll(() => closeAll(gateway));

const operators = await fixture.operators();
const own = await fixture.setUp();
const foreign = await fixture.setUp();
await fixture.credit(own.balance_id);
const receipt = await fixture.chat(own.key);
const budget = { name: "own-budget-name", cap_usd: 1, window: "month" };
await fixture.send("POST", "/v1/budgets", { bearer: own.recovery_secret, json: budget });
/** In answers to others, these would be a leak. */
const CANARIES = [own.balance_id, own.id, own.key, own.recovery_secret, receipt, budget.name];

const SENDERS = {
  none: { secret: null, as: [] },
  read: { secret: operators.reader, as: ["read"] },
  operate: { secret: operators.operating, as: ["read", "operate"] },
  admin: { secret: operators.fellow, as: OPERATOR_ROLES },
  "the first admin token": { secret: ADMIN, as: OPERATOR_ROLES },
  "owner of the balance": { secret: own.recovery_secret, as: ["owner"] },
  "key of the balance": { secret: own.key, as: ["key"] },
  "owner of a foreign balance": { secret: foreign.recovery_secret, as: ["owner"] },
  "key of a foreign balance": { secret: foreign.key, as: ["key"] },
} as const;

/** What is in a path, of the balance that all requests are about. */
const filled = (path: string): string =>
  path
    .replace(/\/keys\/\{id\}/, `/keys/${own.id}`)
    .replace(/\/receipts\/\{id\}/, `/receipts/${receipt}`)
    .replace(/\/balances\/\{id\}/, `/balances/${own.balance_id}`)
    .replace(/\/accounts\/\{id\}/, `/accounts/${own.balance_id}`)
    .replace(/\/budgets\/\{name\}/, `/budgets/${budget.name}`)
    .replaceAll(/\{\w+\}/g, own.balance_id);

const { operations } = await Conformity.of(fixture.url);
/** A WebSocket is no request. */
const TAKEN = operations.filter(
  ({ name, operation }) => operation.security.length > 0 && name !== "GET /v1/responses",
);

test("every operation of an operator names a role", () => {
  const roles = operations.flatMap(({ operation }) => operation.security.flatMap(({ admin }) => admin ?? []));
  expect(new Set(roles)).toEqual(new Set(OPERATOR_ROLES));
  const admins = operations.filter(({ name }) => /^\w+ \/admin\/./.test(name));
  for (const { name, operation } of admins)
    expect([name, operation.security.map(({ admin }) => admin?.length)]).toEqual([name, [1]]);
  // Who may only read changes nothing: a secret is looked up by POST, so that no log on the way has it.
  const reading = admins.filter(({ operation }) => operation.security[0]!.admin![0] === "read");
  expect(reading.map(({ name }) => name).filter((name) => !name.startsWith("GET "))).toEqual([
    "POST /admin/keys/find",
  ]);
});

test.each(Object.keys(SENDERS) as (keyof typeof SENDERS)[])(
  "%s is let in where the document says so",
  async (who) => {
    const { secret, as } = SENDERS[who];
    const isForeign = who.includes("foreign") || secret === null;
    const leaks: string[] = [];
    for (const { name, operation } of TAKEN) {
      const [method, path] = name.split(" ") as [string, string];
      const isAdmin = operation.security.some(({ admin }) => admin !== undefined);
      const isNamed = operation.security.some((one) =>
        Object.keys(one).length === 0
          ? true
          : Object.entries(one).some(([kind, roles]) =>
              as.includes((kind === "admin" ? roles[0] : kind) as never),
            ),
      );
      // What those may who are named changes what comes next.
      if (isNamed && (method !== "GET" || !isForeign)) continue;
      const reply = await fixture.send(method, filled(path), {
        ...(secret === null ? {} : { bearer: secret }),
        ...(method === "GET" ? {} : { json: {} }),
      });
      const { status, text } = reply;
      const isRole = isAdmin && as.some((one) => OPERATOR_ROLES.includes(one as never));
      if (!isNamed && status < 400) leaks.push(`${name}: ${status}`);
      if (!isNamed && isRole && status !== 403) leaks.push(`${name}: ${status}, not 403`);
      const repeated = filled(path);
      for (const canary of isForeign || !isNamed ? CANARIES : [])
        if (text.includes(canary) && !repeated.includes(canary)) leaks.push(`${name} shows ${canary}`);
    }
    expect(leaks).toEqual([]);
  },
);

test("the balance is as it was", async () => {
  const { json } = await fixture.send("GET", "/v1/keys", { bearer: own.recovery_secret });
  expect(json.data.map(({ id, state }: { id: string; state: string }) => [id, state])).toEqual([
    [own.id, "active"],
  ]);
});
