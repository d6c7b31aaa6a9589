import { configView } from "../config/config-view.ts";
import { SETTINGS } from "../config/settings.ts";
import { SIMULATED_ADDRESS } from "../config/simulated-model.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import { ADMIN_TOKEN, differences, hashOfToken, NETWORKS, type NodeSettings } from "../store/nodes/fleet.ts";
import type { Log } from "../units/log.ts";
import type { RandomBytes } from "../units/random.ts";
import type { ActiveConfig } from "./active-config.ts";

/** The secret by which the fleet tells networks apart: it is the store's, so that every node has the same. */
export const networkSecret = ({ fleet }: Pick<Bookkeeping, "fleet">, random: RandomBytes): Promise<string> =>
  fleet.secret(NETWORKS, Buffer.from(random(new Uint8Array(SECRET_BYTES))).toString("base64url"));

const SECRET_BYTES = 32;

/**
 * Compares what this node runs with, its admin token and its configuration, with the other nodes of the store. They
 * would serve each request by other prices, models and limits, and let the operator in at one and not at the other.
 */
export class NodeComparison {
  constructor(
    private readonly parts: {
      readonly books: Pick<Bookkeeping, "fleet" | "node" | "nodes">;
      readonly active: Pick<ActiveConfig, "config" | "links" | "modelVersion">;
      readonly folder: { readonly adminToken: string };
      /** Another port in each process. */
      readonly simulatedUrl: string;
      readonly secret: string;
      readonly log: Log;
    },
  ) {}

  /** At start, and after each reload. That it fails keeps nobody from serving. */
  async note(): Promise<null> {
    const { log } = this.parts;
    await this.write();
    try {
      for (const [node, differsIn] of await this.differences())
        log("node differs", { node, in: differsIn.join(", "), next: NEXT });
    } catch (error) {
      log("nodes not compared", { error: String(error) });
    }
    return null;
  }

  /** What this node runs with, for the others to compare. */
  async write(): Promise<void> {
    const { books, log } = this.parts;
    if (books.node === null) return;
    await books.fleet
      .note(books.node, this.own())
      .catch((error) => log("nodes not compared", { error: String(error) }));
  }

  /** Nodes that have applied another version of model lists. */
  async withOtherModels(): Promise<string[]> {
    const differences = await this.differences();
    return [...differences].flatMap(([node, differsIn]) =>
      differsIn.includes(APPLIED_MODELS) ? [node] : [],
    );
  }

  /** By node, of those that are alive: where it differs from this one. */
  async differences(): Promise<ReadonlyMap<string, readonly string[]>> {
    const { books } = this.parts;
    const found = new Map<string, readonly string[]>();
    if (books.node === null) return found;
    const alive = new Set(
      (await books.nodes.list()).flatMap(({ name, state }) => (state === "alive" ? [name] : [])),
    );
    for (const [node, settings] of await books.fleet.settings()) {
      const differsIn = alive.has(node) ? differences(this.own(), settings) : [];
      if (differsIn.length > 0) found.set(node, differsIn);
    }
    return found;
  }

  private own(): NodeSettings {
    const { active, folder, simulatedUrl, secret } = this.parts;
    const members = Object.entries(configView(active.config, active.links)).flatMap(([name, value]) =>
      OF_ONE_NODE.has(name)
        ? []
        : [[name, hashOf(JSON.stringify(value).replaceAll(simulatedUrl, SIMULATED_ADDRESS))]],
    );
    return {
      [ADMIN_TOKEN]: hashOfToken(folder.adminToken, secret),
      // Nodes of before the first list, and older ones, say nothing of it.
      ...(active.modelVersion === 0 ? {} : { [APPLIED_MODELS]: String(active.modelVersion) }),
      ...Object.fromEntries(members),
    };
  }
}

const APPLIED_MODELS = "applied model lists";

const hashOf = (value: string): string =>
  new Bun.CryptoHasher("sha256").update(value).digest("hex").slice(0, HASH_DIGITS);

const HASH_DIGITS = 16;

/** What may well differ: where a node listens and logs, and what its machine has. */
const OF_ONE_NODE = new Set([
  "file",
  ...Object.entries(SETTINGS.rows).flatMap(([name, { perNode }]: [string, { readonly perNode?: true }]) =>
    perNode === true ? [name] : [],
  ),
]);

const NEXT = "Give all nodes of a store the same gateway.yaml and GATEWAY_ADMIN_TOKEN, and restart them.";
