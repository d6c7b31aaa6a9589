import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { S3Client } from "bun";
import { HOUR_MS } from "../../units/clock.ts";

/** Where the books are exported to, as the configuration names it: `file:/folder` or `s3://bucket/prefix`. */
export type ExportTarget =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "s3"; readonly bucket: string; readonly prefix: string };

export interface ExportSettings {
  readonly to: ExportTarget;
  /** In ms. */
  readonly every: number;
  /** The address of an S3 that is not Amazon's; null for that, or as the environment says. */
  readonly endpoint: string | null;
}

export const TARGET_FORMS = "file:/folder or s3://bucket/prefix";

/** Null for what is neither. */
export function readTarget(text: string): ExportTarget | null {
  const path = /^file:(?:\/\/)?(\/.+)$/.exec(text)?.[1];
  if (path !== undefined) return { kind: "file", path: withoutEnd(path) };
  const [, bucket, prefix = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(text) ?? [];
  return bucket === undefined ? null : { kind: "s3", bucket, prefix: withoutEnd(prefix) };
}

const withoutEnd = (path: string): string => path.replace(/\/+$/, "");

/** It also names the target in the books. */
export const targetText = (to: ExportTarget): string =>
  to.kind === "file" ? `file:${to.path}` : `s3://${to.bucket}${to.prefix === "" ? "" : `/${to.prefix}`}`;

/** A target that files are put to. */
export interface ExportStorage {
  /** Durable and whole when it resolves; it replaces a file of that name. */
  put(name: string, bytes: Uint8Array): Promise<void>;
}

/** A folder. A file is under its name once it is whole and on the disk. */
export class FileStorage implements ExportStorage {
  private readonly partial: string;
  private files = 0;
  private isTidy = false;

  constructor(private readonly folder: string) {
    this.partial = join(folder, PARTIAL);
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.folder, name);
    await mkdir(this.partial, { recursive: true, mode: PRIVATE_FOLDER });
    await this.removeLeft();
    const created = await mkdir(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
    const writing = join(this.partial, `${process.pid}-${this.files++}`);
    const file = await open(writing, "w", PRIVATE);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(writing, path);
    const top = created === undefined ? dirname(path) : dirname(created);
    for (let folder = dirname(path); folder.length >= top.length; folder = dirname(folder))
      await syncFolder(folder);
  }

  /** What processes that died were writing. */
  private async removeLeft(): Promise<void> {
    if (this.isTidy) return;
    this.isTidy = true;
    for (const name of await readdir(this.partial)) {
      const path = join(this.partial, name);
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
      if (mtimeMs < Date.now() - HOUR_MS) await rm(path, { force: true });
    }
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const PARTIAL = ".partial";
const PRIVATE_FOLDER = 0o750;
const PRIVATE = 0o640;

export type ExportEnvironment = Readonly<Record<string, string | undefined>>;

/** A bucket of Amazon's S3, or of what speaks its language. Files are there once they are whole. */
class S3Storage implements ExportStorage {
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

export const openStorage = (
  { to, endpoint }: Pick<ExportSettings, "to" | "endpoint">,
  env: ExportEnvironment,
): ExportStorage => (to.kind === "file" ? new FileStorage(to.path) : new S3Storage(to, endpoint, env));
