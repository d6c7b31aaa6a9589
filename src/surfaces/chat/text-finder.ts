import { TextFinder } from "../passing/text-finder.ts";
import { CHANNEL, CHANNELS_OF_A_CHOICE, callChannel } from "./written.ts";

/** In a chunk of text or arguments and nothing else. */
class ChatTextFinder extends TextFinder {
  /** The model's name, with its quotes; the end is 0 where there is none. */
  modelStart = 0;
  modelEnd = 0;
  /** `"usage":null` with the comma before it; the end is 0 where there is none. */
  usageStart = 0;
  usageEnd = 0;

  protected read(): boolean {
    const { cursor } = this;
    let hasChoices = false;
    this.modelEnd = this.usageEnd = this.usageStart = 0;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("choices")) {
        hasChoices = true;
        this.readChoices();
      } else if (cursor.isNamed("model")) {
        const { at, isText } = cursor;
        cursor.skipExact();
        this.modelStart = at;
        this.modelEnd = isText ? cursor.at : 0;
      } else if (cursor.isNamed("usage")) {
        this.usageStart = cursor.comma;
        cursor.skipNull();
        this.usageEnd = cursor.at;
      } else if (cursor.isNamed("error") || cursor.isNamed("x_groq")) cursor.skipNull();
      // `error` in some hosts' errors.
      else if (cursor.isNamed("object")) cursor.skipOther();
      else this.skipFree();
    }
    // A usage that stands first has its comma behind it: such a chunk is read whole.
    return cursor.isDone && hasChoices && this.usageStart !== -1;
  }

  /** A chunk without any is no text. */
  private readChoices(): void {
    const { cursor } = this;
    let count = 0;
    cursor.enterArray();
    while (cursor.nextValue()) {
      const { found: first } = this;
      let index = count;
      count += 1;
      cursor.enterObject();
      while (cursor.nextMember()) {
        if (cursor.isNamed("delta")) this.readDelta();
        else if (cursor.isNamed("finish_reason")) cursor.skipNull();
        else if (cursor.isNamed("index")) index = cursor.readCount();
        else cursor.skipOther();
      }
      for (let at = first; at < this.found; at++) this.texts[at]!.channel += index * CHANNELS_OF_A_CHOICE;
    }
    if (count === 0) cursor.giveUp();
  }

  private readDelta(): void {
    const { cursor } = this;
    let thought = false;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("role")) cursor.skipExact();
      else if (cursor.isNamed("content")) this.readText(CHANNEL.text);
      else if (cursor.isNamed("reasoning_content") || cursor.isNamed("reasoning")) {
        // Hosts that know both names say the same by both.
        if (thought && cursor.isText) cursor.giveUp();
        thought ||= cursor.isText;
        this.readText(CHANNEL.thoughts);
      } else if (cursor.isNamed("tool_calls") && cursor.isArray) this.readCalls();
      else cursor.skipNull();
    }
  }

  /** Agents write more arguments than anything else. */
  private readCalls(): void {
    const { cursor } = this;
    cursor.enterArray();
    while (cursor.nextValue()) {
      const { found: first } = this;
      cursor.enterObject();
      let index = -1;
      while (cursor.nextMember()) {
        if (cursor.isNamed("function")) this.readFunction();
        else if (cursor.isNamed("custom")) cursor.giveUp();
        else if (cursor.isNamed("index")) index = cursor.readCount();
        else cursor.skipOther();
      }
      if (index === -1) cursor.giveUp();
      this.ofChannel(first, callChannel(index));
    }
  }

  private readFunction(): void {
    const { cursor } = this;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("arguments")) this.readText(CHANNEL.calls);
      // A call begins, perhaps at the index of another.
      else if (cursor.isNamed("name") && !cursor.isTheText("")) cursor.skipNull();
      else cursor.skipOther();
    }
  }
}

export const CHAT_TEXTS = new ChatTextFinder();
