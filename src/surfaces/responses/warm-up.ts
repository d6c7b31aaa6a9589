import { NO_TOKENS } from "../../catalog/tokens.ts";
import { textOf } from "../json/bytes.ts";
import { parseObject } from "../json/json.ts";
import { itemForm, ResponsesWriter } from "./answer-writer.ts";

/** The answer to a `response.create` with `generate: false`: a response without a word, which may be continued. */
export function warmUpStream(members: readonly Uint8Array[], id: string, atS: number): Uint8Array {
  const repeated = members.filter(({ length }) => length <= MAX_REPEATED_BYTES);
  const json = repeated.map((member) => textOf(member, 0, member.length)).join(",");
  const request = parseObject(`{${json}}`) ?? {};
  const publicModel = typeof request.model === "string" ? request.model : "";
  const writer = new ResponsesWriter(request, { publicModel, atS }, itemForm(request));
  writer.start(id);
  writer.stop("end");
  return writer.last({ tokens: NO_TOKENS, costUsd: 0 });
}

/** A response repeats the request's members; larger members, such as many tools, are not parsed for that. */
const MAX_REPEATED_BYTES = 16_384;
