import { setPriority } from "node:os";
import { FakeStripe } from "../test/fakes/stripe.ts";
import { type Quantiles, quantiles, table } from "./figures.ts";
import {
  answered,
  chatBody,
  type FundedKey,
  fundedKey,
  type GatewaySettings,
  hostRow,
  targetOf,
} from "./gateway-process.ts";
import { cpuOf, load } from "./load.ts";
import { numberOption, option } from "./options.ts";
import type { Measured } from "./processes.ts";
import { inScene } from "./scene.ts";

/**
 * What a client that pays notices of attacks that cost nothing, or next to nothing. It sends 50 small requests, ten prompts of 450 kB
 * and ten counts of tokens a second, alone and next to each attack; its owner makes a key and revokes
 * it a second. Attackers are processes of their own, with less of the processor, as they would have none of it.
 *
 *     bun run bench attacks --seconds 20 [--only letters,uploads]
 */
export const benchAttacks = (options: AttackOptions): Promise<Row[]> =>
  inScene("attacks", async ({ host, gateway: open, onEnd }) => {
    const stripe = new FakeStripe();
    onEnd(() => stripe.close());
    const gateway = await open("gateway", settingsOf(host.port, stripe.url));
    const owner = await fundedKey(gateway, 1_000);
    const scene = { gateway, owner, seconds: options.seconds };
    // What has not run yet is slow once, for everybody.
    await measure("warming up", { ...scene, seconds: Math.min(3, options.seconds) }, null);
    const rows = [await measure("nobody", scene, null)];
    for (const [name, { load: otherLoad, keys, usd }] of Object.entries(ATTACKS)) {
      if (options.only !== null && !options.only.includes(name)) continue;
      // Each has a network of its own, whose allowances the one before has not used up.
      const from = `198.51.${Object.keys(ATTACKS).indexOf(name)}.7`;
      const used =
        usd === undefined
          ? await freeKeys(gateway, keys ?? options.keys, from)
          : [await fundedKey(gateway, usd)];
      const most = name === "setups" ? options.setUps : options.secrets;
      const args = {
        from,
        keys: used.map(({ key }) => key).join(","),
        owners: used.map(({ recovery_secret }) => recovery_secret).join(","),
        ids: used.map(({ id }) => id).join(","),
        most: `${most}`,
        seconds: `${options.seconds}`,
      };
      const flags = Object.entries(args).flatMap(([flag, value]) => [`--${flag}`, value]);
      rows.push(await measure(otherLoad, scene, [name, ...flags]));
    }
    return rows;
  });

/** By the names that docs/resource-limits.md and attacker.ts have for them. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  requests: { load: "small requests, 60 keys without credit" },
  values: { load: "60 kB of nothing but values, 60 keys without credit" },
  letters: { load: "10 MB of random letters, 6 keys without credit", keys: 6 },
  uploads: { load: "4 slow uploads each, 60 keys without credit" },
  controls: { load: "32 slow bodies of 5 MB without a prompt" },
  free: { load: "free requests, 60 keys from 60 networks" },
  setups: { load: "10,000 new balances from one /48" },
  keys: { load: "more keys for balances without credit" },
  changes: { load: "changes of keys without credit" },
  secrets: { load: "1,000 wrong secrets from the owner's address" },
  admin: { load: "wrong admin tokens from many networks" },
  mails: { load: "mails from many networks" },
  wallets: { load: "messages for wallets from many networks" },
  usage: { load: "sums of usage, 60 keys without credit" },
  pages: { load: "pages and unknown keys from many networks" },
  sockets: { load: "WebSockets, 60 keys without credit" },
  connections: { load: "2,000 connections that stop within their heads" },
  events: { load: "256 KiB events that Stripe has not signed, from many networks" },
  orders: { load: "card orders, 60 balances without credit" },
  frames: { load: "1,000 WebSockets with half a message each, a balance with $3", usd: 3 },
  fragments: { load: "1,000 WebSockets with fragments of a message each, a balance with $3", usd: 3 },
};

interface Attack {
  readonly load: string;
  readonly keys?: number;
  /** Credit of the one balance that sends; absent: several balances without credit. */
  readonly usd?: number;
}

export interface AttackOptions {
  /** Null: all of them. */
  readonly only: readonly string[] | null;
  readonly seconds: number;
  /** Without credit. */
  readonly keys: number;
  readonly setUps: number;
  readonly secrets: number;
}

export interface Row {
  readonly load: string;
  /** Latency of the client that pays, ms. */
  readonly small: Quantiles;
  readonly large: Quantiles;
  readonly counts: Quantiles;
  readonly requests: number;
  readonly errors: number;
  readonly revoked: number;
  readonly revokeErrors: number;
  /** The part of one processor that the gateway uses. */
  readonly cpuPercent: number;
  /** The gateway's, at its end. */
  readonly residentMb: number;
  /** What the attacker was answered, how often. */
  readonly answers: Readonly<Record<string, number>>;
}

interface Scene {
  readonly gateway: Measured;
  readonly owner: FundedKey;
  readonly seconds: number;
}

