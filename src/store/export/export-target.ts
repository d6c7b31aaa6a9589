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
