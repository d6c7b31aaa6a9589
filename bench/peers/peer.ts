/** What is measured next to the gateway: how it is had, started and spoken to. One file each. */
import type { SurfaceName } from "../../src/catalog/catalog.ts";
import type { Target } from "../load.ts";
import type { Measured } from "../processes.ts";

export interface Peer {
  readonly name: string;
  /**
   * Finds it on this machine, or installs the pinned version into `cache`, which lies outside the repository.
   * @throws {Error} with the reason, when this machine cannot have it.
   */
  install(cache: string): Promise<Installed>;
}

export interface Installed {
  readonly version: string;
  /** Its settings and what it does besides relaying, for readers of the results. */
  readonly settings: string;
  /** How many streams it is given at most in a load, where more would only measure its queue. */
  readonly streams?: number;
  /** In front of the host on `hostPort`; whatever it writes goes into `folder`, where it finds it again. */
  start(hostPort: number, folder: string): Promise<Subject>;
}

export interface Subject {
  readonly process: Measured;
  readonly target: Target;
  /** What it wants in front of the host's name of a model. */
  readonly prefix: string;
  /** The same with a key that was never given out, where keys are checked. */
  readonly stranger?: Target;
  /** Whether it bounds bodies. */
  readonly refusesLarge: boolean;
  /** Where a client of this language reaches a host of that one; null where it cannot. Absent: `target`, for chat. */
  readonly reaches?: (client: SurfaceName, host: SurfaceName) => Target | null;
  /** It streams from the host what a client wants whole. */
  readonly assembles?: boolean;
}

/** For a peer that passes bytes on unread. */
export const relays =
  (target: Target): NonNullable<Subject["reaches"]> =>
  (client, host) =>
    client === host ? { ...target, path: PATHS[client] } : null;

/** The paces of bench/mock-host.ts that are asked for: first token, deltas, ms between them. */
export const PACES = {
  burst: "paced-0-64-0",
  steady: "paced-0-64-20",
  thinking: "paced-300-64-20",
  open: "paced-0-600-1000",
  padded: "paced-0-64-20-obfuscated",
  agent: "paced-0-300-5-tools",
  /** The model's context has fewer tokens than the prompt has bytes. */
  narrow: "paced-0-64-0-narrow",
  long: "paced-0-500-0",
  slow: "paced-0-64-250",
  slowPadded: "paced-0-64-250-obfuscated",
} as const;

export const PATHS: Readonly<Record<SurfaceName, string>> = {
  "chat.completions": "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
};

export const PATH = PATHS["chat.completions"];
/** The specification's bound on a body, given to every peer that has such a bound. */
export const BODY_BYTES = 10 * 1_048_576;
