import type { Candidate } from "../routing/candidate.ts";
import type { TokenizerFamily } from "../tokens/families.ts";
import { familyOf } from "../tokens/model-family.ts";
import type { Counts } from "./billed-tokens.ts";

/** Exact counts of one request and its answer, in the vocabulary of the model that served, for its bill. */
export class Recount implements Counts {
  readonly family: TokenizerFamily;

  constructor(
    private readonly deps: RecountDeps,
    { model, route }: Candidate,
    /** Null where it is not there any more: then it is billed by its estimate. */
    private readonly body: PromptBody | null,
  ) {
    this.family = familyOf(model.id, route.model);
  }

  answer(texts: readonly string[]): Promise<number | null> {
    return orNull(this.deps.countAnswer(texts, this.family));
  }

  prompt(): Promise<number | null> {
    return orNull(this.countedPrompt());
  }

  private async countedPrompt(): Promise<number | null> {
    const body = this.body === null ? null : await this.body.read();
    return body === null ? null : this.deps.countPrompt(body, this.family);
  }

  drop(): void {
    this.body?.drop();
  }
}

/** What was delivered is billed whatever happens to its count: then by the estimate. */
const orNull = (counting: Promise<number | null>): Promise<number | null> => counting.catch(() => null);

/** Both may take a while, and answer null when there is too much to do. */
export interface RecountDeps {
  /** Tokens of texts, all together. */
  countAnswer(texts: readonly string[], family: TokenizerFamily): Promise<number | null>;
  /** Tokens of a request body's text. */
  countPrompt(body: Uint8Array, family: TokenizerFamily): Promise<number | null>;
}

interface PromptBody {
  read(): Uint8Array | Promise<Uint8Array | null>;
  drop(): void;
}

/** The prompt of a whole answer, whose request is in memory until it has ended. */
export const unkept = (body: Uint8Array): PromptBody => ({ read: () => body, drop() {} });

/**
 * The prompts of open streams, for those that break or are left before their host has reported its usage: most hosts
 * do at the end only. Longer ones are packed, on a thread of Bun's, to a quarter of their size or less. Together
 * they take so much memory; one for which there is no room is not kept.
 */
export class KeptPrompts {
  bytes = 0;

  keep(body: Uint8Array): PromptBody | null {
    return this.bytes + body.length > MAX_KEPT_BYTES ? null : new Kept(this, body);
  }
}

class Kept implements PromptBody {
  private readonly isPacked: boolean;
  private bytes: number;
  /** Null once it was dropped. */
  private body: Uint8Array | Promise<Uint8Array> | null;

  constructor(
    private readonly all: KeptPrompts,
    body: Uint8Array,
  ) {
    this.bytes = body.length;
    all.bytes += body.length;
    this.isPacked = body.length >= MIN_PACKED_BYTES;
    this.body = this.isPacked ? Bun.zstdCompress(body, { level: 1 }) : body;
    if (this.body instanceof Promise) void this.pack(this.body);
  }

  async read(): Promise<Uint8Array | null> {
    const body = await this.body;
    return body !== null && this.isPacked ? Bun.zstdDecompress(body) : body;
  }

  drop(): void {
    if (this.body === null) return;
    this.body = null;
    this.all.bytes -= this.bytes;
  }

  private async pack(packing: Promise<Uint8Array>): Promise<void> {
    try {
      const packed = await packing;
      if (this.body === null) return;
      this.all.bytes -= this.bytes - packed.length;
      this.bytes = packed.length;
      this.body = packed;
    } catch {
      this.drop();
    }
  }
}

const MIN_PACKED_BYTES = 4 * 1024;
const MAX_KEPT_BYTES = 64 * 1024 * 1024;
