import { expect, test } from "bun:test";
import { PRESETS, routeQuirks } from "../../src/config/provider-presets.ts";

const ANTHROPIC = PRESETS.find(({ id }) => id === "anthropic")!;

test.each<[string, boolean, boolean]>([
  ["claude-3-5-haiku-20241022", false, false],
  ["claude-opus-4-20250514", false, false],
  ["claude-opus-4-1-20250805", false, false],
  ["claude-sonnet-4-5", false, false],
  ["claude-sonnet-4-6", true, false],
  ["claude-opus-4-8", true, true],
])(
  "Anthropic's %s thinks by an effort: %p; takes no temperature: %p",
  (name, adaptiveThinking, noSampling) => {
    expect(routeQuirks(ANTHROPIC, name) ?? ANTHROPIC.quirks).toMatchObject({ adaptiveThinking, noSampling });
  },
);
