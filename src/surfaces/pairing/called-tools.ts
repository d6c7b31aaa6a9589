import type { GenerationRequest } from "../surface.ts";
import { type AnswerEvents, type OpenBlock, PassingEvents } from "../vocabulary/answer-events.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { unwrappedInput } from "../vocabulary/custom-tool.ts";
import { longNames, namedTools, offeredTools } from "../vocabulary/tool-names.ts";

/**
 * What a host answers, with its calls as the client offered the tools: freeform ones, which such a host knows
 * as functions (Anthropic's `custom` is a function), and ones with names that were too long for it.
 */
export function asOffered(
  next: AnswerEvents,
  { surface, json }: Pick<GenerationRequest, "surface" | "json">,
  wrapsCustomTools: boolean,
): AnswerEvents {
  if (surface === "messages") {
    const long = longNames(json.tools);
    return long.size === 0 ? next : new Renamer(next, long);
  }
  if (!wrapsCustomTools) return next;
  const offered = surface === "responses" ? offeredTools(json) : namedTools(json.tools);
  const names = offered.flatMap(({ custom, flat }) => (custom ? [flat] : []));
  return names.length === 0 ? next : new Unwrapper(next, new Set(names));
}

/** Calls get the names back that were too long for the host. */
class Renamer extends PassingEvents {
  constructor(
    next: AnswerEvents,
    private readonly names: ReadonlyMap<string, string>,
  ) {
    super(next);
  }

  override open(block: OpenBlock): void {
    const name = block.kind === "tool_call" ? this.names.get(block.name) : undefined;
    this.next.open(block.kind === "tool_call" && name !== undefined ? { ...block, name } : block);
  }
}

/** The text of a freeform call is known when its arguments are whole. */
class Unwrapper extends PassingEvents {
  private wrapped: { readonly block: OpenBlock; text: string } | null = null;

  constructor(
    next: AnswerEvents,
    private readonly names: ReadonlySet<string>,
  ) {
    super(next);
  }

  override open(block: OpenBlock): void {
    if (block.kind === "tool_call" && this.names.has(block.name))
      this.wrapped = { block: { ...block, custom: true }, text: "" };
    else this.next.open(block);
  }

  override delta(text: string, logprobs?: readonly unknown[]): void {
    if (this.wrapped === null) this.next.delta(text, logprobs);
    else this.wrapped.text += text;
  }

  override close(seal: Seal | null): void {
    if (this.wrapped !== null) {
      const { block, text } = this.wrapped;
      this.wrapped = null;
      this.next.open(block);
      this.next.delta(unwrappedInput(text));
    }
    this.next.close(seal);
  }
}
