import type { AnswerCounts, Count, Work } from "../../../src/generation/counting/work.ts";

/** A counting thread that does as its text says. */
declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<Work>) => {
  const text =
    data.what === "answers"
      ? data.answers.flatMap(({ texts }) => texts).join("")
      : new TextDecoder().decode(data.body);
  if (text === "hang") for (;;);
  if (text === "throw") throw new Error("out of its depth");
  if (text === "silence") return;
  if (data.what === "answers") self.postMessage({ tokens: [text.length] } satisfies AnswerCounts);
  else self.postMessage({ tokens: text.length, ms: 1 } satisfies Count);
};
