import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv, { type AnySchema, type ErrorObject, type ValidateFunction } from "ajv";
import { createGenerator, type Schema } from "ts-json-schema-generator";
import lock from "../../package-lock.json";
import type { AnthropicWire, OpenAiWire } from "./wire-types.ts";

export type WireName = keyof OpenAiWire | keyof AnthropicWire;

/**
 * Checks values against the types that the official SDK packages publish. Members that a type does not name
 * are fine; missing and wrongly typed ones are not. Each violation is a sentence with the place in it; none
 * means valid.
 *
 *     violations("chatChunk", JSON.parse(data))   // ["/choices/0/delta/role must be equal to one of the allowed values"]
 *
 * What hosts wrote is held to a little less: the packages ask for many members that may be null, and the
 * providers' own documented answers leave those out (`container`, `citations`), or put null where the type
 * has none (`user`).
 *
 * The schemas are made from the packages' own .d.ts files, which takes two seconds, so they are kept in the
 * temporary folder under a name that changes with the packages.
 */
export function violations(name: WireName, value: unknown, by: "gateway" | "host" = "gateway"): string[] {
  const validate = (validators[by] ??= compile(by === "host"))[name];
  return validate(value) ? [] : (validate.errors ?? []).map(sentence);
}

const validators: Partial<Record<"gateway" | "host", Record<WireName, ValidateFunction>>> = {};

const PACKAGES = { OpenAiWire: "openai", AnthropicWire: "@anthropic-ai/sdk" } as const;

function compile(lenient: boolean): Record<WireName, ValidateFunction> {
  const ajv = new Ajv({ strict: false, discriminator: true, allErrors: true });
  const compiled = Object.entries(schemas()).flatMap(([root, schema]) => {
    const definitions = schema.definitions as Record<string, Definition>;
    exempt(definitions);
    widen(definitions);
    for (const node of Object.values(definitions).flatMap(nodes)) {
      if (lenient) relax(node, definitions);
      discriminate(node, definitions);
    }
    ajv.addSchema(schema as AnySchema, root);
    const members = Object.entries(definitions[root]!.properties!);
    return members.map(([name, member]) => [name, ajv.compile({ $ref: `${root}${member.$ref}` })]);
  });
  return Object.fromEntries(compiled);
}

interface Definition extends Record<string, unknown> {
  $ref?: string;
  properties?: Record<string, Definition>;
  required?: string[];
  anyOf?: Definition[];
  items?: Definition;
  type?: string | string[];
}

/** The schema and all that it is made of. */
function nodes(schema: Definition): Definition[] {
  const { properties = {}, anyOf = [], items } = schema;
  const parts = [...Object.values(properties), ...anyOf, ...(items === undefined ? [] : [items])];
  return [schema, ...parts.flatMap(nodes)];
}

/**
 * Members that the SDK computes, or that hosts leave out, though their types say that they are always there.
 */
const ABSENT: Record<string, readonly string[]> = { Response: ["output_text"], TextBlock: ["citations"] };

function exempt(definitions: Record<string, Definition>): void {
  for (const [name, members] of Object.entries(ABSENT)) {
    const definition = definitions[name];
    if (definition?.required === undefined) continue;
    definition.required = definition.required.filter((member) => !members.includes(member));
  }
}

/**
 * Where an answer breaks, the gateway uses words of its own that the types do not list: its stable error
 * codes, and `finish_reason: "error"`, which OpenRouter's clients know. No SDK checks them.
 */
function widen(definitions: Record<string, Definition>): void {
  const code = definitions.ResponseError?.properties?.code;
  if (code !== undefined) delete code.enum;
  const reason = definitions["ChatCompletionChunk.Choice"]?.properties?.finish_reason;
  if (reason !== undefined) (reason.enum as unknown[]).push("error");
  // OpenAI sends null, and OpenRouter's client insists on one or the other.
  const fingerprint = definitions.ChatCompletion?.properties?.system_fingerprint;
  if (fingerprint !== undefined) fingerprint.type = ["string", "null"];
  // OpenAI sends null until it is known, and Open Responses asks for that.
  const response = definitions.Response?.properties;
  if (response?.usage !== undefined) response.usage = { anyOf: [response.usage, { type: "null" }] };
}

/** Members that may be null may be absent; members that may be absent may be null. */
function relax(node: Definition, definitions: Record<string, Definition>): void {
  const { properties, required } = node;
  if (properties === undefined) return;
  node.required = required?.filter((name) => !nullable(properties[name]!, definitions)) ?? [];
  for (const [name, member] of Object.entries(properties)) {
    if (!required?.includes(name)) properties[name] = { anyOf: [member, { type: "null" }] };
  }
}

function nullable({ type, $ref, anyOf }: Definition, definitions: Record<string, Definition>): boolean {
  if ($ref !== undefined) return nullable(definitions[$ref.slice("#/definitions/".length)]!, definitions);
  return [type].flat().includes("null") || (anyOf?.some((branch) => nullable(branch, definitions)) ?? false);
}

/**
 * A union whose branches differ in `type` is checked by that branch alone: a violation then names the one
 * place that is wrong instead of everything that the value is not.
 */
function discriminate(union: Definition, definitions: Record<string, Definition>): void {
  if (union.anyOf === undefined) return;
  const kinds = union.anyOf.map(({ $ref }) =>
    kindOf(definitions[$ref?.slice("#/definitions/".length) ?? ""]),
  );
  if (kinds.includes(null) || new Set(kinds).size < kinds.length) return;
  const { anyOf } = union;
  delete union.anyOf;
  Object.assign(union, {
    type: "object",
    required: ["type"],
    discriminator: { propertyName: "type" },
    oneOf: anyOf,
  });
}

function kindOf(definition: Definition | undefined): string | null {
  const kind = definition?.required?.includes("type") ? definition.properties?.type?.const : null;
  return typeof kind === "string" ? kind : null;
}

function schemas(): Record<keyof typeof PACKAGES, Schema> {
  const types = join(import.meta.dir, "wire-types.ts");
  const key = createHash("sha256")
    .update(readFileSync(types))
    .update(readFileSync(import.meta.path));
  for (const name of [...Object.values(PACKAGES), "ts-json-schema-generator"] as const) {
    key.update(lock.packages[`node_modules/${name}`].version);
  }
  const kept = join(tmpdir(), `gateway-wire-schemas-${key.digest("hex").slice(0, 16)}.json`);
  if (existsSync(kept)) return JSON.parse(readFileSync(kept, "utf8"));
  const generator = createGenerator({
    path: types,
    skipTypeCheck: true,
    expose: "all",
    jsDoc: "none",
    functions: "hide",
    additionalProperties: true,
    encodeRefs: false,
  });
  const made = Object.fromEntries(Object.keys(PACKAGES).map((root) => [root, generator.createSchema(root)]));
  // Two runs may make it at once: whole files only.
  const unfinished = `${kept}.${process.pid}`;
  writeFileSync(unfinished, JSON.stringify(made));
  renameSync(unfinished, kept);
  return made as Record<keyof typeof PACKAGES, Schema>;
}

const sentence = ({ instancePath, message, params }: ErrorObject): string =>
  `${instancePath || "/"} ${message} ${JSON.stringify(params)}`;
