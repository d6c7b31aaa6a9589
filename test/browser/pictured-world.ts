import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openGateway } from "../../src/server/open-gateway.ts";
import { type Clock, DAY_MS, type EpochMs, systemClock } from "../../src/units/clock.ts";
import { type Made, OpenGateway } from "../gateway/open.ts";
import { Folder } from "../process/gateway.ts";
import { Random } from "../sim/random.ts";

/**
 * A gateway with a busy week behind it, for pictures: four models on three hosts, of which one is slow and one
 * fails now and then. Everything in it happened through the API, on a clock that was wound back.
 */
export class PicturedWorld {
  private constructor(
    readonly gateway: OpenGateway,
    readonly owner: Made,
    private readonly hosts: readonly Bun.Server<unknown>[],
  ) {}

  static async make(): Promise<PicturedWorld> {
    const random = new Random(7);
    const hosts = HOSTS.map((habits) => startHost(habits, random));
    const folder = new Folder(configOf(hosts.map(({ port }) => port!)));
    const clock = new WoundClock(-(QUIET_DAYS + DAYS) * DAY_MS);
    const gateway = await openGateway({ env: folder.env, cwd: folder.path, log: () => {}, clock });
    const open = new OpenGateway(gateway, folder, []);
    const owner = await open.key(0);
    const world = new PicturedWorld(open, owner, hosts);
    await world.live(clock, random);
    return world;
  }

  async close(): Promise<void> {
    await this.gateway.close();
    for (const host of this.hosts) await host.stop(true);
  }

  private async live(clock: WoundClock, random: Random): Promise<void> {
    const { gateway, owner } = this;
    const asOwner = { bearer: owner.recovery_secret };
    const send = async (method: string, path: string, json: object) =>
      (await gateway.send(method, path, { ...asOwner, json })).json;
    await credit(gateway, owner.balance_id, 40, "Invoice 1041");
    await send("POST", "/v1/budgets", { name: "research", cap_usd: 4, window: "week" });
    await send("POST", "/v1/budgets", { name: "support", cap_usd: 60, window: "month" });
    // Days pass in seconds here, and minutes are counted on the machine's own clock.
    const swift = { rpm_limit: 5_000, tpm_limit: null };
    const support = { name: "support-agent", daily_limit_usd: 3, monthly_limit_usd: 20, budget: "support" };
    await send("PATCH", `/v1/keys/${owner.id}`, { ...swift, ...support });
    const nightly = await send("POST", "/v1/keys", { ...swift, name: "nightly-report", budget: "research" });
    const editor = await send("POST", "/v1/keys", {
      ...swift,
      name: "editor-plugin",
      daily_limit_usd: 2,
      monthly_limit_usd: null,
    });
    const keys = [owner.key, owner.key, owner.key, nightly.key, editor.key] as string[];
    const others: string[] = [];
    for (const person of PEOPLE) others.push(await this.arrive(person));
    while (others.length < OTHERS) others.push((await gateway.key(5, { name: "agent" })).key);
    const chat = (key: string) =>
      gateway.chat(key, {
        model: MODELS[Math.min(random.below(MODELS.length), random.below(MODELS.length))]!.id,
        stream: true,
        max_tokens: 2_000,
        messages: [{ role: "user", content: "report ".repeat(20 + random.below(3_000)) }],
      });
    for (let hour = -QUIET_DAYS * 24; hour < 0; hour++) {
      await chat([owner.key, ...others][random.below(8)]!);
      clock.wind(3_600_000);
    }
    for (let hour = 0; hour <= DAYS * 24; hour++) {
      await chat(others[random.below(OTHERS)]!);
      if (hour === 72) await credit(gateway, owner.balance_id, 25, "Invoice 1077");
      const busy = (clock.hour >= 8 && clock.hour <= 18 ? 5 : 1) + random.below(2);
      for (let request = 0; request < busy; request++) {
        await chat(keys[random.below(keys.length)]!);
      }
      if (hour < DAYS * 24) clock.wind(3_600_000);
    }
    const { data } = (await gateway.admin("/admin/balances?limit=3")).json;
    const why = { reason: "chargeback", by: "kim", note: "case 1207" };
    await gateway.admin(`/admin/accounts/${data[2].id}/suspend`, why);
  }

