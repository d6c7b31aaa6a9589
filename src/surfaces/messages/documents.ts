import type { MutableJson } from "../json/json.ts";
import type { EmbeddedSource, FilePart, ImagePart } from "../vocabulary/conversation.ts";
import type { TranslationReport } from "../vocabulary/translation-report.ts";

/**
 * Files as Anthropic takes them ("PDF support", "Files"): PDFs and four kinds of pictures as base64, and texts as
 * text. Anything else it refuses, with a sentence that does not name the file.
 */
export function writeFile({ source, name }: FilePart, report: TranslationReport): MutableJson | null {
  if (source.from === "url") return document({ type: "url", url: source.url }, name);
  if (source.from === "text") return textDocument(source.text, name);
  const type = typeOf(source, name);
  if (type === PDF) return document({ type: "base64", media_type: PDF, data: source.data }, name);
  if (PICTURES.has(type)) return picture(type, source.data);
  const text = isText(type) ? decoded(source.data) : null;
  if (text !== null) return textDocument(text, name);
  refuseType(name === null ? type : `${name} (${type})`, report);
  return null;
}

export function writeImage({ source }: ImagePart, report: TranslationReport): MutableJson | null {
  if (source.from === "url") return { type: "image", source: { type: "url", url: source.url } };
  const type = source.mediaType.toLowerCase();
  const known = type === "image/jpg" ? "image/jpeg" : type;
  if (PICTURES.has(known)) return picture(known, source.data);
  refuseType(`an image of type ${type === "" ? "unknown" : type}`, report);
  return null;
}

const document = (source: MutableJson, name: string | null): MutableJson => ({
  type: "document",
  source,
  ...(name === null ? {} : { title: name }),
});

const textDocument = (text: string, name: string | null): MutableJson =>
  document({ type: "text", media_type: "text/plain", data: text }, name);

const picture = (type: string, data: string): MutableJson => ({
  type: "image",
  source: { type: "base64", media_type: type, data },
});

const PDF = "application/pdf";
const PICTURES = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);

function refuseType(what: string, report: TranslationReport): void {
  const field = report.client === "responses" ? "input" : "messages";
  report.cannot(field, `it takes PDF, text, JPEG, PNG, GIF and WebP, and not ${what}`);
}

/** A name tells more than what clients say when they do not know: no type, or that of any bytes. */
function typeOf({ mediaType, data }: EmbeddedSource, name: string | null): string {
  const type = mediaType.toLowerCase();
  const isDeclared =
    type !== "" && type !== "application/octet-stream" && (type !== PDF || data.startsWith(PDF_MARK));
  if (isDeclared) return type;
  if (data.startsWith(PDF_MARK)) return PDF;
  const ending = /\.(\w{1,16})$/.exec(name ?? "")?.[1]?.toLowerCase() ?? "";
  if (TEXT_ENDING.test(ending)) return "text/plain";
  return ENDINGS.get(ending) ?? (type === "" ? "unknown type" : type);
}

/** `%PDF-` in base64. */
const PDF_MARK = "JVBERi";

const TEXT_ENDING = /^(txt|csv|tsv|md|jsonl?|xml|ya?ml|html|log|toml|ini|sql)$/;
const ENDINGS: ReadonlyMap<string, string> = new Map([
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["png", "image/png"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
  ["docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  ["xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  ["pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"],
]);

const isText = (type: string): boolean =>
  type.startsWith("text/") || (TEXTUAL.test(type) && !type.startsWith("image/"));

const TEXTUAL =
  /^application\/(json|x-ndjson|jsonl|xml|yaml|x-yaml|toml|csv|javascript|x-javascript|typescript|sql|x-sh|x-python|graphql)$|\+(json|xml|yaml)$/;

/** Null for what is no UTF-8. */
function decoded(data: string): string | null {
  try {
    return UTF8.decode(Buffer.from(data, "base64"));
  } catch {
    return null;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });
