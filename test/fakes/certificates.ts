import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FakeTls } from "./host.ts";

/** A certificate authority that nobody knows, made by openssl for one test run. */
export interface FakeAuthority {
  /** PEM, for clients that trust it. */
  readonly ca: string;
  /** `names` in openssl's form: `DNS:localhost,IP:127.0.0.1`. */
  issue(names: string, validity?: "valid" | "expired"): FakeTls;
  remove(): void;
}

export function makeAuthority(): FakeAuthority {
  const folder = mkdtempSync(join(tmpdir(), "fake-authority-"));
  const at = (name: string): string => join(folder, name);
  const read = (name: string): string => readFileSync(at(name), "utf8");
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl(["req", "-x509", ...newKey, "-keyout", at("ca.key"), "-out", at("ca.pem"), "-subj", "/CN=fake"]);
  return {
    ca: read("ca.pem"),
    issue(names, validity = "valid") {
      openssl(["req", ...newKey, "-keyout", at("key"), "-out", at("request"), "-subj", "/CN=fake host"]);
      writeFileSync(at("extensions"), `subjectAltName=${names}\n`);
      const signer = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial"];
      const days = ["-days", validity === "valid" ? "2" : "-1"];
      openssl([
        "x509",
        "-req",
        "-in",
        at("request"),
        ...signer,
        ...days,
        "-extfile",
        at("extensions"),
        "-out",
        at("cert"),
      ]);
      return { key: read("key"), cert: read("cert") };
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}

function openssl(args: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["openssl", ...args], { stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`openssl ${args[0]}: ${stderr.toString()}`);
}
