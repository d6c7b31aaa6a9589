import { IMAGE_TOKENS, walkPrompt } from "./media.ts";
import { pdfTokenBound } from "./pdf.ts";

/**
 * The most tokens that the files embedded in a prompt come to; null when one of them can be of any size.
 * Reading a large one takes tens of milliseconds.
 */
export function boundFiles(json: Readonly<Record<string, unknown>>): number | null {
  let sum: number | null = 0;
  walkPrompt(json, {
    text() {},
    media({ files }) {
      for (const file of files) {
        const bound = sum === null ? null : boundFile(file);
        sum = sum === null || bound === null ? null : sum + bound;
      }
    },
  });
  return sum;
}

/**
 * Base64, or a data URL. A host may believe what its sender says that it is, or look for itself: what may be
 * read in two ways comes to the larger.
 */
function boundFile(embedded: string): number | null {
  const [name] = NAME.exec(embedded) ?? [""];
  const bytes = Buffer.from(embedded.slice(name.length), "base64");
  const asText = isText(bytes) ? bytes.length : null;
  if (!bytes.subarray(0, PDF_WITHIN).includes("%PDF-")) return asText;
  const asPdf = pdfTokenBound(bytes, IMAGE_TOKENS);
  if (asPdf !== null && asText !== null) return Math.max(asPdf, asText);
  return name === "" || PDF_NAME.test(name) ? asPdf : null;
}

const NAME = /^data:[^,]*,/;
const PDF_NAME = /^data:application\/(x-)?pdf[;,]/i;
/** Readers look for the mark of a PDF so far. */
const PDF_WITHIN = 1_024;

/** Packed documents are binary. */
function isText(bytes: Buffer): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
