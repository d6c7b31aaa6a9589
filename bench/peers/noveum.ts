import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, startQuiet } from "../processes.ts";
import { filledOnce, run } from "./install.ts";
import { PATH, PATHS, type Peer } from "./peer.ts";

const VERSION = "2.0.1";

/** A gateway in Rust that keeps no books; as it comes, and with policies that look at each request. */
export const [noveum, guardedNoveum] = [false, true].map(
  (guarded): Peer => ({
    name: guarded ? "Noveum with guards" : "Noveum",
    async install(cache) {
      const folder = await filledOnce(join(cache, `noveum-${VERSION}`), async (draft) => {
        const from = ["noveum-ai-gateway", "--version", VERSION, "--locked", "--root", "."];
        await run(["nice", "-n", "19", "cargo", "install", ...from], draft, {
          CARGO_TARGET_DIR: join(draft, "target"),
        });
        await run(["rm", "-r", "target"], draft);
      });
      return {
        version: VERSION,
        settings: `cargo install, one worker thread, logs at error, ${
          guarded ? "local policies: patterns, personal data, allowed models, length" : "no policies"
        }; neither keys, limits nor records`,
        async start(hostPort, home) {
          const port = freePort();
          const policies = join(home, "policies.json");
          writeFileSync(policies, JSON.stringify(POLICIES));
          const host = `http://127.0.0.1:${hostPort}`;
          const headers = (provider: string) => ({ authorization: "Bearer bench", "x-provider": provider });
          const target = { port, path: PATH, headers: headers("openai") };
          return {
            process: await startQuiet({
              command: [join(folder, "bin/noveum-ai-gateway")],
              port,
              env: {
                PORT: `${port}`,
                WORKER_THREADS: "1",
                RUST_LOG: "error",
                OPENAI_BASE_URL: host,
                ANTHROPIC_BASE_URL: host,
                NOVEUM_GUARD_ENABLED: `${guarded}`,
                ...(guarded ? { NOVEUM_GUARD_POLICIES_FILE: policies } : {}),
              },
              folder: home,
            }),
            target,
            prefix: "",
            refusesLarge: false,
            reaches(client, host) {
              if (client === "chat.completions" && host === "messages")
                return { port, path: PATH, headers: headers("anthropic") };
              return client === host && client !== "messages" ? { ...target, path: PATHS[client] } : null;
            },
          };
        },
      };
    },
  }),
) as [Peer, Peer];

/** What its own example has. */
const POLICIES = {
  bundleVersion: "1.0",
  policies: [
    {
      name: "numbers",
      type: "regex_match",
      mode: "enforce",
      priority: 10,
      config: {
        phase: "input",
        patterns: [{ name: "us_ssn", regex: "\\b\\d{3}-\\d{2}-\\d{4}\\b" }],
        action: "block",
      },
    },
    {
      name: "personal data",
      type: "pii_detection",
      mode: "enforce",
      priority: 20,
      config: {
        phase: "input",
        entities: ["EMAIL_ADDRESS", "CREDIT_CARD_NUMBER", "PHONE_NUMBER"],
        action: "redact",
      },
    },
    {
      name: "models",
      type: "model_allowlist",
      mode: "enforce",
      priority: 5,
      config: { allowed: ["paced-*", "messages-paced-*", "responses-paced-*"] },
    },
    {
      name: "length",
      type: "token_length_cap",
      mode: "enforce",
      priority: 30,
      config: { phase: "input", maxTokens: 100_000_000, action: "block" },
    },
  ],
};
