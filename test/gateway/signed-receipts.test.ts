import { afterAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { compactVerify, createLocalJWKSet, createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from "jose";
import { gateway as command } from "../cli/command.ts";
import { ADMIN } from "../process/gateway.ts";
import { type Made, type OpenGateway, open, openIn } from "./open.ts";

const CONFIG = "base_url: https://gateway.example\nreceipts: { sign: true }\n";

const gateway = await open(CONFIG);
const owner = await gateway.key(1);
const receipt = await receiptOf(gateway, owner);
afterAll(() => gateway.close());

/** The id of the receipt of a request. */
async function receiptOf(at: OpenGateway, { key }: Made): Promise<string> {
  const { headers } = await at.chat(key, { model: "sim/echo" });
  return headers.get("x-gateway-receipt")!;
}

const signed = async (id = receipt, bearer = owner.key): Promise<string> => {
  const { status, text } = await gateway.send("GET", `/v1/receipts/${id}`, {
    bearer,
    headers: { accept: "application/jose" },
  });
  expect(status).toBe(200);
  return text;
};

describe("a signed receipt", () => {
  test("holds exactly the receipt, its issuer, its balance and the release, signed with Ed25519", async () => {
    const plain = (await gateway.send("GET", `/v1/receipts/${receipt}`, { bearer: owner.key })).json;
    const keys = createRemoteJWKSet(new URL(`${gateway.url}/.well-known/jwks.json`));
    const { payload, protectedHeader } = await jwtVerify(await signed(), keys, {
      issuer: "https://gateway.example",
      typ: "receipt+jwt",
    });
    expect(payload).toEqual({
      ...plain,
      iss: "https://gateway.example",
      balance_id: owner.balance_id,
      gateway: expect.stringMatching(/^\d+\.\d+\.\d+\+\S+$/),
    });
    expect(protectedHeader.alg).toBe("EdDSA");
  });

  test("is for those who may read the receipt, the owner too, and for nobody else", async () => {
    await signed(receipt, owner.recovery_secret);
    const stranger = await gateway.key(0);
    const { status, json } = await gateway.send("GET", `/v1/receipts/${receipt}`, {
      bearer: stranger.key,
      headers: { accept: "application/jose" },
    });
    expect([status, json.error.param]).toEqual([400, "id"]);
  });

  test("is for the key that its key was rotated to, and for no other key of the balance", async () => {
    const rotated = await gateway.key(1);
    const theirs = await receiptOf(gateway, rotated);
    const { json } = await gateway.send("POST", `/v1/keys/${rotated.id}/rotate`, { bearer: rotated.key });
    const again = await gateway.send("POST", `/v1/keys/${json.id}/rotate`, { bearer: json.key });
    expect(await signed(theirs, again.json.key)).not.toBe("");
    const other = await gateway.send("POST", "/v1/keys", { bearer: rotated.recovery_secret, json: {} });
    const { status } = await gateway.send("GET", `/v1/receipts/${theirs}`, { bearer: other.json.key });
    expect([other.status, status]).toEqual([201, 400]);
  });

  test.each([
    ["no particular type", "*/*", false],
    ["JSON", "application/json", false],
    ["anything but a signature", "application/jose;q=0, */*", false],
    ["a signature, or else anything", "application/jose, */*;q=0.1", true],
  ])("is given only to who asks for it by name: %s", async (_, accept, isSigned) => {
    const { headers } = await gateway.send("GET", `/v1/receipts/${receipt}`, {
      bearer: owner.key,
      headers: { accept },
    });
    expect(headers.get("content-type")).toBe(isSigned ? "application/jose" : "application/json");
  });

  test("does not verify once a byte of it is another", async () => {
    const keys = createLocalJWKSet((await gateway.send("GET", "/.well-known/jwks.json")).json);
    const [header, payload, signature] = (await signed()).split(".");
    const higher = JSON.parse(Buffer.from(payload!, "base64url").toString());
    higher.cost_usd += 1;
    const altered = [header, Buffer.from(JSON.stringify(higher)).toString("base64url"), signature].join(".");
    await expect(compactVerify(altered, keys)).rejects.toThrow("signature verification failed");
  });
});

describe("the signing key", () => {
  test("is the same after a restart", async () => {
    const first = await open(CONFIG);
    const before = (await first.send("GET", "/.well-known/jwks.json")).json;
    await first.gateway.stop();
    const again = await openIn(first.folder);
    expect((await again.send("GET", "/.well-known/jwks.json")).json).toEqual(before);
    await again.close();
  });

  test("is replaced by the operator: what the old one signed still verifies, and it signs nothing more", async () => {
    const old = await signed();
    const run = await command(["receipt", "rotate-key", "--json"], OPERATOR());
    expect([run.code, run.err]).toEqual([0, ""]);
    const jwks = (await gateway.send("GET", "/.well-known/jwks.json")).json;
    const kids = [old, await signed()].map((token) => decodeProtectedHeader(token).kid);
    expect(jwks.keys.map(({ kid }: { kid: string }) => kid)).toEqual(kids);
    expect(JSON.parse(run.out)).toEqual({ kid: kids[1] });
    const { data } = (await gateway.admin("/admin/changes?action=signing_key.created")).json;
    expect(data[0].after).toEqual({ x: jwks.keys[1].x });
    await compactVerify(old, createLocalJWKSet(jwks));
    for (const key of jwks.keys)
      expect(Object.keys(key).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x"]);
  });
});

const OPERATOR = () => ({ GATEWAY_URL: gateway.url, GATEWAY_ADMIN_TOKEN: ADMIN });

describe("gateway receipt verify", () => {
  const folder = () => gateway.folder.path;

  test("says that a receipt is valid, and what it says, by the keys of the gateway or of a file", async () => {
    const file = join(folder(), "receipt.jws");
    const keys = join(folder(), "keys.json");
    await Bun.write(file, `${await signed()}\n`);
    await Bun.write(keys, (await gateway.send("GET", "/.well-known/jwks.json")).text);
    for (const by of [[], ["--jwks", keys], ["--jwks", `${gateway.url}/.well-known/jwks.json`]]) {
      const run = await command(["receipt", "verify", file, ...by], OPERATOR());
      expect([run.code, run.err]).toEqual([0, ""]);
      expect(run.out).toContain("valid: signed with the key ");
      expect(run.out).toContain(receipt);
      expect(run.out).toContain(owner.balance_id);
    }
  });

  const ALTERED: readonly [string, (token: string) => string, RegExp][] = [
    [
      "one whose signature is another",
      (token) => token.replace(/.{4}$/, "AAAA"),
      /signature is not the key's/,
    ],
    [
      "one that says it is not signed",
      (token) => `${encoded({ alg: "none" })}.${token.split(".")[1]}.`,
      /header/,
    ],
    [
      "one of a key that is not listed",
      (token) => withHeader(token, { kid: "other" }),
      /not among the issuer's/,
    ],
    ["something else", () => "not a token", /compact JWS/],
  ];
  test.each(ALTERED)("refuses %s", async (_, alter, why) => {
    const file = join(folder(), "altered.jws");
    await Bun.write(file, alter(await signed()));
    const run = await command(["receipt", "verify", file], OPERATOR());
    expect(run.code).toBe(1);
    expect(run.err).toMatch(why);
    rmSync(file);
  });

  test("shows a receipt by its id as before", async () => {
    const run = await command(["receipt", receipt, "--json"], OPERATOR());
    expect(JSON.parse(run.out).id).toBe(receipt);
  });
});

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const withHeader = (token: string, more: object): string => {
  const [, ...rest] = token.split(".");
  return [encoded({ ...decodeProtectedHeader(token), ...more }), ...rest].join(".");
};

test("without the setting nothing new answers, until a reload that has it", async () => {
  const plain = await open("base_url: https://gateway.example\n");
  const { key } = await plain.key(0);
  const id = (await plain.chat(key, { model: "gateway/auto:free" })).headers.get("x-gateway-receipt");
  const headers = { accept: "application/jose" };
  const get = () => plain.send("GET", `/v1/receipts/${id}`, { bearer: key, headers });
  expect((await get()).headers.get("content-type")).toBe("application/json");
  const answers = [
    await plain.send("GET", "/.well-known/jwks.json"),
    await plain.send("OPTIONS", "/.well-known/jwks.json"),
    await plain.admin("/admin/signing-keys", {}),
  ];
  expect(answers.map(({ status, json }) => [status, json.error.code])).toEqual(
    answers.map(() => [400, "unsupported_endpoint"]),
  );
  expect((await plain.send("GET", "/openapi.json")).text).not.toContain('jwks.json":');
  plain.folder.configure(CONFIG);
  await plain.admin("/admin/reload", {});
  expect((await fetch(`${plain.url}/.well-known/jwks.json`)).status).toBe(200);
  await plain.close();
});
