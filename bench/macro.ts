/**
 * The gateway as a process, against the bare host and, where it is installed, nginx as a bare proxy: real sockets, ledger,
 * limits and receipts on. Two noisy cores: read the ratios, and the CPU before the clock.
 *
 *     bun run bench/macro.ts [--rounds 5] [--requests 8000]
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { load, percentile, type Target, type Timings } from "./load.ts";
import { type Measured, processOf, start } from "./processes.ts";

export interface MacroLoad {
  readonly rounds: number;
  readonly requests: number;
  readonly streams: number;
  readonly streamRounds: number;
}

export interface MacroResult {
  readonly who: string;
  /** CPU of all its processes, µs a request; median over rounds. */
  readonly usPerRequest: number;
  readonly usPerEvent: number;
  readonly requestsPerSecond: number;
  /** ms, by connections. */
  readonly latency: Readonly<Record<number, { p50: number; p99: number }>>;
  readonly firstByte: { p50: number; p99: number };
  readonly residentMb: number;
}

const CONNECTIONS = [1, 16, 64] as const;
const DELTAS = 64;
const EVERY_MS = 20;

export async function benchMacro(size: MacroLoad, progress: (line: string) => void): Promise<MacroResult[]> {
  const host = await start([process.execPath, "bench/mock-host.ts"]);
  const paced = await start([process.execPath, "bench/mock-host.ts", "0.01", `${DELTAS}`, `${EVERY_MS}`]);
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  const results: MacroResult[] = [];
  try {
    for (const open of [bareHost, nginx, gateway]) {
      const subject = await open(host, paced, folder);
      if (subject === null) continue;
      progress(`measuring ${subject.who}`);
      results.push(await measure(subject, size));
      await subject.stop();
    }
    return results;
  } finally {
    await host.stop();
    await paced.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Something that answers `/v1/chat/completions`. */
interface Subject {
  readonly who: string;
  readonly quick: Target;
  readonly paced: Target;
  cpuUs(): number;
  residentBytes(): number;
  stop(): Promise<void>;
}

async function measure(
  subject: Subject,
  { rounds, requests, streams, streamRounds }: MacroLoad,
): Promise<MacroResult> {
  await load(subject.quick, WHOLE, 16, Math.ceil(requests / 4));
  const cpu: number[] = [];
  const perSecond: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = subject.cpuUs();
    const timings = expectAll(await load(subject.quick, WHOLE, 64, requests));
    cpu.push((subject.cpuUs() - before) / requests);
    perSecond.push(requests / timings.seconds);
  }
  const latency: Record<number, { p50: number; p99: number }> = {};
  for (const connections of CONNECTIONS) {
    const { totalMs } = expectAll(
      await load(subject.quick, WHOLE, connections, Math.min(requests, 400 * connections + 1_600)),
    );
    latency[connections] = { p50: percentile(totalMs, 0.5), p99: percentile(totalMs, 0.99) };
  }
  const perEvent: number[] = [];
  let firstByte = { p50: 0, p99: 0 };
  for (let round = 0; round < streamRounds; round++) {
    const before = subject.cpuUs();
    const { firstByteMs } = expectAll(await load(subject.paced, STREAMED, streams, streams * 2));
    perEvent.push((subject.cpuUs() - before) / (streams * 2 * DELTAS));
    firstByte = { p50: percentile(firstByteMs, 0.5), p99: percentile(firstByteMs, 0.99) };
  }
  return {
    who: subject.who,
    usPerRequest: median(cpu),
    usPerEvent: median(perEvent),
    requestsPerSecond: median(perSecond),
    latency,
    firstByte,
    residentMb: subject.residentBytes() / 1_048_576,
  };
}

const MESSAGES = [{ role: "user", content: "What is the capital of Norway? Answer in one word." }];
const WHOLE = JSON.stringify({ model: "bench/model", max_tokens: 100, messages: MESSAGES });
const STREAMED = JSON.stringify({ model: "bench/model", max_tokens: 100, stream: true, messages: MESSAGES });
const PATH = "/v1/chat/completions";

async function bareHost(host: Measured, paced: Measured): Promise<Subject> {
  return {
    who: "bare host",
    quick: { port: host.port, path: PATH, key: null },
    paced: { port: paced.port, path: PATH, key: null },
    cpuUs: () => host.cpuUs() + paced.cpuUs(),
    residentBytes: () => host.residentBytes(),
    stop: async () => {},
  };
}

/** One worker, keep-alive to the host, `proxy_buffering off`: the least that a proxy does. */
async function nginx(host: Measured, paced: Measured, folder: string): Promise<Subject | null> {
  if (Bun.which("nginx") === null) return null;
  const [quick, slow] = [await freePort(), await freePort()];
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; worker_processes 1; error_log ${folder}/nginx.log; pid ${folder}/nginx.pid;
     events { worker_connections 4096; }
     http { access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder};
       fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder}; keepalive_requests 1000000;
       upstream quick { server 127.0.0.1:${host.port}; keepalive 512; keepalive_requests 1000000; }
       upstream slow { server 127.0.0.1:${paced.port}; keepalive 512; keepalive_requests 1000000; }
       ${[
         ["quick", quick],
         ["slow", slow],
       ]
         .map(
           ([name, port]) =>
             `server { listen 127.0.0.1:${port}; location / { proxy_pass http://${name}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }`,
         )
         .join("\n")} }`,
  );
  const child = Bun.spawn(["nginx", "-c", file, "-p", folder], { stdout: "ignore", stderr: "ignore" });
  await reachable(quick);
  const worker = Number(
    Bun.spawnSync(["pgrep", "-P", `${child.pid}`])
      .stdout.toString()
      .trim()
      .split("\n")[0],
  );
  return {
    who: "nginx",
    quick: { port: quick, path: PATH, key: null },
    paced: { port: slow, path: PATH, key: null },
    ...processOf(worker),
    async stop() {
      child.kill();
      await child.exited;
    },
  };
}

async function gateway(host: Measured, paced: Measured, folder: string): Promise<Subject> {
  const quick = await startGateway(host.port, join(folder, "quick"));
  const slow = await startGateway(paced.port, join(folder, "slow"));
  return {
    who: "gateway",
    quick: { port: quick.process.port, path: PATH, key: quick.key },
    paced: { port: slow.process.port, path: PATH, key: slow.key },
    cpuUs: () => quick.process.cpuUs() + slow.process.cpuUs(),
    residentBytes: () => quick.process.residentBytes(),
    async stop() {
      await quick.process.stop();
      await slow.process.stop();
    },
  };
}

/** A gateway in front of one host, and a key with every limit set and credit enough. */
export async function startGateway(
  hostPort: number,
  folder: string,
): Promise<{ process: Measured; key: string }> {
  const config = `${folder}.yaml`;
  writeFileSync(
    config,
    `hosts:
  - { id: mock, base_url: "http://127.0.0.1:${hostPort}/v1", speaks: [chat.completions] }
