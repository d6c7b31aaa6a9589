import { S3Client } from "bun";
import type { ExportStorage, ExportTarget } from "./export-target.ts";

export type ExportEnvironment = Readonly<Record<string, string | undefined>>;

/** A bucket of Amazon's S3, or of what speaks its language. Files are there once they are whole. */
export class S3Storage implements ExportStorage {
  private readonly client: S3Client;

  constructor(
    private readonly to: Extract<ExportTarget, { kind: "s3" }>,
    endpoint: string | null,
    env: ExportEnvironment,
  ) {
    this.client = new S3Client({ bucket: to.bucket, ...accessOf(env), ...endpointOf(endpoint, env) });
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    const path = this.to.prefix === "" ? name : `${this.to.prefix}/${name}`;
    await this.client.write(path, bytes as Uint8Array<ArrayBuffer>, { type: "application/gzip" });
  }
}

/** By Amazon's usual names. */
function accessOf(env: ExportEnvironment) {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey)
    throw new Error("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set");
  const sessionToken = env.AWS_SESSION_TOKEN;
  const region = env.AWS_REGION || env.AWS_DEFAULT_REGION;
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken ? { sessionToken } : {}),
    ...(region ? { region } : {}),
  };
}

function endpointOf(written: string | null, env: ExportEnvironment) {
  const endpoint = written ?? (env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL);
  return endpoint ? { endpoint } : {};
}
