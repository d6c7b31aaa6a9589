import { type Mutant, mutantsOf } from "./mutant.ts";

/** What `sim` has to notice of what becomes of an answer between two languages, and where it is put together. */
export const GATEWAY_MUTANTS: readonly Mutant[] = [
  ...mutantsOf("src/hosts/failover.ts", {
    "a refusal is followed by another host of its model": [
      "    this.excluded = [...this.excluded, ...decliningIn(answer)];\n",
      "",
    ],
    "of several refusals, the last is the answer": ["this.declined ??= answer", "this.declined = answer"],
    "a refusal is a failure": [
      '      case "declined":\n        return this.afterDecline(outcome.answer);\n',
      "",
    ],
  }),
  ...mutantsOf("src/generation/stream/delivery.ts", {
    "a streamed refusal is charged although its host charges nothing": [
      "const isFree = isDeclined && ",
      "const isFree = false && ",
    ],
  }),
  ...mutantsOf("src/surfaces/usage.ts", {
    "an answer that ends at a filter was declined": ["isFiltered && !isWritten", "isFiltered && isWritten"],
  }),
  ...mutantsOf("src/surfaces/chat/answer-writer.ts", {
    "a chat stream that breaks has no last chunk": [
      '"delta":{},"finish_reason":"error"',
      '"delta":{},"finish_reason":null',
    ],
    "a translated chat stream has no end mark": ['    this.data("[DONE]");\n', ""],
    "a translated chat stream does not tell its cost": ["if (this.wantsUsage)", "if (!this.wantsUsage)"],
  }),
  ...mutantsOf("src/surfaces/chat/answer-reader.ts", {
    "a chat host's stream that ends early is complete": [
      "this.reason === null ? ENDED_EARLY : this.finish()",
      "this.finish()",
    ],
  }),
  ...mutantsOf("src/surfaces/messages/answer-writer.ts", {
    "a translated message's deltas are of the next block": [
      'data: {"type":"content_block_delta","index":',
      'data: {"type":"content_block_delta","index":1',
    ],
    "a translated message does not tell its cost": [
      "billedUsage(null, bill, writeMessagesUsage)",
      "writeMessagesUsage(bill.tokens)",
    ],
  }),
  ...mutantsOf("src/surfaces/messages/answer-reader.ts", {
    "a messages host's last usage is not read": [
      "        this.used = readAnthropicUsage(data.usage, this.used);\n",
      "",
    ],
  }),
  ...mutantsOf("src/surfaces/responses/answer-reader.ts", {
    "a responses host's usage is not read": ["    if (usage !== null) this.events.usage(usage);\n", ""],
  }),
  ...mutantsOf("src/surfaces/responses/judge.ts", {
    "a withheld end has taken a number": [
      '  "response.completed",\n  "response.incomplete",\n  "response.failed",\n',
      '  "response.failed",\n',
    ],
  }),
  ...mutantsOf("src/surfaces/messages/collector.ts", {
    "a collected message has the usage of its beginning": [
      "if (value !== null) used![name] = value;",
      "if (value === null) used![name] = value;",
    ],
  }),
  ...mutantsOf("src/surfaces/chat/collector.ts", {
    "a collected chat answer is its last delta": [
      "  else grow(message, { content });\n",
      "  else message.content = content;\n",
    ],
  }),
];
