import { contains } from "../json/bytes.ts";
import { Edits } from "../json/edits.ts";
import { JsonCursor } from "../json/json-cursor.ts";

/**
 * A request for a Messages host with marks for its cache (Anthropic, "Prompt caching"), which caches nothing without:
 * behind the tools, behind the instructions, and at the end of the last two turns of the user, so that the next
 * turn finds what this one writes even where more blocks lie between them than the host looks back over. These are the
 * four that Anthropic allows. A mark costs nothing itself, and one on a prefix that is too short is ignored. Clients that
 * set marks of their own know better: their request stays as it is, and so does one that cannot be read.
 */
export function withCacheMarks(body: Uint8Array, retention: "5m" | "1h" = "5m"): Uint8Array {
  if (contains(body, OWN_MARK)) return body;
  const cursor = new JsonCursor();
  const blocks = blocksIn(body, cursor);
  if (blocks === null) return body;
  const edits = new Edits();
  for (const { start, end, isText } of blocks) {
    if (isText) edits.replace(start, start, TEXT_BEGINS);
    if (isText) edits.replace(end, end, Buffer.concat([MARKS[retention], TEXT_ENDS]));
    else edits.replace(end - 1, end - 1, MARKS[retention]);
  }
  return edits.applyTo(body);
}

/** On a member or a value; text that is marked becomes a list of one block. */
const OWN_MARK = Buffer.from('"cache_control"');
const MARKS = {
  "5m": Buffer.from(',"cache_control":{"type":"ephemeral"}'),
  "1h": Buffer.from(',"cache_control":{"type":"ephemeral","ttl":"1h"}'),
};
const TEXT_BEGINS = Buffer.from('[{"type":"text","text":');
const TEXT_ENDS = Buffer.from("}]");

/** A block, or a text in the place of a list of blocks. */
interface BlockSpan {
  readonly start: number;
  readonly end: number;
  readonly isText: boolean;
}

function blocksIn(body: Uint8Array, cursor: JsonCursor): readonly BlockSpan[] | null {
  const blocks: (BlockSpan | null)[] = [];
  cursor.begin(body, 0, body.length);
  cursor.enterObject();
  while (cursor.nextMember()) {
    if (cursor.isNamed("tools")) blocks.push(lastTool(cursor));
    else if (cursor.isNamed("system")) blocks.push(endOf(cursor));
    else if (cursor.isNamed("messages")) blocks.push(...turnEnds(cursor));
    else cursor.skip();
  }
  return cursor.isDone ? blocks.filter((block) => block !== null) : null;
}

/** One whose loading is deferred is not a part of the prompt, and takes no mark. */
function lastTool(cursor: JsonCursor): BlockSpan | null {
  let last: BlockSpan | null = null;
  if (!cursor.isArray) return skipped(cursor);
  cursor.enterArray();
  while (cursor.nextValue()) {
    const start = cursor.at;
    if (!cursor.isObject) {
      cursor.skip();
      continue;
    }
    let isDeferred = false;
    cursor.enterObject();
    while (cursor.nextMember()) {
      isDeferred ||= cursor.isNamed("defer_loading");
      cursor.skip();
    }
    if (!isDeferred) last = { start, end: cursor.at, isText: false };
  }
  return last;
}

/** The ends of the last message, and of the user's last one before it. */
function turnEnds(cursor: JsonCursor): readonly (BlockSpan | null)[] {
  let last: BlockSpan | null = null;
  let isUsers = false;
  let usersBefore: BlockSpan | null = null;
  if (!cursor.isArray) return [skipped(cursor)];
  cursor.enterArray();
  while (cursor.nextValue()) {
    if (isUsers && last !== null) usersBefore = last;
    [last, isUsers] = [null, false];
    if (!cursor.isObject) {
      cursor.skip();
      continue;
    }
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("content")) {
        last = endOf(cursor);
        continue;
      }
      isUsers ||= cursor.isNamed("role") && cursor.isTheText("user");
      cursor.skip();
    }
  }
  return [usersBefore, last];
}

/** Passes a content; its last block that takes a mark. */
function endOf(cursor: JsonCursor): BlockSpan | null {
  const start = cursor.at;
  if (cursor.isText) {
    cursor.skip();
    return cursor.at - start > EMPTY.length ? { start, end: cursor.at, isText: true } : null;
  }
  let last: BlockSpan | null = null;
  if (!cursor.isArray) return skipped(cursor);
  cursor.enterArray();
  while (cursor.nextValue()) last = blockAt(cursor) ?? last;
  return last;
}

function blockAt(cursor: JsonCursor): BlockSpan | null {
  const start = cursor.at;
  if (!cursor.isObject) return skipped(cursor);
  let takesMark = false;
  let isEmpty = false;
  cursor.enterObject();
  while (cursor.nextMember()) {
    if (cursor.isNamed("type")) takesMark = MARKABLE.some((type) => cursor.isTheText(type));
    // Anthropic refuses a mark on an empty text.
    else if (cursor.isNamed("text")) isEmpty = cursor.isTheText("");
    cursor.skip();
  }
  return takesMark && !isEmpty ? { start, end: cursor.at, isText: false } : null;
}

function skipped(cursor: JsonCursor): null {
  cursor.skip();
  return null;
}

const EMPTY = '""';
/** Not thoughts, and nothing of which it is not known. */
const MARKABLE: readonly string[] = ["text", "image", "document", "search_result", "tool_use", "tool_result"];
