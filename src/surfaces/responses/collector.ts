import { asObject } from "../json/json.ts";
import type { Collector } from "../passing/judge.ts";

/** Responses end with the whole answer. */
export class ResponsesCollector implements Collector {
  private response: Record<string, unknown> = {};

  add(data: Record<string, unknown>): void {
    if (data.type === "response.completed" || data.type === "response.incomplete")
      this.response = asObject(data.response) ?? {};
  }

  whole(): Record<string, unknown> {
    return this.response;
  }
}
