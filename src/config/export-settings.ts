import { type ExportTarget, readTarget, TARGET_FORMS, targetText } from "../store/export/export-target.ts";
import { duration, text, webAddress } from "./kinds.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";
import { mapOf, required, setting } from "./setting.ts";

const target = () => ({
  ...text(TARGET_FORMS),
  read(written: string, path: Path, report: ReportProblem): ExportTarget | undefined {
    const read = readTarget(written);
    if (read === null) report(path, describe(written), TARGET_FORMS);
    return read ?? undefined;
  },
  show: targetText,
});

/** The block `export`: where the books are copied to. */
export const EXPORT = mapOf({
  to: required(
    target(),
    "`s3://bucket/prefix`, with `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_REGION` in the environment; or `file:/folder`",
  ),
  every: setting(duration(), 60_000, { doc: "how often: `30s`, `1m`, `1h`", otherwise: "1m" }),
  endpoint: setting(webAddress(), null, {
    doc: "an S3 other than Amazon's, such as MinIO",
    otherwise: "`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, or Amazon's",
  }),
});
