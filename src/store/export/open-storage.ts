import type { ExportSettings, ExportStorage } from "./export-target.ts";
import { FileStorage } from "./file-storage.ts";
import { type ExportEnvironment, S3Storage } from "./s3-storage.ts";

export const openStorage = (
  { to, endpoint }: Pick<ExportSettings, "to" | "endpoint">,
  env: ExportEnvironment,
): ExportStorage => (to.kind === "file" ? new FileStorage(to.path) : new S3Storage(to, endpoint, env));
