import { Glob } from "bun";
import { type Module, readModule, type Source } from "./module.ts";

const SRC = new URL("../../src/", import.meta.url).pathname;

/** All files of `src`. */
export const sources = (): Promise<Source[]> =>
  Promise.all(
    [...new Glob("**/*.{ts,tsx}").scanSync(SRC)]
      .sort()
      .map(async (path) => ({ path, text: await Bun.file(SRC + path).text() })),
  );

export const house = async (): Promise<Module[]> => (await sources()).map(readModule);