models:
  - id: bench/model
    name: Bench
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10 }
    routes: [{ host: mock, model: bench-model }]
defaults:
  accountless: { rpm_limit: 1000000000, tpm_limit: 1000000000, daily_limit_usd: 100000, monthly_limit_usd: 100000 }
`,
  );
  const admin = "bench-admin";
  const measured = await start([process.execPath, "src/main.ts"], {
    GATEWAY_CONFIG: config,
    GATEWAY_DATA: folder,
    GATEWAY_ADMIN_TOKEN: admin,
    PORT: "0",
  });
  const url = `http://127.0.0.1:${measured.port}`;
  const made = (await (await fetch(`${url}/v1/keys`, { method: "POST" })).json()) as {
    key: string;
    balance_id: string;
  };
  await fetch(`${url}/admin/credits`, {
    method: "POST",
    headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
    body: JSON.stringify({ balance_id: made.balance_id, amount_usd: 100_000, idempotency_key: "bench" }),
  });
  return { process: measured, key: made.key };
}

function expectAll(timings: Timings): Timings {
  if (timings.failures > 0) throw new Error(`${timings.failures} requests were not answered with 200`);
  return timings;
}

async function freePort(): Promise<number> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

async function reachable(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    try {
      (await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } })).end();
      return;
    } catch {
      await Bun.sleep(20);
    }
  }
  throw new Error(`nothing listens on port ${port}`);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}

/** The results as a Markdown table, with ratios to nginx where it was measured. */
export function table(results: readonly MacroResult[]): string {
  const one = (value: number, digits = 1) => value.toFixed(digits);
  const rows = results.map(
    ({ who, usPerRequest, usPerEvent, requestsPerSecond, latency, firstByte, residentMb }) => [
      who,
      one(usPerRequest),
      one(usPerEvent),
      one(requestsPerSecond, 0),
      ...CONNECTIONS.map((count) => `${one(latency[count]!.p50, 2)} / ${one(latency[count]!.p99, 2)}`),
      `${one(firstByte.p50, 2)} / ${one(firstByte.p99, 2)}`,
      one(residentMb, 0),
    ],
  );
  const head = [
    "",
    "CPU µs a request",
    "CPU µs an SSE event",
    "requests/s",
    ...CONNECTIONS.map((count) => `ms p50 / p99, ${count} conn.`),
    "first byte ms p50 / p99",
    "RSS MB",
  ];
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

if (import.meta.main) {
  const option = (name: string, fallback: number) => {
    const at = process.argv.indexOf(`--${name}`);
    return at === -1 ? fallback : Number(process.argv[at + 1]);
  };
  const size = {
    rounds: option("rounds", 5),
    requests: option("requests", 8_000),
    streams: option("streams", 400),
    streamRounds: option("stream-rounds", 3),
  };
  console.log(table(await benchMacro(size, console.error)));
}
