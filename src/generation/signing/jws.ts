import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";

/**
 * Compact JSON Web Signatures (RFC 7515) with Ed25519 (RFC 8037), and the JSON Web Keys that they are verified
 * with: nothing else of JOSE, so that a token has no say in how it is verified.
 */
export function signCompact(payload: object, key: PrivateKey): string {
  const { kid } = publicJwk(key.x);
  const signed = `${encode({ alg: ALGORITHM, typ: TYPE, kid })}.${encode(payload)}`;
  const jwk = { kty: "OKP", crv: "Ed25519", x: key.x, d: key.d };
  const signature = sign(null, Buffer.from(signed), createPrivateKey({ key: jwk, format: "jwk" }));
  return `${signed}.${signature.toString("base64url")}`;
}

/** What was signed; or why nobody who holds one of the keys has signed it. */
export function verifyCompact(token: string, { keys }: JwkSet): Verified | string {
  const [header, payload, signature, ...more] = token.split(".");
  if (signature === undefined || more.length > 0)
    return "it is not a compact JWS: three parts with dots between";
  const { alg, kid, crit } = (decode(header!) ?? {}) as Partial<Record<string, unknown>>;
  if (alg !== ALGORITHM || crit !== undefined)
    return `its header is not that of an Ed25519 signature (${ALGORITHM})`;
  const jwk = keys.find((one) => one.kid === kid && one.kty === "OKP" && one.crv === "Ed25519");
  if (jwk === undefined) return `it names the key ${JSON.stringify(kid)}, which is not among the issuer's`;
  const bytes = Buffer.from(signature, "base64url");
  const { kty, crv, x } = jwk;
  const key = createPublicKey({ key: { kty, crv, x }, format: "jwk" });
  const isCanonical = bytes.toString("base64url") === signature;
  if (!isCanonical || !verify(null, Buffer.from(`${header}.${payload}`), key, bytes))
    return "its signature is not the key's: the receipt was altered, or signed by somebody else";
  const read = decode(payload!);
  return read === null ? "what was signed is no JSON object" : { kid: jwk.kid, payload: read };
}

/** Parts of a JSON Web Key, base64url: 32 bytes each. */
export interface PrivateKey {
  readonly x: string;
  readonly d: string;
}

export interface PublicJwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly kid: string;
  readonly use: string;
  readonly alg: string;
}

export interface JwkSet {
  readonly keys: readonly PublicJwk[];
}

export interface Verified {
  readonly kid: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

export function privateKey(seed: Uint8Array): PrivateKey {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
  const { x, d } = key.export({ format: "jwk" });
  return { x: x!, d: d! };
}

export const SEED_BYTES = 32;

/** What stands before the seed of an Ed25519 key in its usual form (RFC 8410). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** Named by its thumbprint (RFC 7638), so a key has the same name everywhere. */
export function publicJwk(x: string): PublicJwk {
  const jwk = { crv: "Ed25519", kty: "OKP", x };
  const kid = createHash("sha256").update(JSON.stringify(jwk)).digest("base64url");
  return { ...jwk, kid, use: "sig", alg: ALGORITHM };
}

/** Ed25519 by the name that libraries know; RFC 9864 has a newer one. */
const ALGORITHM = "EdDSA";
/** So that no receipt passes for a token that grants something (RFC 8725, 3.11). */
const TYPE = "receipt+jwt";

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

function decode(part: string): Readonly<Record<string, unknown>> | null {
  try {
    const read: unknown = JSON.parse(Buffer.from(part, "base64url").toString());
    return typeof read === "object" && read !== null ? (read as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
