import type { Mutant } from "./mutant.ts";

/** What `sim` has to notice of what becomes of an answer between two languages, and where it is put together. */
export const GATEWAY_MUTANTS: readonly Mutant[] = [
  {
    breaks: "a chat stream that breaks has no last chunk",
    file: "src/surfaces/chat/answer-writer.ts",
    edits: [['"delta":{},"finish_reason":"error"', '"delta":{},"finish_reason":null']],
  },
  {
    breaks: "a translated chat stream has no end mark",
    file: "src/surfaces/chat/answer-writer.ts",
    edits: [['    this.data("[DONE]");\n', ""]],
  },
  {
    breaks: "a translated chat stream does not tell its cost",
    file: "src/surfaces/chat/answer-writer.ts",
    edits: [["if (this.wantsUsage)", "if (!this.wantsUsage)"]],
  },
  {
    breaks: "a chat host's stream that ends early is complete",
    file: "src/surfaces/chat/answer-reader.ts",
    edits: [["this.reason === null ? ENDED_EARLY : this.finish()", "this.finish()"]],
  },
  {
    breaks: "a translated message's deltas are of the next block",
    file: "src/surfaces/messages/answer-writer.ts",
    edits: [
      ['data: {"type":"content_block_delta","index":', 'data: {"type":"content_block_delta","index":1'],
    ],
  },
  {
    breaks: "a translated message does not tell its cost",
    file: "src/surfaces/messages/answer-writer.ts",
    edits: [["billedUsage(null, bill, writeMessagesUsage)", "writeMessagesUsage(bill.tokens)"]],
  },
  {
    breaks: "a messages host's last usage is not read",
    file: "src/surfaces/messages/answer-reader.ts",
    edits: [["        this.used = readAnthropicUsage(data.usage, this.used);\n", ""]],
  },
  {
    breaks: "a responses host's usage is not read",
    file: "src/surfaces/responses/answer-reader.ts",
    edits: [["    if (usage !== null) this.events.usage(usage);\n", ""]],
  },
  {
    breaks: "a withheld end has taken a number",
    file: "src/surfaces/responses/judge.ts",
    edits: [
      ['  "response.completed",\n  "response.incomplete",\n  "response.failed",\n', '  "response.failed",\n'],
    ],
  },
  {
    breaks: "a collected message has the usage of its beginning",
    file: "src/surfaces/messages/collector.ts",
    edits: [["if (value !== null) used![name] = value;", "if (value === null) used![name] = value;"]],
  },
  {
    breaks: "a collected chat answer is its last delta",
    file: "src/surfaces/chat/collector.ts",
    edits: [["  else grow(message, { content });\n", "  else message.content = content;\n"]],
  },
];
