import { TextFinder } from "../passing/text-finder.ts";

/** In a `content_block_delta`. */
class MessagesTextFinder extends TextFinder {
  protected read(): boolean {
    const { cursor } = this;
    let isDelta = false;
    let block = 0;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("delta")) this.readDelta();
      else if (cursor.isNamed("type")) {
        isDelta = cursor.isTheText("content_block_delta");
        if (isDelta) cursor.skipExact();
        else cursor.giveUp();
      } else if (cursor.isNamed("index")) block = cursor.readCount();
      else cursor.skipOther();
    }
    this.ofChannel(0, block);
    return cursor.isDone && isDelta;
  }

  private readDelta(): void {
    const { cursor } = this;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("text") || cursor.isNamed("thinking") || cursor.isNamed("partial_json"))
        this.readText(0);
      // It grows with each event that has one.
      else if (cursor.isNamed("signature")) cursor.giveUp();
      else cursor.skipOther();
    }
  }
}

export const MESSAGES_TEXTS = new MessagesTextFinder();