async function measure(attackName: string, scene: Scene, attack: string[] | null): Promise<Row> {
  const { gateway, owner, seconds } = scene;
  const attacker = attack === null ? null : startAttacker(gateway.port, attack);
  try {
    // The attack is under way before anything is measured, unless it is short.
    if (attacker !== null) await Promise.race([attacker.started, attacker.done]);
    const each = (body: string, perSecond: number, path?: string) =>
      load(targetOf(gateway, owner.key, path), {
        body,
        connections: 4,
        perSecond,
        seconds,
        timeoutMs: 30_000,
      });
    const { result, us } = await cpuOf(gateway, () =>
      Promise.all([
        each(SMALL_BODY, 50),
        each(LARGE_BODY, 10),
        each(SMALL_BODY, 10, COUNT_PATH),
        revokeKeys(scene),
      ]),
    );
    const [small, large, counts, owned] = result;
    const parts = [small, large, counts];
    return {
      load: attackName,
      small: quantiles(small.totalMs),
      large: quantiles(large.totalMs),
      counts: quantiles(counts.totalMs),
      requests: parts.reduce((sum, { count, failures }) => sum + count + failures, 0),
      errors: parts.reduce((sum, { failures }) => sum + failures, 0),
      ...owned,
      cpuPercent: us / seconds / 10_000,
      residentMb: gateway.residentBytes() / 1e6,
      answers: attacker?.answers() ?? {},
    };
  } finally {
    await attacker?.stop();
  }
}

/** A key a second: made, revoked, and no longer accepted. */
async function revokeKeys({
  gateway,
  owner,
  seconds,
}: Scene): Promise<Pick<Row, "revoked" | "revokeErrors">> {
  const untilMs = performance.now() + seconds * 1_000;
  let [revoked, revokeErrors] = [0, 0];
  while (performance.now() < untilMs) {
    try {
      const send = (method: string, path: string, bearer: string) =>
        fetch(`http://127.0.0.1:${gateway.port}${path}`, {
          method,
          headers: { authorization: `Bearer ${bearer}` },
        });
      const made = (await answered(await send("POST", "/v1/keys", owner.recovery_secret))) as FundedKey;
      await answered(await send("DELETE", `/v1/keys/${made.id}`, owner.recovery_secret));
      if ((await send("GET", "/v1/me", made.key)).status !== 401)
        throw new Error("a revoked key was accepted");
      revoked += 1;
    } catch (error) {
      console.error(String(error));
      revokeErrors += 1;
    }
    await Bun.sleep(Math.max(0, Math.min(1_000, untilMs - performance.now())));
  }
  return { revoked, revokeErrors };
}

function startAttacker(port: number, [attack = "", ...more]: readonly string[]) {
  const command = [
    process.execPath,
    `${import.meta.dir}/attacker.ts`,
    "--attack",
    attack,
    "--port",
    `${port}`,
  ];
  const child = Bun.spawn([...command, ...more], { stdout: "pipe", stderr: "inherit" });
  setPriority(child.pid, LOW_PRIORITY);
  let latest: Record<string, number> = {};
  const started = Promise.withResolvers<void>();
  const read = async () => {
    let text = "";
    for await (const bytes of child.stdout) {
      text += new TextDecoder().decode(bytes);
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) if (line !== "done") latest = JSON.parse(line);
      if (Object.keys(latest).length > 0) started.resolve();
    }
  };
  const done = read();
  return {
    answers: () => latest,
    started: started.promise,
    done,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

const LOW_PRIORITY = 15;
const COUNT_PATH = "/v1/messages/count_tokens";
const SMALL_BODY = chatBody("ping");
const LARGE_BODY = chatBody("The quick brown fox jumps over the lazy dog. ".repeat(10_000));

/** Balances without credit, all of one address. */
async function freeKeys({ port }: Measured, count: number, from: string): Promise<FundedKey[]> {
  const made = Array.from({ length: count }, async () => {
    const headers = { "x-forwarded-for": from };
    const response = await fetch(`http://127.0.0.1:${port}/v1/keys`, { method: "POST", headers });
    return (await answered(response)) as FundedKey;
  });
  return Promise.all(made);
}

const settingsOf = (hostPort: number, stripe: string): GatewaySettings => ({
  hosts: hostRow("mock", hostPort, "chat.completions"),
  models: `
  - id: bench/model
    context_length: 200000
    max_output_tokens: 1000
    price: { input: 0.1, output: 0.1 }
    routes: [{ host: mock, model: m }]
  - id: bench/free
    context_length: 200000
    max_output_tokens: 1000
    routes: [{ host: mock, model: m, free: true }]`,
  limits: "rpm_limit: 6000, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null",
  more: `
trusted_proxies: [127.0.0.0/8]
receipts: { sign: true }
payments: { stripe: { secret_key: sk_test_1, webhook_secret: [whsec_1, whsec_2], api_base: "${stripe}" } }`,
});

const HEAD = [
  "load",
  ...["small p50 ms", "p99", "450 kB p50", "p99", "count_tokens p50", "p99", "p99 to that alone"],
  ...["requests", "errors", "revoked", "failed", "CPU", "resident MB", "the attacker was answered"],
];

if (import.meta.main) {
  const only = option("only", "");
  const rows = await benchAttacks({
    only: only === "" ? null : only.split(","),
    seconds: numberOption("seconds", 20),
    keys: numberOption("keys", 60),
    setUps: numberOption("set-ups", 10_000),
    secrets: numberOption("secrets", 1_000),
  });
  const times = ["small", "large", "counts"] as const;
  const cells = rows.map((row) => [
    row.load,
    ...times.flatMap((of) => [row[of].p50.toFixed(1), row[of].p99.toFixed(1)]),
    times.map((of) => (row[of].p99 / rows[0]![of].p99).toFixed(1)).join(", "),
    row.requests,
    row.errors,
    row.revoked,
    row.revokeErrors,
    `${row.cpuPercent.toFixed(0)}%`,
    row.residentMb.toFixed(0),
    Object.entries(row.answers)
      .map(([status, count]) => `${count} × ${status}`)
      .join(", ") || "–",
  ]);
  console.log(table(HEAD, cells));
}
