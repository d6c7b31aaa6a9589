/** SHA-256 of a secret, lower-case hex. The plaintext is never kept. */
export type SecretHash = string & { readonly __unit: "SecretHash" };

export const hashSecret = (secret: string): SecretHash =>
  Bun.CryptoHasher.hash("sha256", secret, "hex") as SecretHash;
