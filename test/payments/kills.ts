import { Database } from "bun:sqlite";
import { join } from "node:path";
import { json } from "../fakes/behaviours.ts";
import { LocalChain, USDC } from "../fakes/chain/chain.ts";
import { FakeFacilitator, MOODS } from "../fakes/facilitator.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import type { OpenGateway } from "../gateway/open.ts";
import { Folder, GatewayProcess } from "../process/gateway.ts";
import { balanceOf, openQuickIn, paidConfig, paying, somewhere } from "./paid-gateway.ts";

/**
 * A gateway is killed right after each write that a payment makes, and the next one starts on what is on the disk: what
 * moved is credited, and once.
 *
 *     bun run test/payments/kills.ts --rounds 25
 */
export async function kill(write: Write, world: World): Promise<Outcome> {
  const scene = new Scene(CUTS[write], world);
  try {
    return await scene.play(write.split(",")[0]!);
  } finally {
    await scene.end();
  }
}

/** After a single payment of $3. */
export interface Outcome {
  readonly onChainUsd: number;
  readonly creditedUsd: number;
  readonly isInOrder: boolean;
}

export const ONCE: Outcome = { onChainUsd: 3, creditedUsd: 3, isInOrder: true };

export interface World {
  readonly chain: LocalChain;
  readonly host: FakeHost;
}

export async function openWorld(): Promise<World> {
  const chain = await LocalChain.start();
  const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
  return { chain, host };
}

export async function closeWorld({ chain, host }: World): Promise<void> {
  await host.close();
  chain.stop();
}

/** Where it is cut off: what is held back so that the gateway cannot get any further. */
const CUTS = {
  /** The order is durable; screening has no answer. */
  created: "oracle",
  /** Asking is durable; the facilitator has not received it yet. */
  submitted: "before",
  /** The money moved, and nobody has reported it. */
  "submitted, and it moved": "after",
  /** Seen in a block, without the confirmations. */
  confirming: "confirmations",
  /** The credit is durable, and its client has no answer. */
  credited: "nothing",
} as const;

export type Write = keyof typeof CUTS;
export const WRITES = Object.keys(CUTS) as Write[];

class Scene {
  private isCut = true;
  private readonly facilitator: FakeFacilitator;
  private readonly node: Bun.Server<undefined>;
  private readonly payTo = somewhere();
  private readonly folder: Folder;
  private killed: GatewayProcess | null = null;
  private next: OpenGateway | null = null;

  constructor(
    private readonly cut: (typeof CUTS)[Write],
    private readonly world: World,
  ) {
    const { chain, host } = world;
    this.facilitator = this.facilitate();
    this.node = this.serveNode();
    this.folder = new Folder(
      paidConfig({
        chain: { ...chain, rpc: `http://127.0.0.1:${this.node.port}` } as LocalChain,
        payTo: this.payTo,
        host: host.url,
        settledBy: `facilitator: "${this.facilitator.url}"`,
        network: `, wait_ms: 4000, confirmations: ${cut === "confirmations" ? 3 : 1}`,
        more: `  sanctions: { oracle: "${USDC}" }`,
      }),
    );
  }

  async play(name: string): Promise<Outcome> {
    const { chain } = this.world;
    const { cut, payTo } = this;
    this.killed = await GatewayProcess.start(this.folder);
    const gateway = this.killed;
    const made = (await gateway.post("/v1/keys", {})).json;
    await gateway.post("/v1/me/saved", { key: made.key }, made.recovery_secret);
    void paying(await chain.wallet(10), 5)(`${gateway.url}/v1/credits`, {
      method: "POST",
      headers: { authorization: `Bearer ${made.key}` },
      body: JSON.stringify({ amount_usd: 3 }),
    }).catch(() => {});
    const db = new Database(join(this.folder.path, "data/gateway.sqlite"), { readonly: true });
    const isThere = () => db.query<{ state: string }, []>("SELECT state FROM payments").get()?.state === name;
    await until(isThere);
    if (cut === "after") await until(async () => (await chain.balanceOf(payTo)) === 3);
    await gateway.kill();
    if (!isThere()) throw new Error(`it was not killed once it was ${name}`);
    db.close();
    this.isCut = false;
    if (cut === "confirmations") await chain.mine(2);
    const next = await openQuickIn(this.folder);
    this.next = next;
    await until(async () => (await balanceOf(next, made.key)) === 3);
    const { json: audit } = await next.admin("/admin/ledger/audit");
    return {
      onChainUsd: await chain.balanceOf(payTo),
      creditedUsd: Number(audit.credits_nano) / 1e9,
      isInOrder: audit.ok,
    };
  }

  async end(): Promise<void> {
    await this.killed?.kill();
    await this.next?.close();
    await this.facilitator.stop();
    await this.node.stop(true);
    this.folder.remove();
  }

  private facilitate(): FakeFacilitator {
    const facilitator = new FakeFacilitator(this.world.chain);
    facilitator.mood = async (transfer, on) => {
      if (this.isCut && this.cut === "before") return never;
      if (this.isCut && this.cut === "after") {
        await on.carryOut(transfer);
        return never;
      }
      return MOODS.honest(transfer, on);
    };
    return facilitator;
  }

  /** The chain's node, and a contract that nobody answers for where screening is to wait. */
  private serveNode(): Bun.Server<undefined> {
    const { rpc } = this.world.chain;
    return Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        const body = await request.text();
        if (!body.includes(SCREENING))
          return fetch(rpc, { method: "POST", body, headers: { "content-type": "application/json" } });
        if (this.isCut && this.cut === "oracle") return never;
        return Response.json({ jsonrpc: "2.0", id: JSON.parse(body).id, result: `0x${"0".repeat(64)}` });
      },
    });
  }
}

const never = new Promise<Response>(() => {});
/** The selector of `isSanctioned(address)`. */
const SCREENING = "df592f7d";

if (import.meta.main) {
  const at = process.argv.indexOf("--rounds");
  const rounds = at === -1 ? 1 : Number(process.argv[at + 1]);
  const world = await openWorld();
  for (const write of WRITES) {
    let once = 0;
    for (let round = 0; round < rounds; round++) {
      const outcome = await kill(write, world);
      if (Bun.deepEquals(outcome, ONCE)) once += 1;
      else console.error(write, outcome);
    }
    console.log(`killed once it was ${write}: ${once} of ${rounds} were credited once`);
  }
  await closeWorld(world);
}
