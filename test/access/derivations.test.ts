import { afterAll, expect, test } from "bun:test";
import { closeAll } from "../fakes/close-all.ts";
import { open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import {
  DERIVATIONS,
  derivationTable,
  ENDINGS,
  expected,
  NAMES,
  type Name,
  shownTable,
} from "./derivations.ts";
import { Fixture } from "./world.ts";

const gateway = await open("trusted_proxies: [127.0.0.0/8]");
const fixture = new Fixture(gateway);
afterAll(() => closeAll(gateway));

interface Credential {
  readonly secret: string;
  readonly id: string;
}

/** A claimed balance, and what is made on it. */
class Claimed {
  private readonly made = new Map<Name, Credential>();

  private constructor(
    private readonly balance: string,
    private readonly account: string,
    private undoing: string,
    private readonly headers: Readonly<Record<string, string>>,
  ) {}

  static async make(): Promise<Claimed> {
    const { id, key, balance_id, recovery_secret } = await fixture.setUp();
    const email = fixture.newEmail();
    await fixture.send("POST", "/v1/me/claim", { bearer: key, json: { email } });
    const { session, account_id } = await fixture.useLink(email);
    const headers = { "x-gateway-balance": balance_id };
    const world = new Claimed(balance_id, account_id, recovery_secret, headers);
    world.made.set("set-up key", { secret: key, id });
    world.made.set("set-up key in its grace after that", { secret: key, id });
    world.made.set("set-up key after that", { secret: key, id });
    world.made.set("recovery secret", { secret: recovery_secret, id: "" });
    world.made.set("session of the account", { secret: session, id: "" });
    return world;
  }

  /** With whatever has to be made before. */
  async credential(name: Name): Promise<Credential> {
    const { by, act, replacedBy } = DERIVATIONS[name];
    const known = this.made.get(name);
    const one = known ?? (await this.make(by!, act));
    this.made.set(name, one);
    if (replacedBy !== undefined) await this.credential(replacedBy);
    return one;
  }

  private async make(by: Name, act: (typeof DERIVATIONS)[Name]["act"]): Promise<Credential> {
    const rotated = typeof act === "object" ? await this.credential(act.rotate) : null;
    const { secret: bearer } = await this.credential(by);
    const path =
      rotated !== null ? `/v1/keys/${rotated.id}/rotate` : act === "make" ? "/v1/keys" : "/v1/me/recovery";
    const { status, json } = await this.send("POST", path, bearer);
    if (status >= 400) throw new Error(`${path} by ${by}: ${json.error.message}`);
    if (act !== "replace") return { secret: json.key, id: json.id };
    if (by === "recovery secret") this.undoing = json.recovery_secret;
    return { secret: json.recovery_secret, id: "" };
  }

  takeBack(how: "undo" | "detach", revokeKeys: boolean) {
    const json = { revoke_keys: revokeKeys };
    if (how === "undo") return fixture.send("DELETE", "/v1/me/claim", { bearer: this.undoing, json });
    const path = `/admin/accounts/${this.account}/detach`;
    return fixture.send("POST", path, { bearer: ADMIN, json: { ...json, balance_id: this.balance } });
  }

  async works({ secret }: Credential): Promise<boolean> {
    const { status, json } = await this.send("GET", "/v1/me", secret);
    return status === 200 && json.balance_id === this.balance;
  }

  private send(method: string, path: string, bearer: string) {
    return fixture.send(method, path, { bearer, headers: this.headers });
  }
}

for (const [how, revokeKeys] of ENDINGS) {
  test.each(NAMES)(`after ${how}${revokeKeys ? " with revoke_keys" : ""}: %s`, async (name) => {
    const world = await Claimed.make();
    const credential = await world.credential(name);
    const { status, json } = await world.takeBack(how, revokeKeys);
    expect(status).toBe(200);
    const isLive = expected(DERIVATIONS[name], revokeKeys) === "works";
    expect(await world.works(credential)).toBe(isLive);
    const listed = json.live_keys.map(({ id }: { id: string }) => id);
    if (credential.id !== "") expect(listed.includes(credential.id)).toBe(isLive);
  });
}

test("decision 8 shows this table", async () => {
  expect(await shownTable()).toBe(derivationTable());
});
