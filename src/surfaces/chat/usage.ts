import type { WriteUsage } from "../passing/billed.ts";

export const writeChatUsage: WriteUsage = ({ input, cacheRead, cacheWrite, output, reasoning }) => {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: cacheRead,
      cache_write_tokens: cacheWrite > 0 ? cacheWrite : undefined,
    },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
};
