import { asText, parseObject } from "../json/json.ts";
import type { CustomTool } from "./conversation.ts";

/**
 * A freeform tool where a host only calls functions: a function whose one argument is the text. The description
 * gives the model the grammar, if there is one, which no host then enforces.
 */
export const INPUT_SCHEMA = {
  type: "object",
  properties: { input: { type: "string", description: "The tool's whole input, as plain text." } },
  required: ["input"],
  additionalProperties: false,
} as const;

export function wrappedDescription({ description, format }: CustomTool): string {
  const text = description ?? "";
  if (format?.type !== "grammar") return text;
  return `${text}\n\nThe input must follow this ${asText(format.syntax)} grammar:\n${asText(format.definition)}`;
}

export const wrappedInput = (input: string): string => JSON.stringify({ input });

/** The text in a call's arguments; the arguments themselves where the model did not keep to the schema. */
export function unwrappedInput(argumentsText: string): string {
  const given = parseObject(argumentsText);
  if (typeof given?.input === "string") return given.input;
  return given !== null && Object.keys(given).length === 0 ? "" : argumentsText;
}
