import Ajv2020, { type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { ApiDocument, Operation } from "../../src/http/pages/openapi.ts";

/**
 * Holds answers of a running server against the document that it serves of itself. The test gateways ask it
 * about every answer they get, so each test of an endpoint is a test of its description too.
 */
export class Conformity {
  private readonly templates: { readonly path: string; readonly pattern: RegExp }[];

  private constructor(
    readonly document: ApiDocument,
    private readonly schemas: Schemas,
  ) {
    this.templates = Object.keys(document.paths)
      // Where a fixed path and a parameter both fit, the fixed one is served.
      .sort((a, b) => a.split("{").length - b.split("{").length)
      .map((path) => ({ path, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }));
  }

  static async of(url: string): Promise<Conformity> {
    const response = await fetch(`${url}/openapi.json`);
    if (response.status !== 200) throw new Error(`/openapi.json answered ${response.status}`);
    const document = (await response.json()) as ApiDocument;
    // Most gateways of a process serve the same, their address aside, and to compile it takes longer than a test.
    const hash = Bun.hash(JSON.stringify({ ...document, servers: [] }));
    const schemas = KNOWN.get(hash) ?? new Schemas(document);
    KNOWN.set(hash, schemas);
    return new Conformity(document, schemas);
  }

  /** Throws with what is not as the document says. */
  check(method: string, target: string, { status, type, json }: Answered): void {
    const path = target.split(/[?#]/, 1)[0]!.replace(/^\/v1\/v1\//, "/v1/");
    const template = this.templates.find(({ pattern }) => pattern.test(path))?.path;
    const operation = this.document.paths[template ?? ""]?.[method.toLowerCase()];
    const name = `${method} ${template ?? path} ${status}`;
    if (operation === undefined || !(status in operation.responses)) {
      if (status < 400) throw new Error(`${name} is not in the document`);
      this.validate("api#/components/schemas/Error", json, name);
      return;
    }
    const { content } = operation.responses[status]!;
    if (content === undefined) {
      if (json !== null) throw new Error(`${name} has a body, which is not in the document`);
      return;
    }
    if (content[type] === undefined) throw new Error(`${name} is ${type}, which is not in the document`);
    if (type === "application/json") this.validate(pointer(template!, method, status), json, name);
  }

  get operations(): { readonly name: string; readonly operation: Operation }[] {
    return Object.entries(this.document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        name: `${method.toUpperCase()} ${path}`,
        operation,
      })),
    );
  }

  private validate(ref: string, json: unknown, name: string): void {
    const why = this.schemas.errors(ref, json);
    if (why !== null) throw new Error(`${name} is not as the document says: ${why}\n${JSON.stringify(json)}`);
  }
}

/** Schemas of a document, each compiled at its first use. */
class Schemas {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly compiled = new Map<string, ValidateFunction>();

  constructor(document: ApiDocument) {
    addFormats(this.ajv as never);
    this.ajv.addSchema(document, "api");
  }

  errors(ref: string, json: unknown): string | null {
    const known = this.compiled.get(ref);
    const validate = known ?? this.ajv.compile({ $ref: ref });
    this.compiled.set(ref, validate);
    if (validate(json)) return null;
    return validate
      .errors!.map(
        ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
      )
      .join("; ");
  }
}

/** By the hash of the document. */
const KNOWN = new Map<number | bigint, Schemas>();

interface Answered {
  readonly status: number;
  /** The media type, without parameters. */
  readonly type: string;
  /** Null where the body is no JSON. */
  readonly json: unknown;
}

export const answeredOf = (response: Response, json: unknown): Answered => ({
  status: response.status,
  type: (response.headers.get("content-type") ?? "").split(";", 1)[0]!,
  json,
});

const pointer = (template: string, method: string, status: number): string =>
  `api#/paths/${encodeURIComponent(escaped(template))}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`;

const escaped = (part: string): string => part.replaceAll("~", "~0").replaceAll("/", "~1");