  /** Somebody who signs in by mail, is given credit and makes a key. */
  private async arrive(person: string): Promise<string> {
    const { gateway } = this;
    await gateway.send("POST", "/v1/auth/email", { json: { email: `${person}@example.com` } });
    const outbox = join(gateway.gateway.folder.path, "outbox");
    const mail = readFileSync(join(outbox, readdirSync(outbox).sort().at(-1)!), "utf8");
    const json = { token: /#signin=(\S+)/.exec(mail)![1]! };
    const { session: bearer } = (await gateway.send("POST", "/v1/auth/email/verify", { json })).json;
    await gateway.credit((await gateway.send("GET", "/v1/me", { bearer })).json.balance_id, 5);
    const wish = { name: `${person}'s laptop`, rpm_limit: 5_000, tpm_limit: null };
    return (await gateway.send("POST", "/v1/keys", { bearer, json: wish })).json.key;
  }
}

/** Before the days of which the owner's pages tell, so that those can be said to have grown. */
const QUIET_DAYS = 7;
const DAYS = 6;
/** Other customers. */
const OTHERS = 14;
const PEOPLE = ["ada", "grace", "katherine", "hedy", "radia", "margaret"];

const MODELS = [
  { id: "aurora/swift", name: "Aurora Swift", input: 0.3, output: 1.2, hosts: [0, 1] },
  { id: "aurora/grand", name: "Aurora Grand", input: 3, output: 15, hosts: [1, 0] },
  { id: "basalt/code-2", name: "Basalt Code 2", input: 1, output: 5, hosts: [2, 1] },
  { id: "cirrus/mini", name: "Cirrus Mini", input: 0.05, output: 0.2, hosts: [0] },
] as const;

interface Habits {
  readonly id: string;
  readonly delayMs: number;
  readonly failsOneIn: number;
}

const HOSTS: readonly Habits[] = [
  { id: "north", delayMs: 4, failsOneIn: 400 },
  { id: "harbour", delayMs: 14, failsOneIn: 300 },
  { id: "quarry", delayMs: 9, failsOneIn: 9 },
];

const configOf = (ports: readonly number[]): string => `
hosts:
${HOSTS.map(({ id }, index) => `  - { id: ${id}, base_url: "http://127.0.0.1:${ports[index]}/v1", speaks: [chat.completions] }`).join("\n")}
models:
${MODELS.map(
  ({ id, name, input, output, hosts }) => `  - id: ${id}
    name: ${name}
    context_length: 200000
    max_output_tokens: 16000
    price: { input: ${input}, output: ${output}, cache_read: ${input / 10} }
    routes:
${hosts.map((host) => `      - { host: ${HOSTS[host]!.id}, model: m }`).join("\n")}`,
).join("\n")}
  - id: sim/echo
    name: Simulated echo
    context_length: 1000000
    max_output_tokens: 8192
    routes:
      - { host: sim, model: echo, free: true }
open_tier: { rpm: 1000 }
setup: { accountless_keys_per_address_per_hour: 1000 }
`;

function startHost({ delayMs, failsOneIn }: Habits, random: Random): Bun.Server<unknown> {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = (await request.json()) as { messages: { content: string }[] };
      if (random.below(failsOneIn) === 0)
        return Response.json({ error: { message: "busy" } }, { status: 503 });
      await Bun.sleep(delayMs + random.below(delayMs * 2));
      const prompt_tokens = Math.ceil(body.messages[0]!.content.length / LETTERS_OF_A_TOKEN);
      const content = ANSWER.repeat(1 + random.below(4));
      const completion_tokens = Math.ceil(content.length / LETTERS_OF_A_TOKEN);
      const event = (data: object) =>
        `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", ...data })}\n\n`;
      const choice = (delta: object, finish_reason: string | null = null) => ({
        choices: [{ index: 0, delta, finish_reason }],
      });
      const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
      return new Response(
        `${event(choice({ role: "assistant", content }))}${event(choice({}, "stop"))}${event({ choices: [], usage })}data: [DONE]\n\n`,
        { headers: { "content-type": "text/event-stream" } },
      );
    },
  });
}

const LETTERS_OF_A_TOKEN = 5;

const ANSWER = `Spring tides come **twice a month**, when sun and moon pull along one line.

1. At *new moon* both stand on the same side.
2. At *full moon* they stand opposite.

| Place | Range |
|:--|--:|
| Bay of Fundy | 16.3 m |
| Brest | 7.2 m |

A rough estimate, with \`range\` in metres:

\`\`\`python
def height(mean, range, hours):
    return mean + range / 2 * math.cos(2 * math.pi * hours / 12.42)
\`\`\`

`;

async function credit(
  gateway: OpenGateway,
  balance_id: string,
  amount_usd: number,
  note: string,
): Promise<void> {
  await gateway.admin("/admin/credits", { balance_id, amount_usd, note, idempotency_key: note });
}

/** The system's clock, so long ago. */
class WoundClock implements Clock {
  constructor(private offsetMs: number) {}
  readonly elapsedMs = systemClock.elapsedMs;
  readonly after = systemClock.after;
  now(): EpochMs {
    return (systemClock.now() + this.offsetMs) as EpochMs;
  }
  get hour(): number {
    return new Date(this.now()).getUTCHours();
  }
  wind(ms: number): void {
    this.offsetMs += ms;
  }
}
