import { createCipheriv, createDecipheriv } from "node:crypto";
import type { RandomBytes } from "../../units/random.ts";

/**
 * Secrets that have to be read again, because they sign: encrypted in their row, with a key that all processes of the store
 * derive from its own secret. A list of endpoints that gets out, by a query or a log, signs nothing.
 */
export class SealedSecrets {
  private readonly key: Uint8Array;

  constructor(
    storeSecret: string,
    private readonly random: RandomBytes,
  ) {
    this.key = new Bun.CryptoHasher("sha256", storeSecret).update("secrets of webhooks").digest();
  }

  seal(secret: string): string {
    const nonce = this.random(new Uint8Array(NONCE_BYTES));
    const cipher = createCipheriv("aes-256-gcm", this.key, nonce);
    const sealed = [nonce, cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(sealed).toString("base64url");
  }

  open(sealed: string): string {
    const bytes = Buffer.from(sealed, "base64url");
    const decipher = createDecipheriv("aes-256-gcm", this.key, bytes.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString("utf8");
  }
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
