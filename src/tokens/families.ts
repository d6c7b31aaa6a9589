import { CL100K_TOKEN_SPLIT_REGEX, O200K_TOKEN_SPLIT_REGEX } from "gpt-tokenizer/encodingParams/constants";
import { BytePairs } from "./byte-pairs.ts";

/** Vocabularies that models share. */
export type TokenizerFamily = "o200k" | "cl100k";

/** Counts text by family. A vocabulary is loaded when it is first needed, which takes a third of a second. */
export class Families {
  private readonly loaded = new Map<TokenizerFamily, Promise<BytePairs>>();

  get(family: TokenizerFamily): Promise<BytePairs> {
    return this.loaded.getOrInsertComputed(family, () => LOADERS[family]());
  }
}

const LOADERS = {
  async o200k() {
    const { default: vocabulary } = await import("gpt-tokenizer/bpeRanks/o200k_base");
    return new BytePairs(vocabulary, asInRust(O200K_TOKEN_SPLIT_REGEX));
  },
  async cl100k() {
    const { default: vocabulary } = await import("gpt-tokenizer/bpeRanks/cl100k_base");
    return new BytePairs(vocabulary, asInRust(CL100K_TOKEN_SPLIT_REGEX));
  },
} satisfies Record<TokenizerFamily, () => Promise<BytePairs>>;

/** What is a space differs between Rust, where these patterns come from, and JavaScript: U+FEFF and U+0085. */
const asInRust = ({ source, flags }: RegExp): RegExp =>
  new RegExp(source.replaceAll("\\s", "\\p{White_Space}").replaceAll("\\S", "\\P{White_Space}"), flags);
