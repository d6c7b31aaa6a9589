import { AUTO_PREFIX, FREE_AUTO_MODEL } from "./model-name.ts";

/**
 * The published ids that a name fits which is not itself one: an operator's alias, the name without its
 * author, the name with or without the date of its version (`claude-haiku-4-5-20251001`), with the mark that
 * Claude Code puts behind it for a long context (`[1m]`). Upper and lower case, `.`, `_` and `-` are alike.
 * Built once for a catalog, because agents send such names with every request.
 */
export class ShortNames {
  /** By alias, by the whole id, and by the id without its author. */
  private readonly named = new Map<string, readonly string[]>();
  /** The same of ids that end in a date, without it. */
  private readonly undated = new Map<string, readonly string[]>();

  constructor(models: Iterable<ModelNames>, variants: Iterable<string>) {
    const aliases = new Map<string, readonly string[]>();
    for (const { id, aliases: others = [] } of models) {
      this.add(id);
      for (const alias of others) aliases.set(plain(alias), [id]);
    }
    for (const variant of variants) this.add(`${AUTO_PREFIX}${variant}`);
    this.add(FREE_AUTO_MODEL);
    // The operator's word goes before what happens to be alike.
    for (const [alias, ids] of aliases) this.named.set(alias, ids);
  }

  /** None: nothing is like it. Several: the client has to choose. */
  idsOf(name: string): readonly string[] {
    if (name.length > MAX_CHARACTERS) return NONE;
    const id = plain(name.replace(LONG_CONTEXT, ""));
    const own = this.named.get(id);
    if (own !== undefined) return own;
    const undated = id.replace(DATE, "");
    return (undated === id ? this.undated : this.named).get(undated) ?? NONE;
  }

  private add(id: string): void {
    for (const name of [plain(id), plain(id.slice(id.indexOf("/") + 1))]) {
      put(this.named, name, id);
      const undated = name.replace(DATE, "");
      if (undated !== name) put(this.undated, undated, id);
    }
  }
}

function put(ids: Map<string, readonly string[]>, name: string, id: string): void {
  const there = ids.get(name) ?? NONE;
  if (!there.includes(id)) ids.set(name, [...there, id]);
}

/** A model, as far as it has names. */
interface ModelNames {
  readonly id: string;
  readonly aliases?: readonly string[];
}

const NONE: readonly string[] = [];

const plain = (name: string): string => name.toLowerCase().replaceAll(/[._]/g, "-");

/** As OpenAI, Anthropic and Google's Vertex write them: `-2024-08-06`, `-20251001`, `@20251001`. */
const DATE = /[-@]20\d{2}-?[01]\d-?[0-3]\d$/;
const LONG_CONTEXT = /\[1m\]$/i;
/** The longest id has 193. */
const MAX_CHARACTERS = 256;
