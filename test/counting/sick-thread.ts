import type { Count, Work } from "../../src/counting/work.ts";

/** A counting thread that does as its text says. */
declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<Work>) => {
  if (data.what === "answers") throw new Error("no test counts several answers here");
  const text = data.what === "answer" ? data.texts.join("") : new TextDecoder().decode(data.body);
  if (text === "hang") for (;;);
  if (text === "throw") throw new Error("out of its depth");
  if (text === "silence") return;
  self.postMessage({ tokens: text.length, ms: 1 } satisfies Count);
};
