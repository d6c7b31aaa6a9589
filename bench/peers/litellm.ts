import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, startQuiet } from "../processes.ts";
import { filledOnce, run } from "./install.ts";
import { PACES, PATH, type Peer } from "./peer.ts";

const VERSION = "1.106.0";

export const litellm: Peer = {
  name: "LiteLLM",
  async install(cache) {
    const python = /Python (\S+)/.exec(await run(["python3", "--version"], "."))![1]!;
    // A virtual environment holds its own path, so it cannot be made elsewhere and moved.
    const folder = join(cache, `litellm-${VERSION}`);
    await filledOnce(join(cache, `litellm-${VERSION}-installed`), async () => {
      await run(["python3", "-m", "venv", "--clear", folder], cache);
      await run([join(folder, "bin/pip"), "install", "--quiet", `litellm[proxy]==${VERSION}`], cache);
    });
    return {
      version: `${VERSION}, Python ${python}`,
      settings:
        "one worker (uvicorn with uvloop), logs at ERROR, telemetry off, master key alone, no database: neither limits nor records",
      streams: 20,
      async start(hostPort, home) {
        const port = freePort();
        const file = join(home, "litellm.yaml");
        writeFileSync(file, configuration(hostPort));
        const command = [join(folder, "bin/litellm"), "--config", file, "--host", "127.0.0.1"];
        return {
          process: await startQuiet({
            command: [...command, "--port", `${port}`, "--num_workers", "1", "--telemetry", "False"],
            port,
            env: {
              LITELLM_LOG: "ERROR",
              LITELLM_MASTER_KEY: KEY,
              LITELLM_MODE: "PRODUCTION",
              LITELLM_LOCAL_MODEL_COST_MAP: "True",
              DISABLE_ADMIN_UI: "True",
            },
            folder: home,
            timeoutMs: 120_000,
          }),
          target: { port, path: PATH, headers: { authorization: `Bearer ${KEY}` } },
          stranger: { port, path: PATH, headers: { authorization: "Bearer sk-never-given-out" } },
          prefix: "",
          refusesLarge: false,
          reaches: (client, host) =>
            client === "chat.completions" && host !== "responses"
              ? { port, path: PATH, headers: { authorization: `Bearer ${KEY}` } }
              : null,
        };
      },
    };
  },
};

/** It does not start without one. */
const KEY = "sk-9f2c41d7a08b4e5f9c36d1e27ab85034";

const configuration = (hostPort: number): string => `
model_list:
${Object.values(PACES)
  .map(
    (name) => `
  - model_name: ${name}
    litellm_params: { model: openai/${name}, api_base: "http://127.0.0.1:${hostPort}/v1", api_key: bench }
  - model_name: messages-${name}
    litellm_params: { model: anthropic/${name}, api_base: "http://127.0.0.1:${hostPort}", api_key: bench }`,
  )
  .join("")}
litellm_settings: { num_retries: 0, telemetry: false, request_timeout: 600 }
general_settings: { disable_spend_logs: true, disable_error_logs: true }
router_settings: { num_retries: 0, disable_cooldowns: true }
`;
